"""The adjacency of a graph that is stored by rows: nothing is sorted, and little memory is used besides the result."""

import torch
from torch import Tensor

from lanczosnet.affinity.csr_product import ranges_of_rows
from lanczosnet.affinity.pattern_operator import PatternOperator
from lanczosnet.affinity.sparse_operator import SparseOperator, index_type
from lanczosnet.backends import conditions

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
    has_values = edge_weight is not None or not conditions.drops_values(num_entries)
    if edge_weight is None:
        edge_weight = torch.ones((), dtype=dtype, device=column.device).expand(len(column))
    dtype = dtype or edge_weight.dtype
    columns = column.new_empty(num_entries, dtype=index_type(num_nodes))
    values = edge_weight.new_zeros(num_entries if has_values else 0, dtype=dtype)
    diagonal = row_pointer[1:].clone()  # of the nodes without a neighbour behind them
    for rows, entries, begin in ranges_of_rows(row_pointer, ENTRIES_AT_A_TIME):
        first, end = rows.start, rows.stop
        nodes = torch.arange(first, end, device=column.device)
        row = nodes.repeat_interleave(begin.diff())
        is_behind = column[entries] > row
        place = torch.arange(entries.start, entries.stop, device=column.device) + row + is_behind
        columns[place] = column[entries].to(columns.dtype)
        if has_values:
            values[place] = edge_weight[entries].to(dtype)
        diagonal[first:end] -= torch.bincount(row[is_behind] - first, minlength=end - first)
    nodes = torch.arange(num_nodes, device=column.device)
    diagonal += nodes
    columns[diagonal] = nodes.to(columns.dtype)
    pointer = (row_pointer + torch.arange(num_nodes + 1, device=column.device)).to(index_type(num_entries))
    if has_values:
        return SparseOperator(pointer, columns, values, diagonal_position=diagonal)
    return PatternOperator.with_loops(pointer, columns, diagonal, values.new_zeros(num_nodes))
