"""From a list of edges to rows: sorted by row and column, duplicates added up, every diagonal entry stored.

Rows are made range by range, so that little memory is used besides the edges and the result.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity.pattern_operator import PatternOperator
from lanczosnet.affinity.sparse_operator import SparseOperator, index_type
from lanczosnet.backends.segments import long_rows, row_pointers

ENTRIES_AT_A_TIME = 2**21  # of a range of rows, at least: sorting them takes ten times their memory
MOST_RANGES = 16  # each of which looks through all edges
MANY_ENTRIES = 2**20  # from which on long rows are looked for


class CoalescedRows(NamedTuple):
    """Some rows of the result."""

    column: Tensor  # [entry]
    values: Tensor | None  # [entry]; None where all are one but those of the diagonal
    length: Tensor  # entries of every row
    diagonal: Tensor  # place of every row's diagonal entry
    loops: Tensor  # its value


def coalesced(
    edge_index: Tensor,
    edge_weight: Tensor,
    num_nodes: int,
    *,
    batch: Tensor | None = None,
    num_graphs: int | None = None,
    symmetric: bool = True,
    drops_values: bool = False,
) -> SparseOperator:
    """The CSR matrix of these edges; without values, where `drops_values` says so and no two edges are added up."""
    source, target = edge_index
    ranges = row_ranges(_entries_of_rows(source, num_nodes))
    pieces = [
        _rows(_taken(source, place), _taken(target, place), _taken(edge_weight, place), rows, num_nodes, drops_values)
        for rows, place in by_range(source, ranges)
    ]
    column, values, length, diagonal, loops = ([*parts] for parts in zip(*pieces, strict=True))
    del pieces  # so that `_joined` frees the parts of what it has put together
    pointer = row_pointers(_joined(length))
    num_entries = int(pointer[-1])
    pointer = pointer.to(index_type(num_entries))
    has_values = any(part is not None for part in values)
    values = [_filled(*parts) for parts in zip(column, values, diagonal, loops, strict=True)] if has_values else []
    begin = itertools.accumulate((len(part) for part in column), initial=0)
    position = _joined([place + first for place, first in zip(diagonal, begin, strict=False)])
    if not has_values:
        return PatternOperator.with_loops(pointer, _joined(column), position, _joined(loops))
    return SparseOperator(
        pointer,
        _joined(column),
        _joined(values),
        diagonal_position=position,
        segment=None if batch is None else batch.long(),
        num_segments=num_graphs,
        symmetric=symmetric,
        long_rows=long_rows(pointer) if num_entries >= MANY_ENTRIES else None,
    )


def _entries_of_rows(source: Tensor, num_nodes: int) -> Tensor:
    """With the diagonal, and still with duplicates."""
    count = torch.ones(num_nodes, dtype=torch.long, device=source.device)
    for part in source.split(ENTRIES_AT_A_TIME):
        count += torch.bincount(part, minlength=num_nodes)
    return count


def row_ranges(count: Tensor) -> list[tuple[int, int]]:
    """Ranges of rows with about equally many entries each."""
    end = count.cumsum(0)
    total, num_rows = int(end[-1]) if len(end) else 0, len(end)
    wanted = torch.arange(0, total, max(ENTRIES_AT_A_TIME, -(-total // MOST_RANGES)), device=end.device)
    bounds = sorted({0, *torch.searchsorted(end, wanted[1:]).tolist(), num_rows})
    return list(itertools.pairwise(bounds)) or [(0, 0)]


def by_range(index: Tensor, ranges: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], Tensor | None]]:
    """The positions whose index is in each range, rising; None where that is all of them."""
    if len(ranges) == 1:
        yield ranges[0], None
        return
    for first, end in ranges:
        places = [
            ((part >= first) & (part < end)).nonzero().squeeze(1) + number * ENTRIES_AT_A_TIME
            for number, part in enumerate(index.split(ENTRIES_AT_A_TIME))
        ]
        yield (first, end), torch.cat(places)


def _taken(values: Tensor, place: Tensor | None) -> Tensor:
    return values if place is None else values.index_select(0, place)


def _rows(
    source: Tensor, target: Tensor, weight: Tensor, rows: tuple[int, int], num_nodes: int, drops_values: bool
) -> CoalescedRows:
    """Of the edges that begin there."""
    first, end = rows
    nodes, num_edges = torch.arange(first, end, device=source.device), len(source)
    key = torch.cat([source, nodes]).long().sub_(first).mul_(num_nodes).add_(torch.cat([target, nodes]))
    del source, target
    key, order = key.sort()
    is_new = torch.ones_like(key, dtype=torch.bool)
    is_new[1:] = key[1:] != key[:-1]
    position = torch.empty_like(order).index_copy_(0, order, is_new.cumsum(0).sub_(1))
    del order
    key = key[is_new]
    values = weight.new_zeros(len(key)).index_add(0, position[:num_edges], weight)
    diagonal = position[num_edges:].clone()
    del position
    count = torch.bincount(key // max(num_nodes, 1), minlength=end - first)
    loops = values[diagonal]
    are_ones = drops_values and bool((values.index_fill(0, diagonal, 1) == 1).all())
    column = (key % max(num_nodes, 1)).to(index_type(num_nodes))
    return CoalescedRows(column, None if are_ones else values, count, diagonal, loops)


def _filled(column: Tensor, values: Tensor | None, diagonal: Tensor, loops: Tensor) -> Tensor:
    """The values, also where they were left out."""
    return loops.new_ones(len(column)).index_copy(0, diagonal, loops) if values is None else values


def _joined(parts: list[Tensor]) -> Tensor:
    """One after another; the parts are let go."""
    whole = parts[0] if len(parts) == 1 else torch.cat(parts)
    parts.clear()
    return whole


def with_transpose(operator: SparseOperator) -> Iterator[tuple[Tensor, Tensor, slice, Tensor | None]]:
    """Range by range of rows: the keys row * node + column of its entries and of its columns' entries, transposed, both
    rising; where the former are, and where the latter are in the same order."""
    num_nodes, row, column = max(operator.num_nodes, 1), operator.row, operator.column
    for rows, place in by_range(column, row_ranges(operator.row_pointer.diff().long())):
        entries = slice(int(operator.row_pointer[rows[0]]), int(operator.row_pointer[rows[1]]))
        here = row[entries].long() * num_nodes + column[entries]
        there, order = (_taken(column, place).long() * num_nodes + _taken(row, place)).sort()
        yield here, there, entries, order if place is None else place[order]
