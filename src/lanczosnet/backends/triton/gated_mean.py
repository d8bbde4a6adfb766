"""The sums of `GatedMeanReadout` over graphs in blocks as Triton kernels, where one or two graphs share a block.

With two, the nodes of the second run backwards from the end, as `lanczosnet.batching.padded` puts them.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from lanczosnet.backends.autograd import first_order


def read_blocks(x: Tensor, readout: Any, mask: Tensor) -> Tensor:
    """`batching.padded.read_blocks` of the gated mean, in a product and a Triton kernel."""
    return GatedMean.apply(readout.gate_and_values(x).float(), mask, len(readout.linear.bias))


class GatedMean(torch.autograd.Function):
    """Means over nodes of sigmoid(gate) times values: `[block, node, column]` -> `[graph, channel]`.

    Columns are the values of all channels, the gate, and any number that is not looked at. The mask, `[graph, node]`,
    has ones on nodes; with twice as many graphs as blocks, those of its second half are the second of their blocks.
    """

    @staticmethod
    def forward(ctx: Any, both: Tensor, mask: Tensor, channels: int) -> Tensor:
        both, mask = both.contiguous(), mask.to(both.dtype).contiguous()
        ctx.save_for_backward(both, mask)
        ctx.channels = channels
        found = both.new_empty(len(mask), channels)
        _forward[(len(mask),)](both, mask, found, **_sizes(both, mask, channels, rows=mask.shape[1]))
        return found

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        both, mask = ctx.saved_tensors
        of_both = torch.empty_like(both)
        sizes = _sizes(both, mask, ctx.channels, rows=both.shape[1])
        _backward[(len(both),)](both, mask, grad.contiguous(), of_both, **sizes)
        return of_both, None, None


def _sizes(both: Tensor, mask: Tensor, channels: int, rows: int) -> dict[str, Any]:
    num_blocks, width, columns = both.shape
    return {
        "num_blocks": num_blocks,
        "WIDTH": width,
        "ALONE": mask.shape[1],
        "OUT": channels,
        "COLUMNS": columns,
        "PAIRED": len(mask) > num_blocks,
        "ROWS": triton.next_power_of_2(max(rows, 2)),
        "SPACE": triton.next_power_of_2(columns),
        "num_warps": 4,
    }


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    both, mask, found, num_blocks,
    WIDTH: tl.constexpr, ALONE: tl.constexpr, OUT: tl.constexpr, COLUMNS: tl.constexpr, PAIRED: tl.constexpr,
    ROWS: tl.constexpr, SPACE: tl.constexpr,
):  # fmt: skip
    graph, node, channel = tl.program_id(0).to(tl.int64), tl.arange(0, ROWS), tl.arange(0, SPACE)
    weight = tl.load(mask + graph * ALONE + node, mask=node < ALONE, other=0.0)
    row = graph * WIDTH + node
    if PAIRED:
        row = tl.where(graph < num_blocks, row, (graph - num_blocks) * WIDTH + WIDTH - 1 - node)
    gate = tl.sigmoid(tl.load(both + row * COLUMNS + OUT, mask=node < ALONE, other=0.0))
    inside = (node[:, None] < ALONE) & (channel[None, :] < OUT)
    values = tl.load(both + row[:, None] * COLUMNS + channel[None, :], mask=inside, other=0.0)
    share = weight / tl.maximum(tl.sum(weight, 0), 1.0)
    tl.store(found + graph * OUT + channel, tl.sum((share * gate)[:, None] * values, 0), mask=channel < OUT)


@triton.jit
def _backward(  # type: ignore[no-untyped-def]
    both, mask, grad, of_both, num_blocks,
    WIDTH: tl.constexpr, ALONE: tl.constexpr, OUT: tl.constexpr, COLUMNS: tl.constexpr, PAIRED: tl.constexpr,
    ROWS: tl.constexpr, SPACE: tl.constexpr,
):  # fmt: skip
    block, place, channel = tl.program_id(0).to(tl.int64), tl.arange(0, ROWS), tl.arange(0, SPACE)
    of_mean = _shared_out(mask, grad, block, place, channel, ALONE, OUT)
    if PAIRED:
        of_mean += _shared_out(mask, grad, num_blocks + block, WIDTH - 1 - place, channel, ALONE, OUT)
    row = block * WIDTH + place
    gate = tl.sigmoid(tl.load(both + row * COLUMNS + OUT, mask=place < WIDTH, other=0.0))
    inside = (place[:, None] < WIDTH) & (channel[None, :] < OUT)
    values = tl.load(both + row[:, None] * COLUMNS + channel[None, :], mask=inside, other=0.0)
    of_gate = tl.sum(of_mean * values, 1) * gate * (1.0 - gate)
    of_values = of_mean * gate[:, None]
    found = tl.where(channel[None, :] < OUT, of_values, tl.where(channel[None, :] == OUT, of_gate[:, None], 0.0))
    exists = (place[:, None] < WIDTH) & (channel[None, :] < COLUMNS)
    tl.store(of_both + row[:, None] * COLUMNS + channel[None, :], found, mask=exists)


@triton.jit
def _shared_out(  # type: ignore[no-untyped-def]
    mask, grad, graph, node, channel, ALONE: tl.constexpr, OUT: tl.constexpr
):
    """What the gradient of a graph's mean is for its nodes, `[node, channel]`; zero where the graph has none."""
    exists = (node >= 0) & (node < ALONE)
    weight = tl.load(mask + graph * ALONE + node, mask=exists, other=0.0)
    of_mean = tl.load(grad + graph * OUT + channel, mask=channel < OUT, other=0.0)
    return (weight / tl.maximum(tl.sum(weight, 0), 1.0))[:, None] * of_mean[None, :]
