"""Attention of one head on one small graph as one program: energies, softmax and the product never leave its registers.

PyTorch's operations write every head's `[node, node]` numbers a dozen times forwards and backwards, which is most of
what a step of GAT on molecules costs. See `baselines.attention.attention` for what is computed.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from lanczosnet.backends.autograd import first_order

SMALLEST = 16  # sides of the tiles of a product


def attention(both: Tensor, log_count: Tensor, num_heads: int, slope: float, dropout: float = 0.0) -> Tensor:
    """`baselines.attention.attention` without dropout."""
    return Attention.apply(both, log_count, num_heads, slope)


class Attention(torch.autograd.Function):
    """Attention of float32 tensors on a GPU; a gradient for `both` alone."""

    @staticmethod
    def forward(ctx: Any, both: Tensor, log_count: Tensor, num_heads: int, slope: float) -> Tensor:
        both, log_count = both.contiguous(), log_count.contiguous()
        num_graphs, width, columns = both.shape
        out_channels = columns // num_heads - 2
        found = both.new_empty(num_graphs, width, num_heads, out_channels)
        ctx.save_for_backward(both, log_count)
        ctx.num_heads, ctx.slope = num_heads, slope
        _forward[(num_graphs, num_heads)](both, log_count, found, **_sizes(both, log_count, num_heads, slope))
        return found

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        both, log_count = ctx.saved_tensors
        of_both = torch.empty_like(both)  # every program writes its head's columns
        sizes = _sizes(both, log_count, ctx.num_heads, ctx.slope)
        _backward[(len(both), ctx.num_heads)](both, log_count, grad.contiguous(), of_both, **sizes)
        return of_both, None, None, None


def _sizes(both: Tensor, log_count: Tensor, num_heads: int, slope: float) -> dict[str, Any]:
    _, width, columns = both.shape
    out_channels = columns // num_heads - 2
    nodes = max(SMALLEST, triton.next_power_of_2(width))
    return {
        "WIDTH": width,
        "HEADS": num_heads,
        "PER_CHANNEL": num_heads // log_count.shape[1],
        "OUT": out_channels,
        "SLOPE": slope,
        "NODES": nodes,
        "CHANNELS": max(SMALLEST, triton.next_power_of_2(out_channels)),
        "num_warps": 1 if nodes <= 32 else 4,
    }


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    both, log_count, found,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, PER_CHANNEL: tl.constexpr, OUT: tl.constexpr, SLOPE: tl.constexpr,
    NODES: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    graph, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    _, attention, states = _attention(both, log_count, graph, head, WIDTH, HEADS, PER_CHANNEL, OUT, SLOPE, NODES,
                                      CHANNELS)  # fmt: skip
    node, channel = tl.arange(0, NODES)[:, None], tl.arange(0, CHANNELS)[None, :]
    place = ((graph * WIDTH + node) * HEADS + head) * OUT + channel
    value = tl.dot(attention, states, input_precision="ieee")
    tl.store(found + place, value, mask=(node < WIDTH) & (channel < OUT))


@triton.jit
def _backward(  # type: ignore[no-untyped-def]
    both, log_count, grad, of_both,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, PER_CHANNEL: tl.constexpr, OUT: tl.constexpr, SLOPE: tl.constexpr,
    NODES: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    graph, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    slope, attention, states = _attention(both, log_count, graph, head, WIDTH, HEADS, PER_CHANNEL, OUT, SLOPE, NODES,
                                          CHANNELS)  # fmt: skip
    node, channel = tl.arange(0, NODES)[:, None], tl.arange(0, CHANNELS)[None, :]
    inside = (node < WIDTH) & (channel < OUT)
    g = tl.load(grad + ((graph * WIDTH + node) * HEADS + head) * OUT + channel, mask=inside, other=0.0)
    row = of_both + (graph * WIDTH + node) * (HEADS * (OUT + 2))
    of_states = tl.dot(tl.trans(attention), g, input_precision="ieee")
    tl.store(row + head * OUT + channel, of_states, mask=inside)
    of_attention = tl.dot(g, tl.trans(states), input_precision="ieee")
    mean = tl.sum(of_attention * attention, 1)
    of_energy = attention * (of_attention - mean[:, None]) * slope
    one = tl.arange(0, NODES)
    energies = of_both + (graph * WIDTH + one) * (HEADS * (OUT + 2)) + HEADS * OUT + head
    tl.store(energies, tl.sum(of_energy, 0), mask=one < WIDTH)  # of sources
    tl.store(energies + HEADS, tl.sum(of_energy, 1), mask=one < WIDTH)  # of targets


@triton.jit
def _attention(  # type: ignore[no-untyped-def]
    both, log_count, graph, head,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, PER_CHANNEL: tl.constexpr, OUT: tl.constexpr, SLOPE: tl.constexpr,
    NODES: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Slopes of leaky ReLU and attention, [node i, node j], and the states [node j, channel]; zeros past the width."""
    one = tl.arange(0, NODES)
    i, j = one[:, None], one[None, :]
    energies = both + (graph * WIDTH + one) * (HEADS * (OUT + 2)) + HEADS * OUT + head
    source = tl.load(energies, mask=one < WIDTH, other=0.0)
    target = tl.load(energies + HEADS, mask=one < WIDTH, other=0.0)
    raw = target[:, None] + source[None, :]
    slope = tl.where(raw > 0, 1.0, SLOPE)
    inside = (i < WIDTH) & (j < WIDTH)
    channel_of_head = graph * (HEADS // PER_CHANNEL) + head // PER_CHANNEL
    counts = tl.load(log_count + (channel_of_head * WIDTH + i) * WIDTH + j, mask=inside, other=float("-inf"))
    # Rows past the width have no neighbour: a zero keeps their softmax a number.
    energy = tl.where(i < WIDTH, raw * slope + counts, 0.0)
    raised = tl.exp(energy - tl.max(energy, 1)[:, None])
    attention = tl.where(inside, raised / tl.sum(raised, 1)[:, None], 0.0)
    place = (graph * WIDTH + one[:, None]) * (HEADS * (OUT + 2)) + head * OUT + tl.arange(0, CHANNELS)[None, :]
    mask = (one[:, None] < WIDTH) & (tl.arange(0, CHANNELS)[None, :] < OUT)
    return slope, attention, tl.load(both + place, mask=mask, other=0.0)
