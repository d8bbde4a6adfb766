"""The citation networks Cora, Citeseer and Pubmed from the Planetoid files."""

import math
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, index_to_mask, remove_self_loops

from lanczosnet.graphs.data_sets import sources
from lanczosnet.graphs.data_sets.download import available
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.pickles import read_pickle
from lanczosnet.schemas.limits import check_limit

VALIDATION = 500  # nodes, which follow the training nodes


def citation(
    name: str, *, data_dir: str | Path | None = None, normalize: bool | Literal["sum", "length"] = True
) -> Data:
    """One citation network with the public split as masks, equal to PyG's `Planetoid` tensor for tensor.

    `normalize` divides every feature row by its sum, as published, or by its length. Citeseer's 15 nodes that the files
    leave out get zero features and, as everywhere, class 0; `labelled` is False there, and no split but the public one
    can draw them.
    """
    if normalize not in (True, False, "sum", "length"):
        raise DataError(f"normalize must be True or 'sum', 'length' or False, but is {normalize!r}")
    paths = {part: available(file, name, data_dir) for part, file in sources.planetoid(name).items()}
    data = read_planetoid(paths)
    if normalize:
        data.x = rows_of_unit_length(data.x) if normalize == "length" else normalize_rows(data.x)
    data.name = name
    return data


def read_planetoid(paths: dict[str, Path]) -> Data:
    """The network in the eight files, given by their suffix (`x`, `tx`, `allx`, `y`, `ty`, `ally`, `graph`, ...)."""
    content = {part: read_pickle(path) for part, path in paths.items() if part != "test.index"}
    test = _read_index(paths["test.index"])
    first, last = int(test.min()), int(test.max())
    dense = {part: _dense(content[part], paths[part]) for part in ("allx", "ally", "tx", "ty", "y")}
    _check_alike(dense, len(test), paths)
    x, y = dense["allx"], dense["ally"]
    check_limit("NODES", last, f"{paths['test.index']}: nodes")
    if first != len(x):
        raise DataError(f"the test nodes begin at {first}, the others end at {len(x)}", file=paths["test.index"])
    # The rows of tx and ty belong to the test nodes in the order of the index file; nodes it leaves out stay zero.
    x = torch.cat([x, x.new_zeros(last - first + 1, x.size(1))])
    y = torch.cat([y, y.new_zeros(last - first + 1, y.size(1))])
    x[test], y[test] = dense["tx"], dense["ty"]
    data = Data(x=x, edge_index=_edge_index(content["graph"], len(x), paths["graph"]), y=y.argmax(dim=1))
    num_train = len(dense["y"])
    data.train_mask = index_to_mask(torch.arange(num_train), size=len(x))
    data.val_mask = index_to_mask(torch.arange(num_train, num_train + VALIDATION), size=len(x))
    data.test_mask = index_to_mask(test, size=len(x))
    data.labelled = y.sum(dim=1) > 0
    return data


def normalize_rows(x: Tensor) -> Tensor:
    """Features whose rows sum to one; rows of zeros stay."""
    return x / x.sum(dim=-1, keepdim=True).clamp(min=1.0)


def rows_of_unit_length(x: Tensor) -> Tensor:
    """Rows of zeros stay."""
    return torch.nn.functional.normalize(x, dim=-1)


def _read_index(path: Path) -> Tensor:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty file is a warning
            numbers = np.loadtxt(path, dtype=np.int64, ndmin=1)
    except (ValueError, OverflowError, UserWarning) as error:
        raise DataError(f"not a list of node numbers ({error})", file=path, remedy="Fetch the file again") from error
    if numbers.ndim != 1 or numbers.min() < 0:
        raise DataError("not a list of node numbers", file=path, remedy="Fetch the file again")
    return torch.from_numpy(numbers)


def _dense(matrix: Any, path: Path) -> Tensor:
    is_sparse = scipy.sparse.issparse(matrix)
    if is_sparse:
        check_limit("BYTES", 4 * math.prod(matrix.shape), f"{path}: bytes when it is written out")
    array = np.asarray(matrix.todense()) if is_sparse else matrix
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biuf" or not array.size:
        raise DataError("not a matrix of numbers", file=path, remedy="Fetch the file again")
    return torch.from_numpy(array).float()


def _check_alike(dense: dict[str, Tensor], num_test: int, paths: dict[str, Path]) -> None:
    """Rows and columns of the matrices that belong together."""
    wanted = {
        "ally": (len(dense["allx"]), dense["ally"].shape[1]),
        "tx": (num_test, dense["allx"].shape[1]),
        "ty": (num_test, dense["ally"].shape[1]),
        "y": (len(dense["y"]), dense["ally"].shape[1]),
    }
    for part, shape in wanted.items():
        if tuple(dense[part].shape) != shape:
            raise DataError(
                f"a matrix of {tuple(dense[part].shape)}, but the other files want {shape}", file=paths[part]
            )
    if len(dense["y"]) + VALIDATION > len(dense["allx"]):
        raise DataError(f"too many training nodes for {VALIDATION} validation nodes", file=paths["y"])
    if not dense["allx"].isfinite().all() or not dense["tx"].isfinite().all():
        raise DataError("a feature is not a number", file=paths["allx"], remedy="Fetch the file again")


def _edge_index(neighbours: Any, num_nodes: int, path: Path) -> Tensor:
    """Both directions of every edge, in the order PyG gives them; duplicates and self-loops removed."""
    if not _is_graph(neighbours):
        raise DataError("not a graph, lists of nodes by node", file=path, remedy="Fetch the file again")
    lengths = [len(targets) for targets in neighbours.values()]
    rows = torch.tensor(list(neighbours)).repeat_interleave(torch.tensor(lengths))
    columns = torch.tensor([target for targets in neighbours.values() for target in targets])
    edge_index = torch.stack([rows, columns])
    if int(edge_index.max()) >= num_nodes or int(edge_index.min()) < 0:
        raise DataError(f"an edge leads to node {int(edge_index.max())} of {num_nodes}", file=path)
    edge_index, _ = remove_self_loops(edge_index)
    return coalesce(edge_index, num_nodes=num_nodes, sort_by_row=False)


def _is_graph(neighbours: Any) -> bool:
    """At least one edge, and no number that a tensor could not hold."""
    if not isinstance(neighbours, dict) or not all(isinstance(ends, list) for ends in neighbours.values()):
        return False
    nodes = [*neighbours, *(end for ends in neighbours.values() for end in ends)]
    return len(nodes) > len(neighbours) and all(type(node) is int and abs(node) < 2**62 for node in nodes)
