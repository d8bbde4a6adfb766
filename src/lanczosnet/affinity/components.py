"""Connected components of an operator's graph, on the device it is on."""

import torch
from torch import Tensor

from lanczosnet.affinity.sparse_operator import SparseOperator, index_type
from lanczosnet.backends.segments import row_pointers

ROWS_AT_A_TIME = 2**24  # whose entries are held at once
MOST_RUNS = 64


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
    first, count = _first_and_count(operator, node)
    runs, pointer = _runs(operator, node), row_pointers(count)
    entries = _positions(first, count) if runs is None else runs
    column = place.index_select(0, _taken(operator.column, entries))
    diagonal = operator.diagonal_position.index_select(0, node) - first + pointer[:-1]
    if len(column) and int(column.min()) < 0:  # a stored zero may lead elsewhere
        is_inside = column >= 0
        kept = row_pointers(is_inside.long())
        column, pointer, diagonal = column[is_inside], kept[pointer], kept[diagonal]
    else:
        is_inside = None

    def take(values: Tensor) -> Tensor:
        values = _taken(values, entries)
        return values if is_inside is None else values[is_inside]

    return operator.on_part(node, take, pointer.to(index_type(len(column))), column, diagonal)


def row_entries(operator: SparseOperator, rows: Tensor, numbers: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The stored entries of some rows, which rise: the row of each, or its number, and its position."""
    first, count = _first_and_count(operator, rows)
    entry = _positions(first, count)
    if numbers is None and len(entry) == len(operator.column):  # all rows
        return operator.row, entry
    numbers = rows.to(operator.column.dtype) if numbers is None else numbers
    return numbers.repeat_interleave(count, output_size=len(entry)), entry


def _runs(operator: SparseOperator, rows: Tensor) -> list[slice] | None:
    """The stored entries of rows that are a few ranges, as ranges, which are copied faster than they are gathered."""
    begins = (rows.diff() != 1).nonzero().squeeze(1) + 1
    if len(rows) == 0 or len(begins) >= MOST_RUNS:
        return None
    first, last = torch.cat([rows[:1], rows[begins]]), torch.cat([rows[begins - 1], rows[-1:]])
    bounds = operator.row_pointer[torch.stack([first, last + 1], 1)]
    return [slice(begin, end) for begin, end in bounds.tolist()]


def _taken(values: Tensor, entries: Tensor | list[slice]) -> Tensor:
    if isinstance(entries, Tensor):
        return values.index_select(0, entries)
    return torch.cat([values[part] for part in entries])


def _first_and_count(operator: SparseOperator, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Where the entries of some rows begin, and how many there are."""
    first = operator.row_pointer.index_select(0, rows)
    return first, operator.row_pointer.index_select(0, rows + 1) - first


def _positions(first: Tensor, count: Tensor) -> Tensor:
    """Ranges one after another, as positions of the type that they are given in."""
    end = count.cumsum(0, dtype=count.dtype)
    total = int(end[-1]) if len(end) else 0
    offset = (first - (end - count)).repeat_interleave(count, output_size=total)
    return offset.add_(torch.arange(total, device=first.device, dtype=first.dtype))


def _joined(least: Tensor, operator: SparseOperator, row: Tensor, entry: Tensor) -> Tensor:
    """`least` once these entries join their row and column."""
    # A stored zero is no edge.
    is_edge = operator.values_at(row, entry).detach() != 0
    column = torch.where(is_edge, operator.column.index_select(0, entry), row.to(operator.column.dtype))
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
