"""`layers.residual.layer_norm` of very many rows of few channels.

PyTorch starts a block of threads for every row. A million rows of 16 channels took 1.5 ms on an H200, for 128 MB.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from lanczosnet.backends.autograd import first_order

NUMBERS = 2048  # of a tile
MOST_PROGRAMS = 1024  # that leave sums for the gradients of weight and bias


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """`layers.residual.layer_norm`."""
    return _LayerNorm.apply(x, weight, bias, epsilon)


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
        x = x.contiguous()
        found = torch.empty_like(x)
        size, shape = _sizes(x)
        _normalized[(triton.cdiv(size[0], shape["ROWS"]),)](x, weight, bias, found, *size, epsilon, **shape)
        ctx.save_for_backward(x, weight)
        ctx.epsilon = epsilon
        return found

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, weight = ctx.saved_tensors
        of_x, grad = torch.empty_like(x), grad.contiguous()
        size, shape = _sizes(x)
        programs = min(MOST_PROGRAMS, triton.cdiv(size[0], shape["ROWS"]))
        sums = x.new_empty(2, programs, size[1])
        _gradients[(programs,)](x, weight, grad, of_x, sums, *size, ctx.epsilon, programs, **shape)
        of_weight, of_bias = sums.sum(1)
        return of_x, of_weight, of_bias, None


def _sizes(x: Tensor) -> tuple[tuple[int, int], dict[str, int]]:
    """Rows and channels, and those of a tile."""
    channels = triton.next_power_of_2(x.shape[-1])
    shape = {"ROWS": max(1, NUMBERS // channels), "CHANNELS": channels, "num_warps": 4}
    return (x.numel() // x.shape[-1], x.shape[-1]), shape


@triton.jit
def _centred(x, at, mask, num_channels, epsilon):  # type: ignore[no-untyped-def]
    """Rows without their means, and one over their deviations."""
    X = tl.load(x + at, mask=mask, other=0.0)
    X = tl.where(mask, X - (tl.sum(X, 1) / num_channels)[:, None], 0.0)
    return X, (1.0 / tl.sqrt(tl.sum(X * X, 1) / num_channels + epsilon))[:, None]


@triton.jit(do_not_specialize=["num_rows", "epsilon"])
def _normalized(  # type: ignore[no-untyped-def]
    x, weight, bias, found, num_rows, num_channels, epsilon, ROWS: tl.constexpr, CHANNELS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    channel = tl.arange(0, CHANNELS)
    at = row[:, None] * num_channels + channel[None, :]
    mask = (row < num_rows)[:, None] & (channel < num_channels)[None, :]
    w = tl.load(weight + channel, mask=channel < num_channels, other=0.0)
    b = tl.load(bias + channel, mask=channel < num_channels, other=0.0)
    X, scale = _centred(x, at, mask, num_channels, epsilon)
    tl.store(found + at, X * scale * w[None, :] + b[None, :], mask=mask)


@triton.jit(do_not_specialize=["num_rows", "epsilon", "programs"])
def _gradients(  # type: ignore[no-untyped-def]
    x, weight, grad, of_x, sums, num_rows, num_channels, epsilon, programs,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Of x; and every program's shares of those of weight and bias, `[2, program, channel]`."""
    program = tl.program_id(0).to(tl.int64)
    channel = tl.arange(0, CHANNELS)
    w = tl.load(weight + channel, mask=channel < num_channels, other=0.0)
    of_weight = tl.zeros([ROWS, CHANNELS], tl.float32)
    of_bias = tl.zeros([ROWS, CHANNELS], tl.float32)
    first = program * ROWS
    while first < num_rows:
        row = first + tl.arange(0, ROWS)
        at = row[:, None] * num_channels + channel[None, :]
        mask = (row < num_rows)[:, None] & (channel < num_channels)[None, :]
        X, scale = _centred(x, at, mask, num_channels, epsilon)
        X = X * scale
        G = tl.load(grad + at, mask=mask, other=0.0)
        of_weight += G * X
        of_bias += G
        G = G * w[None, :]
        along = (tl.sum(G * X, 1) / num_channels)[:, None]
        mean = (tl.sum(G, 1) / num_channels)[:, None]
        tl.store(of_x + at, scale * (G - mean - X * along), mask=mask)
        first += programs.to(tl.int64) * ROWS
    place = program * num_channels + channel
    tl.store(sums + place, tl.sum(of_weight, 0), mask=channel < num_channels)
    tl.store(sums + programs * num_channels + place, tl.sum(of_bias, 0), mask=channel < num_channels)
