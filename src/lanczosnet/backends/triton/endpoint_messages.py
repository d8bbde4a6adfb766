"""`packed` as Triton kernels. PyTorch's bags of embeddings are slow where a bag holds a few rows, and a message that is
made where it is added up is never written to memory."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

SUMS = 4  # of one program
CHANNELS = 1024  # at most, of one program for messages


@torch.no_grad()
def sum_slots(table: Tensor, slots: Any) -> Tensor:
    """`baselines.endpoint_messages.sum_slots` of float32."""
    index, nothing, table = slots.index.contiguous(), slots.nothing, table.contiguous()
    num_sums, num_slots = index.shape
    found = table.new_empty(num_sums, table.shape[1])
    if found.numel():
        _sum_slots[(triton.cdiv(num_sums, SUMS),)](
            table, index, found, num_sums, nothing, SLOTS=num_slots, CHANNELS=table.shape[1], SUMS=SUMS,
            BLOCK=triton.next_power_of_2(table.shape[1]), num_warps=4,
        )  # fmt: skip
    return found


@torch.no_grad()
def endpoint_messages(ends: Tensor, senders: Any, relu: bool) -> Tensor:
    """`baselines.endpoint_messages.endpoint_messages` of float32 `[row, 2 x channel]`."""
    ends = ends.contiguous()
    num_rows, channels = len(ends), ends.shape[1] // 2
    met = ends.new_empty(num_rows, channels)
    if met.numel():
        block = _block(channels)
        _endpoint_messages[(num_rows, triton.cdiv(channels, block))](
            ends, *_slots(senders, ends), met, senders.nothing, SLOTS=senders.index.shape[1], CHANNELS=channels,
            RELU=relu, BLOCK=block, num_warps=4,
        )  # fmt: skip
    return met


@torch.no_grad()
def endpoint_messages_backward(ends: Tensor, grad: Tensor, senders: Any, receivers: Any, relu: bool) -> Tensor:
    """`baselines.endpoint_messages.endpoint_messages_backward`."""
    ends, grad = ends.contiguous(), grad.contiguous()
    num_rows, channels = grad.shape
    found = torch.empty_like(ends)
    if found.numel():
        block = _block(channels)
        _endpoint_messages_backward[(num_rows, triton.cdiv(channels, block))](
            ends, grad, *_slots(senders, ends), *_slots(receivers, ends), found, senders.nothing, receivers.nothing,
            SENDERS=senders.index.shape[1], RECEIVERS=receivers.index.shape[1], CHANNELS=channels, RELU=relu,
            BLOCK=block, num_warps=4,
        )  # fmt: skip
    return found


def _block(channels: int) -> int:
    return min(triton.next_power_of_2(channels), CHANNELS)


def _slots(slots: Any, like: Tensor) -> tuple[Tensor, Tensor]:
    assert slots.weight is not None
    return slots.index.contiguous(), slots.weight.to(like.dtype).contiguous()


@triton.jit
def _sum_slots(  # type: ignore[no-untyped-def]
    table, index, found, num_sums, nothing,
    SLOTS: tl.constexpr, CHANNELS: tl.constexpr, SUMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    number = tl.program_id(0).to(tl.int64) * SUMS + tl.arange(0, SUMS)
    channel = tl.arange(0, BLOCK)[None, :]
    total = tl.zeros([SUMS, BLOCK], tl.float32)
    for slot in range(SLOTS):
        row = tl.load(index + number * SLOTS + slot, mask=number < num_sums, other=nothing)
        is_there = (row != nothing)[:, None] & (channel < CHANNELS)
        total += tl.load(table + row[:, None] * CHANNELS + channel, mask=is_there, other=0.0)
    inside = (number < num_sums)[:, None] & (channel < CHANNELS)
    tl.store(found + number[:, None] * CHANNELS + channel, total, mask=inside)


@triton.jit
def _endpoint_messages(  # type: ignore[no-untyped-def]
    ends, index, weights, met, nothing,
    SLOTS: tl.constexpr, CHANNELS: tl.constexpr, RELU: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    mine = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < CHANNELS
    here = tl.load(ends + mine * 2 * CHANNELS + channel, mask=inside, other=0.0)
    total = tl.zeros([BLOCK], tl.float32)
    for slot in range(SLOTS):
        row = tl.load(index + mine * SLOTS + slot)
        is_there = channel < tl.where(row != nothing, CHANNELS, 0)
        message = here + tl.load(ends + row * 2 * CHANNELS + CHANNELS + channel, mask=is_there, other=0.0)
        if RELU:
            message = tl.where(message < 0, 0.0, message)  # where a maximum would drop what is not a number
        total += tl.load(weights + mine * SLOTS + slot) * message
    tl.store(met + mine * CHANNELS + channel, total, mask=inside)


@triton.jit
def _endpoint_messages_backward(  # type: ignore[no-untyped-def]
    ends, grad, senders, sender_weights, receivers, receiver_weights, found, no_sender, no_receiver,
    SENDERS: tl.constexpr, RECEIVERS: tl.constexpr, CHANNELS: tl.constexpr, RELU: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    mine = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = channel < CHANNELS
    as_receiver = tl.load(ends + mine * 2 * CHANNELS + channel, mask=inside, other=0.0)
    as_sender = tl.load(ends + mine * 2 * CHANNELS + CHANNELS + channel, mask=inside, other=0.0)
    arrived = tl.load(grad + mine * CHANNELS + channel, mask=inside, other=0.0)
    share = tl.zeros([BLOCK], tl.float32)
    for slot in range(SENDERS):
        row = tl.load(senders + mine * SENDERS + slot)
        weight = tl.load(sender_weights + mine * SENDERS + slot)
        if RELU:
            is_there = channel < tl.where(row != no_sender, CHANNELS, 0)
            there = tl.load(ends + row * 2 * CHANNELS + CHANNELS + channel, mask=is_there, other=0.0)
            share += tl.where(as_receiver + there > 0, weight, 0.0)
        else:
            share += weight
    tl.store(found + mine * 2 * CHANNELS + channel, share * arrived, mask=inside)
    total = tl.zeros([BLOCK], tl.float32)
    for slot in range(RECEIVERS):
        row = tl.load(receivers + mine * RECEIVERS + slot)
        weight = tl.load(receiver_weights + mine * RECEIVERS + slot)
        is_there = channel < tl.where(row != no_receiver, CHANNELS, 0)
        part = weight * tl.load(grad + row * CHANNELS + channel, mask=is_there, other=0.0)
        if RELU:
            there = tl.load(ends + row * 2 * CHANNELS + channel, mask=is_there, other=0.0)
            part = tl.where(there + as_sender > 0, part, 0.0)
        total += part
    tl.store(found + mine * 2 * CHANNELS + CHANNELS + channel, total, mask=inside)
