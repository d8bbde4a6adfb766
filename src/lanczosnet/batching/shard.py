"""The part of a stored graph that one of many processes has: whose nodes are whose, and what is read of the files."""

import bisect
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lanczosnet.affinity.halo import Halo
from lanczosnet.affinity.owners import GivenOwners, Owners, RangeOwners, is_range, places_in
from lanczosnet.affinity.sharded_components import sharded_components
from lanczosnet.affinity.sharded_operator import ShardedOperator, ShardPattern
from lanczosnet.affinity.sparse_operator import index_type
from lanczosnet.affinity.stored_rows import adjacency_of_rows, check_columns, check_row_pointers
from lanczosnet.backends.processes import Processes
from lanczosnet.graphs.formats.stored_graph import StoredGraph

SMALLEST_SHARED = 2**10  # nodes of a component that may lie in several processes


class StoredRows(NamedTuple):
    """The stored entries of some nodes, by node."""

    row: Tensor  # [entry], which of the nodes
    column: Tensor  # [entry], a number in the whole graph
    weight: Tensor | None  # [entry]


@dataclass(eq=False)
class Shard:
    """Some nodes of a graph, with the rows of their adjacency.

    Components are numbered in this process: first those that lie in several, alike in all of these, then its own.
    """

    processes: Processes
    nodes: Tensor  # their numbers in the whole graph, rising
    adjacency: ShardedOperator
    component: Tensor
    num_components: int
    num_shared: int

    @property
    def halo_share(self) -> float:
        """Neighbours that other processes hold, by the nodes of this one."""
        return len(self.adjacency.pattern.halo) / max(len(self.nodes), 1)


class ShardData(Data):
    """What a network is given of a graph that is shared out: `x` and `y` of a process' nodes, and its `shard`."""


