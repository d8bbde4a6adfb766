"""Products with sparse matrices."""

from typing import Any

import torch
from torch import Tensor

from lanczosnet.backends import operation
from lanczosnet.backends.segments import row_pointers


@operation
def csr_product(matrix: Tensor, signal: Tensor) -> Tensor:
    """A CSR matrix times `[column]` or `[column, channel]`.

    PyTorch's product is non-deterministic on a GPU even under `torch.use_deterministic_algorithms`; other
    implementations take its place there.
    """
    return matrix @ signal


def csr_matrix(row: Tensor, column: Tensor, entries: Tensor, shape: tuple[int, int]) -> Tensor:
    """A CSR matrix from entries sorted by row."""
    count = torch.bincount(row, minlength=shape[0])
    return torch.sparse_csr_tensor(row_pointers(count).int(), column.int(), entries, shape, check_invariants=False)


def constant_product(signal: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
    """matrix @ signal with a gradient for the signal; the matrix is data, sparse, and its transpose is at hand."""
    return _ConstantProduct.apply(signal, matrix, transpose)


class _ConstantProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, signal: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.matrices = matrix, transpose
        ctx.signal_type = signal.dtype
        with torch.autocast(signal.device.type, enabled=False):
            return csr_product(matrix, signal.to(matrix.dtype))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        matrix, transpose = ctx.matrices
        return constant_product(grad, transpose, matrix).to(ctx.signal_type), None, None
