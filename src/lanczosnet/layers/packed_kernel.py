"""`packed.Slots.add_up` as a Triton kernel: PyTorch's bags of embeddings are slow where a bag holds a few rows."""

import torch
import triton
import triton.language as tl
from torch import Tensor

SUMS = 4  # of one program


@torch.no_grad()
def add_up(index: Tensor, nothing: int, weight: Tensor | None, table: Tensor) -> Tensor:
    """`[sum, slot]` and float32 `[row, channel]` -> `[sum, channel]`."""
    index, table = index.contiguous(), table.contiguous()
    num_sums, num_slots = index.shape
    found = table.new_empty(num_sums, table.shape[1])
    if found.numel():
        weights = table if weight is None else weight.to(table.dtype).contiguous()
        _add_up[(triton.cdiv(num_sums, SUMS),)](
            table, index, weights, found, num_sums, nothing, SLOTS=num_slots, CHANNELS=table.shape[1],
            WEIGHTED=weight is not None, SUMS=SUMS, BLOCK=triton.next_power_of_2(table.shape[1]), num_warps=4,
        )  # fmt: skip
    return found


@triton.jit
def _add_up(  # type: ignore[no-untyped-def]
    table, index, weights, found, num_sums, nothing,
    SLOTS: tl.constexpr, CHANNELS: tl.constexpr, WEIGHTED: tl.constexpr, SUMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    number, channel = tl.program_id(0) * SUMS + tl.arange(0, SUMS), tl.arange(0, BLOCK)[None, :]
    total = tl.zeros([SUMS, BLOCK], tl.float32)
    for slot in range(SLOTS):
        place = number * SLOTS + slot
        row = tl.load(index + place, mask=number < num_sums, other=nothing)
        is_there = (row != nothing)[:, None] & (channel < CHANNELS)
        values = tl.load(table + row[:, None] * CHANNELS + channel, mask=is_there, other=0.0)
        if WEIGHTED:
            values *= tl.load(weights + place, mask=number < num_sums, other=0.0)[:, None]
        total += values
    inside = (number < num_sums)[:, None] & (channel < CHANNELS)
    tl.store(found + number[:, None] * CHANNELS + channel, total, mask=inside)
