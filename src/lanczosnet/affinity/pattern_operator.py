"""An unweighted graph's matrices: a pattern between two diagonal scalings, without values."""

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor

from lanczosnet.affinity.csr_product import rows_product
from lanczosnet.affinity.operator import largest_magnitude
from lanczosnet.affinity.sparse_operator import SparseOperator, is_watched
from lanczosnet.backends.segments import LongRows, long_rows


class PatternOperator(SparseOperator):
    """diag(left) P diag(right) + diag(shift), where P is symmetric, and one at every stored entry.

    A graph keeps its columns and a few numbers per node: S = D^-1/2 (A + I) D^-1/2 is P between two scalings, and A is
    P less the diagonal. `values` are made anew whenever they are asked for. Results that are rounded differ from those
    with values in their last digits.
    """

    has_values = False

    def __init__(
        self,
        row_pointer: Tensor,
        column: Tensor,
        *,
        diagonal_position: Tensor,
        shift: Tensor | None,
        left: Tensor | None = None,
        right: Tensor | None = None,
        symmetric: bool = True,
        dtype: torch.dtype | None = None,
        long_rows: LongRows | None = None,
    ) -> None:
        """Each of `left`, `right` and `shift` is `[node]`; ones, ones and zeros where absent."""
        self.row_pointer, self.column, self.diagonal_position = row_pointer, column, diagonal_position
        self.left, self.right, self.shift = left, right, shift
        self.long_rows = long_rows
        self.symmetric = symmetric
        self.transposition = None
        numbers = [each for each in (left, right, shift) if each is not None]
        self._dtype = numbers[0].dtype if numbers else dtype or torch.get_default_dtype()

    @classmethod
    def with_loops(cls, row_pointer: Tensor, column: Tensor, diagonal_position: Tensor, loops: Tensor) -> Self:
        """An adjacency with this diagonal."""
        numbers: Any = {"diagonal_position": diagonal_position, "shift": -torch.ones_like(loops)}
        return cls(row_pointer, column, long_rows=long_rows(row_pointer), **numbers).plus_diagonal(loops)

    @property
    def values(self) -> Tensor:  # type: ignore[override]
        """Of all stored entries, as an operator that keeps them has them."""
        ones = self.with_values(self.new_zeros(len(self.column)).fill_(1))
        values = ones.scaled(self.left, self.right).values
        return values if self.shift is None else values.index_add(0, self.diagonal_position, self.shift)

    @property
    def dtype(self) -> torch.dtype:
        return self._dtype

    @property
    def device(self) -> torch.device:
        return self.column.device

    @property
    def requires_grad(self) -> bool:
        return any(each is not None and each.requires_grad for each in (self.left, self.right, self.shift))

    def to(self, *args: Any, **kwargs: Any) -> Self:
        like = self.new_zeros(0).to(*args, **kwargs)
        if (like.dtype, like.device) == (self.dtype, self.device):
            return self
        row_pointer = self.row_pointer.to(like.device)
        return type(self)(
            row_pointer,
            self.column.to(like.device),
            diagonal_position=self.diagonal_position.to(like.device),
            symmetric=self.symmetric,
            dtype=like.dtype,
            long_rows=long_rows(row_pointer),
            **self._numbers(lambda each: each.to(like)),
        )

    def detach(self) -> Self:
        return self._with(**self._numbers(Tensor.detach), symmetric=self.symmetric)

    def with_values(self, values: Tensor, *, symmetric: bool | None = None) -> SparseOperator:  # type: ignore[override]
        return SparseOperator(
            self.row_pointer,
            self.column,
            values,
            diagonal_position=self.diagonal_position,
            symmetric=self.symmetric if symmetric is None else symmetric,
        )

    def values_at(self, row: Tensor, entry: Tensor) -> Tensor:
        column = self.column.index_select(0, entry)
        values = self.new_zeros(1).add(1).expand(len(entry))
        values = _times(_at(self.right, column), _times(_at(self.left, row), values))
        return values if self.shift is None else values + torch.where(row == column, self.shift[row], 0)

    def on_part(
        self,
        node: Tensor,
        take: Callable[[Tensor], Tensor],
        row_pointer: Tensor,
        column: Tensor,
        diagonal_position: Tensor,
    ) -> "PatternOperator":
        return type(self)(
            row_pointer,
            column,
            diagonal_position=diagonal_position,
            symmetric=self.symmetric,
            dtype=self.dtype,
            long_rows=long_rows(row_pointer),
            **self._numbers(lambda each: each[node]),
        )

    def degree(self) -> Tensor:
        if self.left is not None or self.right is not None:
            return self.product(self.new_zeros(self.num_nodes).add(1))
        count = self.row_pointer.diff().to(self.dtype)
        return count if self.shift is None else count + self.shift

    def scaled(self, left: Tensor | None = None, right: Tensor | None = None) -> Self:
        shift = None if self.shift is None else _times(right, _times(left, self.shift))
        symmetric = self.symmetric and left is right
        return self._with(_both(self.left, left), _both(self.right, right), shift, symmetric)

    def plus_diagonal(self, diagonal: Tensor) -> Self:
        shift = diagonal if self.shift is None else self.shift + diagonal
        is_needed = is_watched(shift) or bool(shift.any())
        return self._with(self.left, self.right, shift if is_needed else None, self.symmetric)

    def __neg__(self) -> Self:
        left = self.new_zeros(self.num_nodes).sub(1) if self.left is None else -self.left
        return self._with(left, self.right, None if self.shift is None else -self.shift, self.symmetric)

    @property
    def T(self) -> "PatternOperator":
        return self if self.symmetric else self._with(self.right, self.left, self.shift, False)

    def product(self, signal: Tensor) -> Tensor:
        if torch.compiler.is_exporting():
            return self.with_values(self.values).product(signal)
        found = _times(self.left, self._sums(_times(self.right, signal)))
        return found if self.shift is None else found + _times(self.shift, signal)

    def sampled_product(self, left: Tensor, right: Tensor) -> Tensor:
        return self.with_values(self.values).sampled_product(left, right)

    def largest_entry(self) -> Tensor:
        """Of the first entry of every row, its last, and the diagonal."""
        node = torch.arange(self.num_nodes, device=self.device)
        entries = self.row_pointer[:-1].long(), self.row_pointer[1:].long() - 1, self.diagonal_position
        return largest_magnitude(torch.cat([self.values_at(node, entry).detach() for entry in entries]))

    def without_segments(self) -> Self:
        return self

    def _sums(self, signal: Tensor) -> Tensor:
        """P signal."""
        if self.num_nodes == 0:
            return signal.clone()
        if is_watched(signal):
            return _Sums.apply(signal, self)
        return rows_product(self.row_pointer, self.column, None, signal, self.long_rows)

    def _numbers(self, change: Callable[[Tensor], Tensor]) -> dict[str, Tensor | None]:
        """The scalings and the shift, changed; one scaling on both sides stays one."""
        left = None if self.left is None else change(self.left)
        right = left if self.right is self.left else None if self.right is None else change(self.right)
        return {"left": left, "right": right, "shift": None if self.shift is None else change(self.shift)}

    def _with(self, left: Tensor | None, right: Tensor | None, shift: Tensor | None, symmetric: bool) -> Self:
        return type(self)(
            self.row_pointer,
            self.column,
            diagonal_position=self.diagonal_position,
            shift=shift,
            left=left,
            right=right,
            symmetric=symmetric,
            dtype=self.dtype,
            long_rows=self.long_rows,
        )


class _Sums(torch.autograd.Function):
    """P signal; P is its own transpose."""

    @staticmethod
    def forward(ctx: Any, signal: Tensor, operator: PatternOperator) -> Tensor:
        ctx.operator = operator
        return rows_product(operator.row_pointer, operator.column, None, signal, operator.long_rows)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.operator._sums(grad), None


def _times(scale: Tensor | None, signal: Tensor) -> Tensor:
    """diag(scale) signal."""
    return signal if scale is None else scale.view(-1, *[1] * (signal.dim() - 1)) * signal


def _both(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    return second if first is None else first if second is None else first * second


def _at(scale: Tensor | None, node: Tensor) -> Tensor | None:
    return None if scale is None else scale.index_select(0, node)
