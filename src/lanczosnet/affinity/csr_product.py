"""Products with sparse matrices."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from lanczosnet.backends import operation
from lanczosnet.backends.segments import LongRows, row_pointers

HALVES = (torch.float16, torch.bfloat16)
ENTRIES_AT_A_TIME = 2**21  # of a range of rows


@operation
def csr_product(matrix: Tensor, signal: Tensor, long_rows: LongRows | None = None) -> Tensor:
    """A CSR matrix times `[column]` or `[column, channel]`.

    PyTorch's product is non-deterministic on a GPU even under `torch.use_deterministic_algorithms`; other
    implementations take its place there, and cut `long_rows` into pieces. Half precision, which it does not know on a
    CPU, is added up in single.
    """
    if matrix.dtype in HALVES and signal.dtype == matrix.dtype:
        return (matrix.float() @ signal.float()).to(signal.dtype)
    return matrix @ signal


@operation
def rows_product(
    row_pointer: Tensor, column: Tensor, values: Tensor | None, signal: Tensor, long_rows: LongRows | None = None
) -> Tensor:
    """A matrix by rows times `[column]` or `[column, channel]`: every entry is one where there are no values.

    Row pointers and columns may be of two types, which PyTorch's CSR tensors do not admit. Kernels cut `long_rows` into
    pieces.
    """
    if signal.dtype in HALVES:
        single = values if values is None else values.float()
        return rows_product(row_pointer, column, single, signal.float(), long_rows).to(signal.dtype)
    found = signal.new_empty(len(row_pointer) - 1, *signal.shape[1:])
    ones = None
    for rows, entries, pointer in ranges_of_rows(row_pointer):
        if values is None and signal.dim() == 2 and signal.shape[1] > 1:
            found[rows] = sums_of_rows(pointer, column[entries], signal)
            continue
        count = entries.stop - entries.start
        if values is None and (ones is None or len(ones) < count):
            ones = signal.new_ones(count)
        weights = ones[:count] if values is None else values[entries]  # type: ignore[index]
        found[rows] = _csr(pointer, column[entries], weights, len(signal)) @ signal
    return found


def sampled_rows(row_pointer: Tensor, column: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """left right^T at the entries of a matrix by rows, `[row, channel]` and `[column, channel]`."""
    parts = [left.new_empty(0)]
    for rows, entries, pointer in ranges_of_rows(row_pointer):
        pattern = _csr(pointer, column[entries], left.new_zeros(entries.stop - entries.start), len(right))
        # beta = 0: only the pattern of the first argument is used.
        parts.append(torch.sparse.sampled_addmm(pattern, left[rows].contiguous(), right.mT, beta=0.0).values())
    return torch.cat(parts)


def ranges_of_rows(row_pointer: Tensor, at_a_time: int | None = None) -> Iterator[tuple[slice, slice, Tensor]]:
    """Rows with about equally many entries, their entries, and their pointers, which begin at zero."""
    num_rows = len(row_pointer) - 1
    total, step = int(row_pointer[-1]), at_a_time or ENTRIES_AT_A_TIME
    wanted = torch.arange(step, max(total, step), step, device=row_pointer.device).to(row_pointer.dtype)
    bounds = sorted({0, *torch.searchsorted(row_pointer[:-1].contiguous(), wanted).tolist(), num_rows})
    ends = row_pointer[bounds].tolist()
    for first, end, begin, stop in zip(bounds, bounds[1:], ends, ends[1:], strict=False):
        yield slice(first, end), slice(begin, stop), row_pointer[first : end + 1] - begin


def sums_of_rows(pointer: Tensor, column: Tensor, signal: Tensor) -> Tensor:
    """The product with ones, faster than by a CSR matrix where there are several channels."""
    options = {"mode": "sum", "include_last_offset": True}
    return torch.nn.functional.embedding_bag(column, signal, pointer.to(column.dtype), **options)  # type: ignore[arg-type]


def _csr(pointer: Tensor, column: Tensor, values: Tensor, num_columns: int) -> Tensor:
    shape = len(pointer) - 1, num_columns
    return torch.sparse_csr_tensor(pointer.to(column.dtype), column, values, shape, check_invariants=False)


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
