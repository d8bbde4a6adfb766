"""The adjacency of a graph that is stored by rows: nothing is sorted, and little memory is used besides the result."""

import itertools

import torch
from torch import Tensor

from lanczosnet.affinity.sparse_operator import SparseOperator, index_type

ENTRIES_AT_A_TIME = 2**24


def adjacency_of_rows(
    row_pointer: Tensor, column: Tensor, edge_weight: Tensor | None, dtype: torch.dtype | None = None
) -> SparseOperator:
    """A with every diagonal entry stored, as `adjacency` makes it of the same edges.

    Args:
        row_pointer: `[node + 1]`.
        column: `[entry]`, rising in every row, both directions of every edge, no self-loops.
        edge_weight: `[entry]`, one where absent.
        dtype: of the entries; that of the weights where absent.
    """
    num_nodes, num_entries = len(row_pointer) - 1, len(column) + len(row_pointer) - 1
    if edge_weight is None:
        edge_weight = torch.ones((), dtype=dtype, device=column.device).expand(len(column))
    chosen = index_type(max(num_entries, num_nodes))
    columns = column.new_empty(num_entries, dtype=chosen)
    values = edge_weight.new_zeros(num_entries, dtype=dtype or edge_weight.dtype)
    diagonal = row_pointer[1:].clone()  # of the nodes without a neighbour behind them
    for first, end in _row_ranges(row_pointer):
        entries = slice(int(row_pointer[first]), int(row_pointer[end]))
        nodes = torch.arange(first, end, device=column.device)
        row = nodes.repeat_interleave(row_pointer[first : end + 1].diff())
        is_behind = column[entries] > row
        place = torch.arange(entries.start, entries.stop, device=column.device) + row + is_behind
        columns[place] = column[entries].to(chosen)
        values[place] = edge_weight[entries].to(values.dtype)
        diagonal[first:end] -= torch.bincount(row[is_behind] - first, minlength=end - first)
    nodes = torch.arange(num_nodes, device=column.device)
    diagonal += nodes
    columns[diagonal] = nodes.to(chosen)
    pointer = row_pointer + torch.arange(num_nodes + 1, device=column.device)
    return SparseOperator(pointer.to(chosen), columns, values, diagonal_position=diagonal)


def _row_ranges(row_pointer: Tensor) -> list[tuple[int, int]]:
    """Ranges of rows with about so many entries each."""
    num_nodes, num_entries = len(row_pointer) - 1, int(row_pointer[-1])
    wanted = torch.arange(0, num_entries, ENTRIES_AT_A_TIME, device=row_pointer.device)
    begin = torch.searchsorted(row_pointer[:-1].contiguous(), wanted).unique().tolist()
    bounds = sorted({0, *begin, num_nodes})
    return list(itertools.pairwise(bounds))