def balanced_bounds(row_pointer: Tensor, parts: int) -> Tensor:
    """Ranges of nodes with about equally many entries and diagonal entries, `[part + 1]`."""
    num_nodes = len(row_pointer) - 1
    total = int(row_pointer[-1]) + num_nodes
    bounds = [
        bisect.bisect_left(range(num_nodes), total * part // parts, key=lambda node: int(row_pointer[node]) + node)
        for part in range(parts)
    ]
    return torch.tensor([*bounds, num_nodes])


def owners_of(data: StoredGraph, parts: int) -> Owners:
    """Those of the `process_of_node` that the data carry; else ranges."""
    given = data.get("process_of_node")
    return RangeOwners(balanced_bounds(data.row_pointer, parts)) if given is None else GivenOwners(given)


def shard_of(data: StoredGraph, processes: Processes, dtype: torch.dtype, device: torch.device) -> ShardData:
    """This process' part of a graph. All processes make the call."""
    owners = owners_of(data, processes.size)
    own = owners.nodes(processes.rank)
    rows = _rows(data, own)
    is_edge = torch.ones_like(rows.row, dtype=torch.bool) if rows.weight is None else rows.weight != 0
    label, shared = sharded_components(processes, rows.row[is_edge], rows.column[is_edge], own, owners)
    nodes, label, shared = _with_whole_components(processes, own, owners, label, shared)
    _check_all_have_nodes(processes, len(nodes))
    if not torch.equal(nodes, own):
        rows = _rows(data, nodes)
    operator = _operator(processes, nodes, rows, owners, int(data.num_nodes or 0), dtype)
    component, count = _numbered(label, shared)
    shard = Shard(processes, nodes, operator, component, count, len(shared))
    x = _taken(data.x, nodes)
    tensors = {"x": x.to(dtype) if x.is_floating_point() else x}
    if "y" in data:
        tensors["y"] = _taken(data.y, nodes)
    return ShardData(shard=shard, num_nodes=len(nodes), **tensors)


def _rows(data: StoredGraph, nodes: Tensor) -> StoredRows:
    pointer = data.row_pointer
    begin, end = _taken(pointer[:-1], nodes), _taken(pointer[1:], nodes)
    check_row_pointers(torch.stack([begin, end], 1).view(-1), len(data.column), data.get("folder", ""))
    count = end - begin
    row = torch.arange(len(nodes)).repeat_interleave(count)
    entries: Any
    if is_range(nodes):
        entries = slice(int(begin[0]), int(end[-1]))
    else:
        entries = torch.arange(len(row)) + (begin - (count.cumsum(0) - count))[row]
    weight, column = data.get("edge_weight"), data.column[entries].long()
    check_columns(column, int(data.num_nodes or 0), data.get("folder", ""))
    return StoredRows(row, column, None if weight is None else weight[entries])


def _taken(values: Tensor, nodes: Tensor) -> Tensor:
    return values[int(nodes[0]) : int(nodes[-1]) + 1] if is_range(nodes) else values[nodes]


def _with_whole_components(
    processes: Processes, nodes: Tensor, owners: Owners, label: Tensor, shared: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The nodes of this process, their labels, and which components stay in several: small ones move to where their
    first node is."""
    place = torch.searchsorted(shared, label).clamp(max=max(len(shared) - 1, 0))
    lies_in_several = shared[place] == label if len(shared) else torch.zeros_like(label, dtype=torch.bool)
    size = processes.total(torch.bincount(place[lies_in_several], minlength=len(shared)))
    is_small = size < SMALLEST_SHARED
    moves = lies_in_several.clone()
    moves[lies_in_several] = is_small[place[lies_in_several]]
    target = owners.of(label)
    moves &= target != processes.rank
    order = target[moves].argsort(stable=True)
    sent = torch.bincount(target[moves], minlength=processes.size).tolist()
    moving = torch.stack([nodes[moves], label[moves]], 1)[order]
    arrived = processes.exchanged(moving, sent, processes.counts(sent))
    nodes, label = torch.cat([nodes[~moves], arrived[:, 0]]), torch.cat([label[~moves], arrived[:, 1]])
    nodes, order = nodes.sort()
    return nodes, label[order], shared[~is_small]


def _check_all_have_nodes(processes: Processes, num_nodes: int) -> None:
    """All processes raise the error, so that none waits for another."""
    sizes = processes.gathered(torch.tensor([num_nodes])).tolist()
    if 0 in sizes:
        busy = sum(size > 0 for size in sizes)
        raise ValueError(
            f"process {sizes.index(0)} has no nodes: a component of fewer than {SMALLEST_SHARED:,} nodes lies in one "
            f"process. Start {'one process' if busy < 2 else f'{busy} processes'} for this graph"
        )


def _operator(
    processes: Processes, nodes: Tensor, rows: StoredRows, owners: Owners, num_nodes: int, dtype: torch.dtype
) -> ShardedOperator:
    place, is_inside = places_in(nodes, rows.column)
    inside, outside = is_inside.nonzero().squeeze(1), (~is_inside).nonzero().squeeze(1)
    # Small components lie in one process: whoever had a neighbour has it still.
    halo, column = Halo.of_entries(processes, nodes, rows.column[outside], owners)
    order = (rows.row[outside] * max(len(halo), 1) + column).argsort()  # columns rise in every row
    outside, column = outside[order], column[order]
    weight = rows.weight
    own = adjacency_of_rows(
        _pointers(rows.row[inside], len(nodes)), place[inside], None if weight is None else weight[inside], dtype
    )
    elsewhere = torch.ones(len(outside), dtype=dtype) if weight is None else weight[outside].to(dtype)
    kind = index_type(max(len(column), len(halo)))
    pointer = _pointers(rows.row[outside], len(nodes))
    pattern = ShardPattern(own, pointer.to(kind), column.to(kind), halo, num_nodes)
    return ShardedOperator(pattern, torch.cat([own.values, elsewhere]))


def _pointers(row: Tensor, num_rows: int) -> Tensor:
    return torch.cat([row.new_zeros(1), torch.bincount(row, minlength=num_rows).cumsum(0)])


def _numbered(label: Tensor, shared: Tensor) -> tuple[Tensor, int]:
    """Shared components first, in the order of their labels."""
    is_shared = torch.isin(label, shared)
    own, number = label[~is_shared].unique(return_inverse=True)
    component = torch.empty_like(label)
    component[is_shared] = torch.searchsorted(shared, label[is_shared])
    component[~is_shared] = number + len(shared)
    return component, len(shared) + len(own)
