"""X W + b, whose bias gets its gradient by a product on a GPU: a sum over columns leaves most of it idle."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

BIAS_BY_PRODUCT_ON = {"cuda"}  # kinds of devices


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`[row, in_channels]`, `[in_channels, out_channels]` and `[out_channels]` -> `[row, out_channels]`."""
    kind = x.device.type
    if kind in BIAS_BY_PRODUCT_ON and not torch.is_autocast_enabled(kind):  # which casts, and undoes it backwards
        return _Affine.apply(x, weight, bias)
    return torch.addmm(bias, x, weight)


class _Affine(torch.autograd.Function):
    """The gradient of the bias is a row of ones times that of the result."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        (x, weight), (grad,) = ctx.saved_tensors, grads
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        return (
            grad @ weight.mT if needs_x else None,
            x.mT @ grad if needs_weight else None,
            (_row_of_ones(grad) @ grad).squeeze(0) if needs_bias else None,
        )


def _row_of_ones(grad: Tensor) -> Tensor:
    """`[1, row]`, part of a longer row: few lengths are ever made, and those that CUDA graphs read stay.

    They are made by the calls that come before a recording, never in one.
    """
    num_rows = grad.shape[0]
    length = 1 << max(0, num_rows - 1).bit_length()
    return _ones(length, grad.dtype, grad.device)[:, :num_rows]


@cache
def _ones(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.ones(1, length, dtype=dtype, device=device)
