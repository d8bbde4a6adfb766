"""What a PyG `Data` object of a user must be like: its attributes are checked once, when it is loaded.

An error names the graph, the attribute, what was expected and what to do. `pack` compares graphs with one another.
"""

import warnings
from collections.abc import Callable
from copy import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from lanczosnet.graphs.formats.columns import LARGEST, LARGEST_FEATURE
from lanczosnet.graphs.splits.kinds import MASKS
from lanczosnet.schemas.limits import check_limit
from lanczosnet.schemas.record import shown

TEXTS = ("targets", "units", "classes", "features")  # that a graph may carry; `classes` nested for several targets


class LawError(ValueError):
    """An attribute breaks a law."""


def lawful(data: Data) -> Data:
    """The graph, with booleans and whole numbers as the types that networks take; an error if it breaks a law."""
    nodes = _checked_nodes(data)
    changes: dict[str, Any] = {}
    for key, value in data.to_dict().items():
        if isinstance(value, Tensor):
            _check_tensor(key, value)
    for name, check in _LAWS.items():
        if data.get(name) is not None:
            changes[name] = check(data, nodes)
    for name in (*TEXTS, "name"):
        _check_text(name, data.get(name))
    return _changed(data, {name: value for name, value in changes.items() if value is not data[name]})


def _changed(data: Data, changes: dict[str, Any]) -> Data:
    data = copy(data) if changes else data
    for name, value in changes.items():
        data[name] = value
    return data


def _checked_nodes(data: Data) -> int:
    """How many there are, once every edge is known to lead to one."""
    ends, x = data.get("edge_index"), data.get("x")
    shaped = isinstance(ends, Tensor) and ends.layout == torch.strided and ends.dim() == 2 and len(ends) == 2
    if not shaped or ends.dtype not in (torch.int64, torch.int32):
        raise LawError("there is no edge_index, whole numbers of the shape [2, edge]")
    if x is not None and not isinstance(x, Tensor):
        raise LawError(f"x is a {type(x).__name__}, not a tensor [node, feature]")
    nodes = _num_nodes(data)
    if x is None:
        check_limit("NODES", nodes)
    elif x.dim() == 0 or len(x) != nodes:
        raise LawError(f"x has the shape {tuple(x.shape)}, but there are {nodes} nodes")
    if ends.numel() and (int(ends.min()) < 0 or int(ends.max()) >= nodes):
        raise LawError(f"an edge to a node that does not exist: edges name {int(ends.min())} to {int(ends.max())}, "
                       f"nodes are 0 to {nodes - 1}")  # fmt: skip
    return nodes


def _num_nodes(data: Data) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG guesses it from the edges, where nothing says it
        try:
            nodes = data.num_nodes
        except (IndexError, TypeError, AttributeError, RuntimeError):  # of an attribute without axes
            nodes = 0
    if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 0:
        raise LawError(f"num_nodes is {shown(nodes)}, not a number of nodes")
    return nodes


def _check_tensor(name: str, tensor: Tensor) -> None:
    if tensor.layout != torch.strided or tensor.is_complex() or tensor.is_quantized:
        raise LawError(f"{name} is not a dense tensor of real numbers: use {name}.to_dense(), or leave it out")
    size = tensor.numel() * tensor.element_size()
    if size > tensor.untyped_storage().nbytes():  # strides of 0 make much of little
        check_limit("BYTES", size, f"{name}: bytes when it is written out")


def _x(data: Data, nodes: int) -> Tensor:
    x = data.x.float() if data.x.dtype == torch.bool else data.x
    if not x.is_floating_point():
        if x.dim() == 2 and x.shape[1] != 1:
            raise LawError("x has whole numbers in several columns: use x.float() if they are features")
        _check_axes("x", x, (1, 2))
        check_limit("CHANNELS", int(x.max()) + 1 if x.numel() else 0, "x: types of nodes")
        return x
    if x.dim() != 2:
        raise LawError(f"x has the shape {tuple(x.shape)}, not [node, feature]")
    check_limit("COLUMNS", x.shape[1], "x: features")
    _check_values("x", x, LARGEST_FEATURE)
    return x


def _y(data: Data, nodes: int) -> Tensor:
    y: Tensor = data.y
    if not isinstance(y, Tensor):
        raise LawError(f"y is a {type(y).__name__}, not a tensor")
    _check_axes("y", y, (0, 1, 2))
    if y.is_floating_point():
        _check_values("y", y.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf), LARGEST)
    elif y.dtype != torch.bool and y.numel():
        check_limit("CLASSES", int(y.max()) + 1, "y: classes")
    return y if y.is_floating_point() else y.long()


def _edge_weight(data: Data, nodes: int) -> Tensor:
    weight = data.edge_weight
    if not isinstance(weight, Tensor) or weight.shape != data.edge_index.shape[1:]:
        raise LawError(f"edge_weight is not one number for each of {data.num_edges} edges")
    _check_values("edge_weight", weight, LARGEST_FEATURE)
    return weight if weight.is_floating_point() else weight.float()


def _edge_attr(data: Data, nodes: int) -> Tensor:
    attr = data.edge_attr
    if not isinstance(attr, Tensor) or attr.dim() not in (1, 2) or len(attr) != data.num_edges:
        raise LawError(f"edge_attr is not one row for each of {data.num_edges} edges")
    _check_values("edge_attr", attr, LARGEST_FEATURE)
    return attr


def _mask(name: str) -> Callable[[Data, int], Tensor]:
    def check(data: Data, nodes: int) -> Tensor:
        mask = data[name]
        if not isinstance(mask, Tensor) or mask.dtype not in (torch.bool, torch.uint8):
            raise LawError(f"{name} is not true or false for every node: use {name}.bool()")
        return mask.bool()

    return check


def _edge_index(data: Data, nodes: int) -> Tensor:
    ends: Tensor = data.edge_index
    return ends.long()


_LAWS: dict[str, Callable[[Data, int], Tensor]] = {
    "edge_index": _edge_index,
    "x": _x,
    "y": _y,
    "edge_weight": _edge_weight,
    "edge_attr": _edge_attr,
    **{name: _mask(name) for name in MASKS},
}


def _check_axes(name: str, tensor: Tensor, axes: tuple[int, ...]) -> None:
    if tensor.dim() not in axes:
        raise LawError(f"{name} has the shape {tuple(tensor.shape)}: too many axes")


def _check_values(name: str, tensor: Tensor, most: float) -> None:
    """One number tells: a NaN is passed on by the maximum."""
    if tensor.numel() and not float(tensor.abs().max() if tensor.dtype != torch.bool else 1.0) <= most:
        raise LawError(f"{name} has a value that is not a number, or above {most:.0e}")


def _check_text(name: str, value: Any) -> None:
    if value is None or isinstance(value, str):
        return
    is_listed = name != "name" and isinstance(value, list | tuple)
    if not is_listed or not all(isinstance(item, str | list | tuple) for item in value):
        raise LawError(f"{name} is {shown(value)}, not text: leave it out, or name it otherwise")
