"""The deterministic sparse product as a Triton kernel: one program for each row and some channels."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from lanczosnet.backends.determinism import check_product

ENTRIES = 8  # of a row, at a time; most nodes have as few neighbours
CHANNELS = 128  # at most, of one program


def csr_product(matrix: Tensor, signal: Tensor) -> Tensor:
    """The entries of every row are added in the same order every time."""
    check_product(matrix, signal)
    return rows_product(matrix.crow_indices(), matrix.col_indices(), matrix.values(), signal)


def rows_product(row_pointer: Tensor, column: Tensor, values: Tensor | None, signal: Tensor) -> Tensor:
    """Pointers and columns may be of two integer types; entries without values are one."""
    table = signal if signal.dim() == 2 else signal.unsqueeze(-1)
    return rows_times(row_pointer, column, values, table).view(len(row_pointer) - 1, *signal.shape[1:])


@torch.no_grad()
def rows_times(pointer: Tensor, column: Tensor, values: Tensor | None, table: Tensor) -> Tensor:
    """The row pointers, columns and values of a CSR matrix, and `[column, channel]` -> `[row, channel]`."""
    table = table.contiguous()
    num_rows, num_channels = len(pointer) - 1, table.shape[1]
    found = table.new_empty(num_rows, num_channels)
    if found.numel():
        block = min(triton.next_power_of_2(num_channels), CHANNELS)
        _rows_times[(num_rows, triton.cdiv(num_channels, block))](
            pointer, column, column if values is None else values, table, found, num_channels,
            DOUBLE=table.dtype == torch.float64, WEIGHTED=values is not None,
            ENTRIES=ENTRIES, CHANNELS=block, num_warps=2,
        )  # fmt: skip
    return found


@triton.jit
def _rows_times(  # type: ignore[no-untyped-def]
    pointer, column, values, table, found, num_channels,
    DOUBLE: tl.constexpr, WEIGHTED: tl.constexpr, ENTRIES: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    inside = channel < num_channels
    first, end = tl.load(pointer + row), tl.load(pointer + row + 1)
    TOTAL: tl.constexpr = tl.float64 if DOUBLE else tl.float32  # half precision is added up in single
    total = tl.zeros([CHANNELS], TOTAL)
    while first < end:
        entry = first + tl.arange(0, ENTRIES)
        exists = entry < end
        source = tl.load(column + entry, mask=exists, other=0).to(tl.int64)
        place = source[:, None] * num_channels + channel[None, :]
        numbers = tl.load(table + place, mask=exists[:, None] & inside[None, :], other=0.0).to(TOTAL)
        if WEIGHTED:
            numbers *= tl.load(values + entry, mask=exists, other=0.0).to(TOTAL)[:, None]
        total += tl.sum(numbers, 0)
        first += ENTRIES
    tl.store(found + row * num_channels + channel, total, mask=inside)
