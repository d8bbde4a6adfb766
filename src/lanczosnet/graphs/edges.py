"""Edges of a user's graph as the networks need them: both directions, weights that are not negative.

Networks for signed or directed graphs find here what signs and directions there were.

Nothing happens without a word: what was changed stands in `data.notes`, and a training prints it.
"""

from copy import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from lanczosnet.graphs.errors import DataError


def with_usable_edges(data: Data) -> Data:
    """The graph with undirected edges and weights that are not negative; itself where it has these.

    - One real number per edge in `edge_attr` becomes `edge_weight`, where there is none.
    - Of a negative weight the absolute value counts, and edges get the types positive and negative.
    - An edge without its reverse gets one. Where both directions differ, weights are averaged and types joined.

    Networks with `signed` or `magnetic` use what is kept of that: `edge_sign`, between -1 and 1, and `edge_flow`, the
    share of an edge's weight that leads from its first node to its second one less that of its reverse.
    """
    changed: list[str] = []
    data = _signs_as_types(_attribute_as_weight(copy(data), changed), changed)
    data = _undirected(data, changed)
    if changed:
        data.notes = [*(data.get("notes") or ()), *changed]
    return data


def _attribute_as_weight(data: Data, changed: list[str]) -> Data:
    attr = data.get("edge_attr")
    if attr is None or "edge_weight" in data or not attr.is_floating_point() or attr.numel() != data.num_edges:
        return data
    if _are_flags(attr):  # of one edge type
        return data
    data.edge_weight = attr.view(-1)
    del data.edge_attr
    changed.append("edge_attr holds one number per edge, which is used as edge_weight")
    return data


def _are_flags(attr: Tensor) -> bool:
    return not attr.is_floating_point() or bool(((attr == 0) | (attr == 1)).all())


def _signs_as_types(data: Data, changed: list[str]) -> Data:
    weight = data.get("edge_weight")
    if weight is None or not bool((weight < 0).any()):
        return data
    if "edge_attr" in data or "edge_type" in data:
        raise DataError(
            "some edge weights are negative, and the edges have types of their own",
            remedy="Make the sign a type of the edges yourself, and weights positive",
        )
    data.edge_attr = torch.stack([weight > 0, weight < 0], 1).to(weight.dtype)
    data.edge_weight, data.edge_sign = weight.abs(), weight.sign()
    count = int((weight < 0).sum())
    changed.append(
        f"{count:,} edges have a negative weight: its absolute value counts, and the sign is an edge type (LanczosNet "
        "with signed=true has it in S)"
    )
    return data


def _undirected(data: Data, changed: list[str]) -> Data:
    num_nodes = data.num_nodes
    here = data.edge_index[0] * num_nodes + data.edge_index[1]
    there = data.edge_index[1] * num_nodes + data.edge_index[0]
    one_way = int((~torch.isin(here, there)).sum())
    differ = not one_way and _weights_differ(data, here, there)
    if not one_way and not differ:
        return data
    if "edge_type" in data:
        raise DataError(
            "the edges have types and are directed",
            remedy="Give every edge its reverse, of the same type (torch_geometric.transforms.ToUndirected)",
        )
    edges = torch.cat([data.edge_index, data.edge_index.flip(0)], 1)
    attributes = {key: data[key] for key in ("edge_weight", "edge_attr") if key in data}
    _keep_directions(data, edges)
    for key, value in attributes.items():
        reduce = "max" if key == "edge_attr" and _are_flags(value) else "mean"
        data[key] = coalesce(edges, torch.cat([value, value]), num_nodes, reduce=reduce)[1]
    data.edge_index = coalesce(edges, num_nodes=num_nodes)
    changed.append(
        f"{one_way:,} directed edges have no reverse, which was added (LanczosNet with magnetic=0.25 sees directions)"
        if one_way
        else "weights of an edge and its reverse differ, and were averaged"
    )
    return data


def _keep_directions(data: Data, edges: Tensor) -> None:
    """The flow, and the mean sign, of what is to become one edge in both directions."""
    weight = data.get("edge_weight")
    weight = torch.ones(data.num_edges, device=edges.device) if weight is None else weight
    sign = data.edge_sign if "edge_sign" in data else torch.ones_like(weight)
    parts = torch.stack([weight.repeat(2), torch.cat([weight, -weight]), (weight * sign).repeat(2)], 1)
    total, flow, signed = coalesce(edges, parts, data.num_nodes, reduce="sum")[1].unbind(1)
    total = torch.where(total == 0, 1.0, total)
    data.edge_flow = flow / total
    if "edge_sign" in data:
        data.edge_sign = signed / total


def _weights_differ(data: Any, here: Tensor, there: Tensor) -> bool:
    """Of an edge and its reverse, by more than rounding."""
    weight = data.get("edge_weight")
    if weight is None or not weight.numel():
        return False
    weight = weight * data.edge_sign if "edge_sign" in data else weight
    gap = weight[here.argsort(stable=True)] - weight[there.argsort(stable=True)]
    return bool(gap.abs().max() > 64 * torch.finfo(weight.dtype).eps * weight.abs().max())
