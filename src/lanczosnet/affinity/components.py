"""Connected components of an operator's graph, on the device it is on."""

import torch
from torch import Tensor

from lanczosnet.affinity.sparse_operator import SparseOperator, index_type
from lanczosnet.backends.segments import row_pointers

ROWS_AT_A_TIME = 2**24  # whose entries are held at once


def connected_components(operator: SparseOperator) -> tuple[Tensor, int]:
    """Each node's component, `[node]`, numbered by first node, and how many there are.

    Nodes point to the least node that they are known to be joined to (Shiloach and Vishkin 1982). Two entries of every
    row join most of the graph, and only the rows outside its largest part are then looked at (Sutton et al. 2018).
    """
    if not isinstance(operator, SparseOperator):
        raise TypeError(
            f"components are those of a sparse operator, not of a {type(operator).__name__}: make one of an edge_index "
            "or a SciPy matrix with lanczosnet.affinity.adjacency"
        )
    if operator.num_nodes == 0:
        return torch.zeros(0, dtype=torch.long, device=operator.device), 0
    node = torch.arange(operator.num_nodes, device=operator.device)
    least = node
    for entry in (operator.row_pointer[:-1], operator.row_pointer[1:] - 1):  # no row is empty: it has its diagonal
        least = _joined(least, operator, node, entry)
    rest = (least != torch.bincount(least).argmax()).nonzero().squeeze(1) if operator.symmetric else node
    for rows in rest.split(ROWS_AT_A_TIME):
        least = _joined(least, operator, *row_entries(operator, rows))
    is_first = least == node
    label = (is_first.cumsum(0) - 1).index_select(0, least)
    return label, int(is_first.sum())


def subgraph(operator: SparseOperator, node: Tensor) -> SparseOperator:
    """The operator on some nodes, in rising order, without the entries that leave them."""
    place = torch.full((operator.num_nodes,), -1, device=operator.device, dtype=operator.column.dtype)
    place[node] = torch.arange(len(node), device=operator.device, dtype=place.dtype)
    row, entry = row_entries(operator, node)
    row, column = place[row], place[operator.column[entry]]
    is_inside = column >= 0
    if not bool(is_inside.all()):  # a stored zero may lead elsewhere
        row, column, entry = row[is_inside], column[is_inside], entry[is_inside]
    pointer = row_pointers(torch.bincount(row, minlength=len(node))).to(index_type(len(column)))
    return operator.on_part(node, entry, pointer, column, (row == column).nonzero().squeeze(1))


def row_entries(operator: SparseOperator, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The stored entries of some rows, which rise: the row of each, and its position."""
    first = operator.row_pointer.index_select(0, rows)
    count = operator.row_pointer.index_select(0, rows + 1) - first
    total = int(count.sum())
    if total == len(operator.column):  # all rows
        return operator.row, torch.arange(total, device=rows.device)
    offset = (first - (count.cumsum(0) - count)).repeat_interleave(count, output_size=total)
    row = rows.to(operator.column.dtype).repeat_interleave(count, output_size=total)
    return row, offset.add_(torch.arange(total, device=rows.device))


def _joined(least: Tensor, operator: SparseOperator, row: Tensor, entry: Tensor) -> Tensor:
    """`least` once these entries join their row and column."""
    # A stored zero is no edge.
    is_edge = operator.values_at(row, entry).detach() != 0
    column = torch.where(is_edge, operator.column[entry], row.to(operator.column.dtype))
    left, right = least.index_select(0, row), least.index_select(0, column)
    while True:
        is_apart = left != right
        left, right = left[is_apart], right[is_apart]
        if not len(left):
            return least
        least = least.scatter_reduce(0, torch.maximum(left, right), torch.minimum(left, right), "amin")
        least = _pointed_to_the_end(least)
        left, right = least.index_select(0, left), least.index_select(0, right)


def _pointed_to_the_end(least: Tensor) -> Tensor:
    """Follow the pointers, twice as far in every round."""
    while True:
        further = least.index_select(0, least)
        if torch.equal(further, least):
            return least
        least = further
