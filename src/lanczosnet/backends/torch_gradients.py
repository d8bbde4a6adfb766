"""PyTorch's own operations with gradients, or fused forms, that keep a GPU busy."""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`backends.linear.linear`, whose bias gets its gradient by a product: sums over columns leave a GPU idle."""
    return _Linear.apply(x, weight, bias)


def embedding(table: Tensor, rows: Tensor) -> Tensor:
    """`backends.linear.embedding` with a gradient by one product.

    PyTorch adds up the gradients of one row one after the other; few rows with many lookups keep a GPU waiting.
    """
    return _Embedding.apply(table, rows)


def gru_cell(input_gates: Tensor, hidden_gates: Tensor, state: Tensor) -> Tensor:
    """PyTorch's fused cell: one CUDA kernel, and one for the gradient."""
    return torch.ops.aten._thnn_fused_gru_cell(input_gates, hidden_gates, state)[0]


def lstm_cell(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """PyTorch's fused cell: one CUDA kernel, and one for the gradient."""
    found = torch.ops.aten._thnn_fused_lstm_cell(gates, torch.zeros_like(gates), cell.to(gates.dtype))
    return found[:2]


class _Linear(torch.autograd.Function):
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

    They are made by the calls that come before a capture, never in one.
    """
    num_rows = grad.shape[0]
    length = 1 << max(0, num_rows - 1).bit_length()
    return _ones(length, grad.dtype, grad.device)[:, :num_rows]


@cache
def _ones(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.ones(1, length, dtype=dtype, device=device)


class _Embedding(torch.autograd.Function):
    """The gradient is one_hot(rows)^T times that of the result."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.num_rows = table.shape[0]
        return nn.functional.embedding(rows, table)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (rows,), (grad,) = ctx.saved_tensors, grads
        numbers = torch.arange(ctx.num_rows, device=rows.device)
        one_hot = (numbers.unsqueeze(1) == rows.reshape(1, -1)).to(grad.dtype)
        return one_hot @ grad.reshape(-1, grad.shape[-1]), None
