"""The adjacency of a graph that is stored by rows: nothing is sorted, and little memory is used besides the result."""

import torch
from torch import Tensor

from lanczosnet.affinity.csr_product import ranges_of_rows
from lanczosnet.affinity.pattern_operator import PatternOperator
from lanczosnet.affinity.sparse_operator import SparseOperator, index_type
from lanczosnet.backends import conditions

ENTRIES_AT_A_TIME = 2**24
REMEDY = "convert its files again with `lanczosnet data convert`"


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


def check_rows(row_pointer: Tensor, column: Tensor, edge_weight: Tensor | None, folder: str = "") -> None:
    """An error unless pointers rise, columns rise in every row and are nodes, and the matrix is symmetric.

    The error names the folder. One pass over the entries. That every entry has its transpose is seen from a sum: of the
    hashes of all entries, less those of their transposes.
    """
    num_nodes = len(row_pointer) - 1
    check_row_pointers(row_pointer, len(column), folder)
    difference = torch.zeros((), dtype=torch.int64, device=column.device)
    for rows, entries, begin in ranges_of_rows(row_pointer, ENTRIES_AT_A_TIME):
        row = torch.arange(rows.start, rows.stop, device=column.device).repeat_interleave(begin.diff())
        other = column[entries].long()
        check_columns(other, num_nodes, folder)
        if bool((other == row).any()):
            raise _damaged(f"the row of node {int(row[other == row][0])} has a self-loop", folder)
        falls = (row[1:] == row[:-1]) & (other[1:] <= other[:-1])
        if bool(falls.any()):
            raise _damaged(f"the columns in the row of node {int(row[1:][falls][0])} do not rise", folder)
        bits = _bits(None if edge_weight is None else edge_weight[entries])
        difference += (_hashes(row, other, bits) - _hashes(other, row, bits)).sum()
    if int(difference):
        raise _damaged("some entry has no transpose, or one of another weight", folder)


def check_row_pointers(row_pointer: Tensor, num_entries: int, folder: str = "") -> None:
    """Those of some rows or of all: within the entries, and rising."""
    if not len(row_pointer):  # of a process without rows
        return
    falls = row_pointer.diff() < 0
    if bool(falls.any()) or not 0 <= int(row_pointer[0]) <= int(row_pointer[-1]) <= num_entries:
        raise _damaged(f"the row pointers do not rise from 0 to {num_entries:,}", folder)


def check_columns(column: Tensor, num_nodes: int, folder: str = "") -> None:
    if len(column):
        least, most = (int(end) for end in column.aminmax())
        if least < 0 or most >= num_nodes:
            outside = least if least < 0 else most
            raise _damaged(f"a column is {outside:,}, but there are {num_nodes:,} nodes", folder)


def _damaged(problem: str, folder: str) -> ValueError:
    """Rows that are not in a folder have no name."""
    return ValueError(f"{f'{folder}: ' if folder else ''}{problem}, so this is no stored graph: {REMEDY}")


def _bits(weight: Tensor | None) -> Tensor | int:
    return 0 if weight is None else weight.double().contiguous().view(torch.int64)


def _hashes(row: Tensor, column: Tensor, bits: Tensor | int) -> Tensor:
    """Of entries, as whole numbers that wrap around (the finaliser of SplitMix64)."""
    mixed = row * -7046029254386353131 + column * 2862933555777941757 + bits
    mixed = (mixed ^ (mixed >> 30)) * -4658895280553007687
    mixed = (mixed ^ (mixed >> 27)) * -7723592293110705685
    return mixed ^ (mixed >> 31)
