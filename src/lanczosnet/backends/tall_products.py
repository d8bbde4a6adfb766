"""Products with matrices of very many rows and few columns on a GPU.

Whether a library divides a sum over a million rows among the GPU's processors depends on the shapes. Here it is always
divided: pieces are multiplied as a batch, and their sums are added up.
"""

from typing import Any

import torch
from torch import Tensor

ROWS = 2**11  # of a piece


def block_coefficients(vectors: Tensor, signal: Tensor) -> Tensor:
    """`filters.fourier.block_coefficients`."""
    return _Coefficients.apply(vectors, signal)


def block_signal(vectors: Tensor, coefficients: Tensor) -> Tensor:
    """`filters.fourier.block_signal`."""
    return _Signal.apply(vectors, coefficients)


class _Coefficients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, signal: Tensor) -> Tensor:
        ctx.vectors = vectors
        whole = len(vectors) // ROWS * ROWS
        pieces = [part[:whole].reshape(-1, ROWS, part.shape[1]) for part in (vectors, signal)]
        return torch.addmm((pieces[0].mT @ pieces[1]).sum(0), vectors[whole:].mT, signal[whole:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, block_signal(ctx.vectors, grad)


class _Signal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, coefficients: Tensor) -> Tensor:
        ctx.vectors = vectors
        return vectors @ coefficients

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, block_coefficients(ctx.vectors, grad)
