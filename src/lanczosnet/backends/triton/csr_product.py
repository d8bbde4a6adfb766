"""Deterministic sparse products as Triton kernels: a program for each row and some channels, or for a block of rows."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from lanczosnet.backends.determinism import check_product
from lanczosnet.backends.segments import LongRows

ENTRIES = 8  # of a row, at a time; most nodes have as few neighbours
CHANNELS = 128  # at most, of one program
TILE = 1024  # entries that a program reads at a time for a block of rows
LANES = (4, 32)  # of them, at least and at most, for one row


def csr_product(matrix: Tensor, signal: Tensor, long_rows: LongRows | None = None) -> Tensor:
    """The entries of every row are added in the same order every time."""
    check_product(matrix, signal)
    return _shaped(matrix.crow_indices(), matrix.col_indices(), matrix.values(), signal, long_rows)


def rows_product(
    row_pointer: Tensor, column: Tensor, values: Tensor | None, signal: Tensor, long_rows: LongRows | None = None
) -> Tensor:
    """Pointers and columns may be of two integer types; entries without values are one."""
    return _shaped(row_pointer, column, values, signal, long_rows)


@torch.no_grad()
def _shaped(
    pointer: Tensor, column: Tensor, values: Tensor | None, signal: Tensor, long_rows: LongRows | None
) -> Tensor:
    table = (signal if signal.dim() == 2 else signal.unsqueeze(-1)).contiguous()
    sums = sums_of_blocks if values is None and table.shape[1] == 1 else sums_of_rows
    if long_rows is None:
        found = sums(pointer[:-1], pointer[1:], column, values, table)
    else:
        found = sums(pointer[:-1], torch.where(long_rows.is_long, pointer[:-1], pointer[1:]), column, values, table)
        total = torch.promote_types(table.dtype, torch.float32)
        pieces = sums(long_rows.begin, long_rows.end, column, values, table, total)
        found[long_rows.row] = long_rows.added_up(pieces).to(table.dtype)
    return found.view(len(pointer) - 1, *signal.shape[1:])


def sums_of_rows(
    begin: Tensor, end: Tensor, column: Tensor, values: Tensor | None, table: Tensor, dtype: torch.dtype | None = None
) -> Tensor:
    """Where each row begins and ends among the columns and values, and `[column, channel]` -> `[row, channel]`."""
    num_rows, num_channels = len(begin), table.shape[1]
    found = table.new_empty(num_rows, num_channels, dtype=dtype)
    if found.numel():
        block = min(triton.next_power_of_2(num_channels), CHANNELS)
        _rows_times[(num_rows, triton.cdiv(num_channels, block))](
            begin, end, column, column if values is None else values, table, found, num_channels,
            DOUBLE=table.dtype == torch.float64, WEIGHTED=values is not None,
            ENTRIES=ENTRIES, CHANNELS=block, num_warps=2,
        )  # fmt: skip
    return found


def sums_of_blocks(
    begin: Tensor,
    end: Tensor,
    column: Tensor,
    no_values: Tensor | None,
    table: Tensor,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """The same for one channel and entries of one, faster: neighbouring rows share a program."""
    num_rows = len(begin)
    found = table.new_empty(num_rows, 1, dtype=dtype)
    if num_rows:
        lanes = min(max(triton.next_power_of_2(len(column) // num_rows), LANES[0]), LANES[1])
        rows = TILE // lanes
        _blocks_times[(triton.cdiv(num_rows, rows),)](
            begin, end, column, table, found, num_rows,
            DOUBLE=table.dtype == torch.float64, ROWS=rows, ENTRIES=lanes, num_warps=4,
        )  # fmt: skip
    return found


@triton.jit
def _rows_times(  # type: ignore[no-untyped-def]
    begin, end, column, values, table, found, num_channels,
    DOUBLE: tl.constexpr, WEIGHTED: tl.constexpr, ENTRIES: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    inside = channel < num_channels
    first, last = tl.load(begin + row), tl.load(end + row)
    TOTAL: tl.constexpr = tl.float64 if DOUBLE else tl.float32  # half precision is added up in single
    total = tl.zeros([CHANNELS], dtype=TOTAL)
    while first < last:
        entry = first + tl.arange(0, ENTRIES)
        exists = entry < last
        source = tl.load(column + entry, mask=exists, other=0).to(tl.int64)
        place = source[:, None] * num_channels + channel[None, :]
        numbers = tl.load(table + place, mask=exists[:, None] & inside[None, :], other=0.0).to(TOTAL)
        if WEIGHTED:
            numbers *= tl.load(values + entry, mask=exists, other=0.0).to(TOTAL)[:, None]
        total += tl.sum(numbers, 0)
        first += ENTRIES
    tl.store(found + row * num_channels + channel, total, mask=inside)


@triton.jit
def _blocks_times(  # type: ignore[no-untyped-def]
    begin, end, column, table, found, num_rows,
    DOUBLE: tl.constexpr, ROWS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    exists = row < num_rows
    first = tl.load(begin + row, mask=exists, other=0).to(tl.int64)
    last = tl.load(end + row, mask=exists, other=0).to(tl.int64)
    TOTAL: tl.constexpr = tl.float64 if DOUBLE else tl.float32
    total = tl.zeros([ROWS, ENTRIES], dtype=TOTAL)
    longest = tl.max(last - first)
    done = longest - longest  # of its type
    while done < longest:
        entry = first[:, None] + (done + tl.arange(0, ENTRIES))[None, :]
        is_there = entry < last[:, None]
        source = tl.load(column + entry, mask=is_there, other=0).to(tl.int64)
        total += tl.load(table + source, mask=is_there, other=0.0).to(TOTAL)
        done += ENTRIES
    tl.store(found + row, tl.sum(total, 1), mask=exists)
