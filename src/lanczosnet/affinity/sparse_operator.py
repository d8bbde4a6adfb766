"""A sparse matrix with gradients that stay sparse."""

import warnings
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from lanczosnet.affinity.csr_product import HALVES, csr_product, entry_product, rows_product, sampled_rows
from lanczosnet.affinity.operator import DenseOperator, Operator, largest_magnitude
from lanczosnet.backends.autograd import first_order
from lanczosnet.backends.segments import LongRows, long_rows, row_pointers

INT32_MAX = 2**31 - 1
ENTRIES_AT_A_TIME = 2**21  # that are scaled
MOST_LOOKED_AT = 2**23  # entries, for the largest


def index_type(largest: int) -> torch.dtype:
    """The type of indices up to this one."""
    return torch.int32 if largest <= INT32_MAX else torch.int64


# PyTorch announces once per process that CSR is in beta; said here, it does not reach the user.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], torch.zeros(0), (1, 1), check_invariants=False)


class SparseOperator(Operator):
    """A CSR matrix over all nodes, with every diagonal entry stored so that self-loops and shifts change values only.

    Gradients reach the entries through one sampled product, so nothing of size node x node is ever allocated. Where
    entries differ in the two directions of an edge, and the pattern does not, `transposition` `[entry]` says where the
    entry (j, i) of every (i, j) is: the transpose is then at hand.

    Columns are int32 up to 2^31 nodes, and row pointers up to 2^31 entries.
    """

    def __init__(
        self,
        row_pointer: Tensor,
        column: Tensor,
        values: Tensor,
        *,
        diagonal_position: Tensor,
        segment: Tensor | None = None,
        num_segments: int | None = None,
        symmetric: bool = True,
        transposition: Tensor | None = None,
        long_rows: LongRows | None = None,
    ) -> None:
        self.transposition, self.long_rows = transposition, long_rows
        self.row_pointer = row_pointer
        self.column = column
        self.values = values
        self.diagonal_position = diagonal_position
        self.segment = segment
        self.num_segments = num_segments
        self.symmetric = symmetric
        self._csr: Tensor | None = None  # which has one type of indices
        if row_pointer.dtype == column.dtype:
            parts = row_pointer, column, values.detach()
            self._csr = torch.sparse_csr_tensor(*parts, self.shape, check_invariants=False)

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self.row_pointer) - 1,) * 2)

    @property
    def row(self) -> Tensor:
        """The row of every stored entry."""
        count = self.row_pointer.diff()
        nodes = torch.arange(len(count), device=self.device, dtype=self.column.dtype)
        return nodes.repeat_interleave(count, output_size=len(self.column))

    def with_halo(self, signal: Tensor) -> Tensor:
        """The rows of a signal that columns stand for: here those of all nodes."""
        return signal

    def to(self, *args: Any, **kwargs: Any) -> Self:
        values = self.values.to(*args, **kwargs)
        if values is self.values:
            return self
        device = values.device
        row_pointer = self.row_pointer.to(device)
        return type(self)(
            row_pointer,
            self.column.to(device),
            values,
            diagonal_position=self.diagonal_position.to(device),
            segment=None if self.segment is None else self.segment.to(device),
            num_segments=self.num_segments,
            symmetric=self.symmetric,
            transposition=None if self.transposition is None else self.transposition.to(device),
            long_rows=None if self.long_rows is None else long_rows(row_pointer),
        )

    def values_at(self, row: Tensor, entry: Tensor) -> Tensor:
        """Those of some stored entries, whose rows are known."""
        return self.values.index_select(0, entry)

    def on_part(
        self,
        node: Tensor,
        take: Callable[[Tensor], Tensor],
        row_pointer: Tensor,
        column: Tensor,
        diagonal_position: Tensor,
    ) -> "SparseOperator":
        """The operator on some nodes, of which all is known but the values; `take` gives those of all its entries."""
        return SparseOperator(
            row_pointer, column, take(self.values), diagonal_position=diagonal_position, symmetric=self.symmetric
        )

    def dense(self) -> Tensor:
        matrix = self.new_zeros(*self.shape)
        return matrix.index_put((self.row.long(), self.column.long()), self.values)

    def with_values(self, values: Tensor, *, symmetric: bool | None = None) -> Self:
        return type(self)(
            self.row_pointer,
            self.column,
            values,
            diagonal_position=self.diagonal_position,
            segment=self.segment,
            num_segments=self.num_segments,
            symmetric=self.symmetric if symmetric is None else symmetric,
            transposition=self.transposition,
            long_rows=self.long_rows,
        )

    def degree(self) -> Tensor:
        return self.values.new_zeros(self.num_nodes).index_add(0, self.row, self.values)

    def scaled(self, left: Tensor | None = None, right: Tensor | None = None) -> Self:
        values, row = self.values, self.row if left is not None else None
        if any(part is not None and is_watched(part) for part in (values, left, right)):
            scaled = _scaled(values, row, self.column, left, right)
        else:  # without copies of the size of the result
            scaled = values.new_empty(len(values))
            for first in range(0, len(values), ENTRIES_AT_A_TIME):
                part = slice(first, first + ENTRIES_AT_A_TIME)
                scaled[part] = _scaled(values[part], None if row is None else row[part], self.column[part], left, right)
        return self.with_values(scaled, symmetric=self.symmetric and left is right)

    def plus_diagonal(self, diagonal: Tensor) -> Self:
        return self.with_values(self.values.index_add(0, self.diagonal_position, diagonal))

    @property
    def T(self) -> Operator:
        if self.symmetric:
            return self
        if self.transposition is not None:
            return self.with_values(self.values[self.transposition])
        row, column = self.row, self.column
        order = torch.argsort(column, stable=True)
        count = torch.bincount(column, minlength=self.num_nodes)
        transposed = row[order]
        position = (transposed == column[order]).nonzero().squeeze(1)
        return type(self)(
            row_pointers(count).to(self.row_pointer.dtype),
            transposed,
            self.values[order],
            diagonal_position=position,
            segment=self.segment,
            num_segments=self.num_segments,
            symmetric=False,
        )

    def product(self, signal: Tensor) -> Tensor:
        if not torch.compiler.is_exporting() and (is_watched(self.values) or is_watched(signal)):
            return _SparseProduct.apply(self.values, signal, self)
        return self._multiply(signal)

    def sampled_product(self, left: Tensor, right: Tensor) -> Tensor:
        if self.values.numel() == 0:
            return torch.zeros_like(self.values)
        if self.values.dtype in HALVES:
            return self.to(torch.float32).sampled_product(left.float(), right.float()).to(self.values.dtype)
        if self._csr is None:
            return sampled_rows(self.row_pointer, self.column, left, right)
        # beta = 0: only the pattern of the first argument is used.
        return torch.sparse.sampled_addmm(self._csr, left.contiguous(), right.mT, beta=0.0).values()

    def largest_entry(self) -> Tensor:
        """Of the first rows of a large graph: a lower bound, too, and no pass over the matrix."""
        return largest_magnitude(self.values.detach()[:MOST_LOOKED_AT])

    def without_segments(self) -> Self:
        """The same matrix, seen as one graph."""
        if self.segment is None:
            return self
        whole = self.with_values(self.values)
        whole.segment = whole.num_segments = None
        return whole

    def padded(self) -> DenseOperator:
        """The graphs of a ragged batch as a padded dense batch `[graph, node, node]`, nodes in their order."""
        from lanczosnet.affinity.padding import dense_blocks, padding_of  # they build on this module

        if self.segment is None:
            segment, count = torch.zeros(self.num_nodes, dtype=torch.long, device=self.device), 1
        else:
            segment, count = self.segment, self.num_segments or 0
        return dense_blocks(self, padding_of(segment, count))

    def _multiply(self, signal: Tensor) -> Tensor:
        if self.num_nodes == 0:
            return signal.clone()
        if torch.compiler.is_exporting():
            return entry_product(self.row, self.column, self.values, self.num_nodes, signal)
        if self._csr is None:
            return rows_product(self.row_pointer, self.column, self.values.detach(), signal, self.long_rows)
        return csr_product(self._csr, signal, self.long_rows)


