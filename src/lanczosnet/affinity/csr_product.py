"""Products with sparse matrices."""

from typing import Any

import torch
from torch import Tensor

from lanczosnet.backends import operation
from lanczosnet.backends.segments import row_pointers

HALVES = (torch.float16, torch.bfloat16)


@operation
def csr_product(matrix: Tensor, signal: Tensor) -> Tensor:
    """A CSR matrix times `[column]` or `[column, channel]`.

    PyTorch's product is non-deterministic on a GPU even under `torch.use_deterministic_algorithms`; other
    implementations take its place there. Half precision, which it does not know on a CPU, is added up in single.
    """
    if matrix.dtype in HALVES and signal.dtype == matrix.dtype:
        return (matrix.float() @ signal.float()).to(signal.dtype)
    return matrix @ signal


def entry_product(row: Tensor, column: Tensor, entries: Tensor, num_rows: int, signal: Tensor) -> Tensor:
    """The same from the entries one by one: slower, and all that `torch.export` can write down of a sparse matrix."""
    products = entries.view(-1, *[1] * (signal.dim() - 1)) * signal.index_select(0, column)
    return products.new_zeros(num_rows, *signal.shape[1:]).index_add(0, row, products)


def csr_matrix(row: Tensor, column: Tensor, entries: Tensor, shape: tuple[int, int]) -> Tensor:
    """A CSR matrix from entries sorted by row."""
    count = torch.bincount(row, minlength=shape[0])
    return torch.sparse_csr_tensor(row_pointers(count).int(), column.int(), entries, shape, check_invariants=False)


def constant_product(signal: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
    """matrix @ signal with a gradient for the signal; the matrix is data, sparse, and its transpose is known."""
    return _ConstantProduct.apply(signal, matrix, transpose)


class ConstantMatrix:
    """A sparse matrix that is data, and its transpose."""

    def __init__(self, row: Tensor, column: Tensor, entries: Tensor, shape: tuple[int, int]) -> None:
        """From entries sorted by row."""
        self.shape, self._entries = shape, (row, column, entries)
        order = torch.argsort(column, stable=True)
        self._matrix = csr_matrix(row, column, entries, shape)
        self._transpose = csr_matrix(column[order], row[order], entries[order], (shape[1], shape[0]))

    def product(self, signal: Tensor) -> Tensor:
        if torch.compiler.is_exporting():
            row, column, entries = self._entries
            return entry_product(row, column, entries, self.shape[0], signal.to(entries.dtype))
        return constant_product(signal, self._matrix, self._transpose)

    def transposed_product(self, signal: Tensor) -> Tensor:
        if torch.compiler.is_exporting():
            row, column, entries = self._entries
            return entry_product(column, row, entries, self.shape[1], signal.to(entries.dtype))
        return constant_product(signal, self._transpose, self._matrix)


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
