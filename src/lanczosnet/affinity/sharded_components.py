"""Connected components of a graph whose rows are shared out."""

import torch
from torch import Tensor

from lanczosnet.affinity.components import connected_components
from lanczosnet.affinity.halo import Halo
from lanczosnet.affinity.owners import Owners, places_in
from lanczosnet.affinity.sparse_operator import SparseOperator
from lanczosnet.affinity.stored_rows import adjacency_of_rows
from lanczosnet.backends.processes import Processes


def sharded_components(
    processes: Processes, row: Tensor, column: Tensor, own: Tensor, owners: Owners
) -> tuple[Tensor, Tensor]:
    """The first node of every node's component, `[node]`, and those of the components that lie in several processes.

    Each process finds the components of its own nodes. The edges between these are then joined by everyone.

    Args:
        processes: all make the call.
        row, column: the edges of a process' nodes, by row, `[edge]`: which of its nodes, and a number in the whole
            graph.
        own: the numbers of its nodes in the whole graph, rising.
        owners: which process has a node.
    """
    place, is_inside = places_in(own, column)
    label = own[_first_nodes(row[is_inside], place[is_inside], len(own))]
    row, column = row[~is_inside], column[~is_inside]
    halo, place = Halo.of_entries(processes, own, column, owners)
    pairs = torch.stack([label[row], halo(label)[place]], 1)
    known, joined = _joined(processes.gathered(pairs.unique(dim=0)))
    if len(known):
        at = torch.searchsorted(known, label).clamp(max=len(known) - 1)
        label = torch.where(known[at] == label, joined[at], label)
    return label, joined.unique()


def _first_nodes(row: Tensor, column: Tensor, num_nodes: int) -> Tensor:
    """Of the components of edges that are sorted by row."""
    pointer = torch.searchsorted(row.contiguous(), torch.arange(num_nodes + 1, device=row.device))
    return _first_of(adjacency_of_rows(pointer, column, None))


def _first_of(operator: SparseOperator) -> Tensor:
    component, count = connected_components(operator)
    nodes = torch.arange(len(component), device=component.device)
    first = torch.full((count,), len(component), device=component.device).scatter_reduce(0, component, nodes, "amin")
    return first[component]


def _joined(pairs: Tensor) -> tuple[Tensor, Tensor]:
    """The labels that occur in pairs, rising, and the least label that each of them is joined to."""
    known, place = pairs.unique(return_inverse=True)
    if not len(known):
        return known, known
    both = torch.cat([place, place.flip(1)]).unique(dim=0)
    return known, known[_first_nodes(both[:, 0].contiguous(), both[:, 1], len(known))]