def _scaled(values: Tensor, row: Tensor | None, column: Tensor, left: Tensor | None, right: Tensor | None) -> Tensor:
    if left is not None and row is not None:
        values = values * left.index_select(0, row)
    return values if right is None else values * right.index_select(0, column)


class _SparseProduct(torch.autograd.Function):
    """CSR @ signal whose backward keeps the pattern; plain autograd through `torch.sparse.mm` allocates N x N."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, signal: Tensor, operator: SparseOperator) -> Tensor:
        ctx.operator = operator
        # Signals are most of what a network stores for its gradient, and only that of the values needs them.
        ctx.save_for_backward(*((values, signal) if ctx.needs_input_grad[0] else ()))
        return operator._multiply(signal)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        operator: SparseOperator = ctx.operator
        grad_values = grad_signal = None
        if ctx.needs_input_grad[0]:
            _, signal = ctx.saved_tensors
            pair = (grad, signal) if grad.dim() == 2 else (grad.unsqueeze(1), signal.unsqueeze(1))
            grad_values = operator.sampled_product(*pair)
        if ctx.needs_input_grad[1]:
            grad_signal = operator.T.product(grad)
        return grad_values, grad_signal, None


def is_watched(tensor: Tensor) -> bool:
    """Whether autograd follows a tensor, backward or forward (where a product without a rule for it must raise)."""
    return (tensor.requires_grad and torch.is_grad_enabled()) or unpack_dual(tensor).tangent is not None
