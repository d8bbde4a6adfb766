"""Rows of a small table, with a gradient that a GPU adds up in one product."""

from typing import Any

import torch
from torch import Tensor, nn

BY_PRODUCT_ON = {"cuda"}  # kinds of devices; a CPU adds up row by row in no time
MOST = 2**22  # numbers of the product's other side, one for every row of the table and lookup


def lookup(table: Tensor, rows: Tensor) -> Tensor:
    """`table[rows]` for `[row, channel]` and integers `[...]` -> `[..., channel]`.

    PyTorch adds up the gradients of one row one after the other; few rows with many lookups keep a GPU waiting.
    """
    if table.device.type in BY_PRODUCT_ON and table.shape[0] * rows.numel() <= MOST:
        return _Lookup.apply(table, rows)
    return nn.functional.embedding(rows, table)


class _Lookup(torch.autograd.Function):
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
