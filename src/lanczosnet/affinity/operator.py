"""The one operator type: a matrix over the nodes that is only ever multiplied with signals.

Two storages share it. `DenseOperator` holds a matrix or a padded batch of small ones; `SparseOperator` holds one
large graph, or many ragged ones side by side, in CSR form with int32 indices wherever they fit.
"""

import warnings
from abc import ABC, abstractmethod
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from lanczosnet.affinity.first_order import first_order

INT32_MAX = 2**31 - 1

# PyTorch announces once per process that CSR is in beta; said here, it does not reach the user.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 0], [], torch.zeros(0), (1, 1), check_invariants=False)


class Operator(ABC):
    """A square matrix over nodes, shape `[..., node, node]`, that multiplies signals `[..., node(, channel)]`."""

    symmetric: bool
    values: Tensor  # the stored entries: what gradients flow into

    # Which graph (or component) a node belongs to, [node]; None where the whole operator is one graph or a dense batch.
    segment: Tensor | None = None
    num_segments: int | None = None
    # Which rows of a padded dense batch are nodes, [..., node]; None where all are.
    mask: Tensor | None = None

    @property
    @abstractmethod
    def shape(self) -> torch.Size: ...

    @property
    def num_nodes(self) -> int:
        return self.shape[-1]

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        return self.values.device

    @property
    def requires_grad(self) -> bool:
        return self.values.requires_grad

    @abstractmethod
    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device and/or a floating dtype, as `torch.Tensor.to`."""

    @abstractmethod
    def dense(self) -> Tensor:
        """The matrix itself: for tests and for graphs that are known to be small."""

    @abstractmethod
    def with_values(self, values: Tensor) -> Self:
        """The same pattern with other entries."""

    @abstractmethod
    def degree(self) -> Tensor:
        """Row sums, `[..., node]`."""

    @abstractmethod
    def scaled(self, left: Tensor | None = None, right: Tensor | None = None) -> Self:
        """diag(left) A diag(right)."""

    @abstractmethod
    def plus_diagonal(self, diagonal: Tensor) -> Self:
        """A + diag(diagonal)."""

    @property
    @abstractmethod
    def T(self) -> "Operator": ...

    @abstractmethod
    def product(self, signal: Tensor) -> Tensor:
        """A @ signal for `[..., node]` or `[..., node, channel]` in the operator's dtype; `@` is the public door."""

    @abstractmethod
    def sampled_product(self, left: Tensor, right: Tensor) -> Tensor:
        """left right^T at the stored entries, `[..., node, channel]` each: the gradient of a product's entries."""

    @abstractmethod
    def largest_entry(self) -> Tensor:
        """A lower bound on the norm, in float64: the largest absolute entry, per graph of a dense batch."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Operators do not change, so that copies of a model may share them; PyTorch cannot copy sparse tensors."""
        return self

    def __neg__(self) -> Self:
        return self.with_values(-self.values)

    def __matmul__(self, signal: Tensor) -> Tensor:
        rank = len(self.shape)
        if signal.dim() not in (rank - 1, rank) or signal.shape[rank - 2] != self.num_nodes:
            raise ValueError(
                f"an operator of shape {tuple(self.shape)} multiplies signals [..., node] or [..., node, channel] "
                f"with {self.num_nodes} nodes, but got shape {tuple(signal.shape)}"
            )
        # The Krylov part keeps its precision under autocast.
        with torch.autocast(self.device.type, enabled=False):
            return self.product(signal.to(self.dtype))

    def __repr__(self) -> str:
        kind = "symmetric" if self.symmetric else "general"
        return f"{type(self).__name__}({kind}, shape={tuple(self.shape)}, dtype={self.dtype}, device={self.device})"


class DenseOperator(Operator):
    """A dense matrix `[node, node]` or a padded batch `[graph, node, node]`; padding is zero rows and columns."""

    def __init__(self, values: Tensor, *, mask: Tensor | None = None, symmetric: bool = True) -> None:
        self.values = values
        self.mask = mask
        self.symmetric = symmetric

    @property
    def shape(self) -> torch.Size:
        return self.values.shape

    def to(self, *args: Any, **kwargs: Any) -> Self:
        values = self.values.to(*args, **kwargs)
        mask = None if self.mask is None else self.mask.to(values.device)
        return type(self)(values, mask=mask, symmetric=self.symmetric)

    def dense(self) -> Tensor:
        return self.values

    def with_values(self, values: Tensor, *, symmetric: bool | None = None) -> Self:
        symmetric = self.symmetric if symmetric is None else symmetric
        return type(self)(values, mask=self.mask, symmetric=symmetric)

    def degree(self) -> Tensor:
        return self.values.sum(-1)

    def scaled(self, left: Tensor | None = None, right: Tensor | None = None) -> Self:
        values = self.values
        if left is not None:
            values = left.unsqueeze(-1) * values
        if right is not None:
            values = values * right.unsqueeze(-2)
        return self.with_values(values, symmetric=self.symmetric and left is right)

    def plus_diagonal(self, diagonal: Tensor) -> Self:
        if self.mask is not None:
            diagonal = diagonal * self.mask
        return self.with_values(self.values + torch.diag_embed(diagonal))

    @property
    def T(self) -> Operator:
        return self if self.symmetric else self.with_values(self.values.mT)

    def product(self, signal: Tensor) -> Tensor:
        if signal.dim() < self.values.dim():
            return (self.values @ signal.unsqueeze(-1)).squeeze(-1)
        return self.values @ signal

    def sampled_product(self, left: Tensor, right: Tensor) -> Tensor:
        return left @ right.mT

    def largest_entry(self) -> Tensor:
        return _largest_magnitude(self.values.detach().flatten(-2))


class SparseOperator(Operator):
    """A CSR matrix over all nodes, with every diagonal entry stored so that self-loops and shifts change values only.

    Gradients reach the entries through one sampled product, so nothing of size node x node is ever allocated.
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
    ) -> None:
        self.row_pointer = row_pointer
        self.column = column
        self.values = values
        self.diagonal_position = diagonal_position
        self.segment = segment
        self.num_segments = num_segments
        self.symmetric = symmetric
        size = (len(row_pointer) - 1,) * 2
        self._csr = torch.sparse_csr_tensor(row_pointer, column, values.detach(), size, check_invariants=False)

    @property
    def shape(self) -> torch.Size:
        return self._csr.shape

    @property
    def row(self) -> Tensor:
        """The row of every stored entry."""
        count = self.row_pointer.diff()
        nodes = torch.arange(len(count), device=self.device, dtype=self.column.dtype)
        return nodes.repeat_interleave(count, output_size=len(self.column))

    def to(self, *args: Any, **kwargs: Any) -> Self:
        values = self.values.to(*args, **kwargs)
        device = values.device
        return type(self)(
            self.row_pointer.to(device),
            self.column.to(device),
            values,
            diagonal_position=self.diagonal_position.to(device),
            segment=None if self.segment is None else self.segment.to(device),
            num_segments=self.num_segments,
            symmetric=self.symmetric,
        )

    def dense(self) -> Tensor:
        matrix = self.values.new_zeros(self.shape)
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
        )

    def degree(self) -> Tensor:
        return self.values.new_zeros(self.num_nodes).index_add(0, self.row, self.values)

    def scaled(self, left: Tensor | None = None, right: Tensor | None = None) -> Self:
        values = self.values
        if left is not None:
            values = values * left.index_select(0, self.row)
        if right is not None:
            values = values * right.index_select(0, self.column)
        return self.with_values(values, symmetric=self.symmetric and left is right)

    def plus_diagonal(self, diagonal: Tensor) -> Self:
        return self.with_values(self.values.index_add(0, self.diagonal_position, diagonal))

    @property
    def T(self) -> Operator:
        if self.symmetric:
            return self
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
        if _is_watched(self.values) or _is_watched(signal):
            return _SparseProduct.apply(self.values, signal, self)
        return self._multiply(signal)

    def sampled_product(self, left: Tensor, right: Tensor) -> Tensor:
        if self.values.numel() == 0:
            return torch.zeros_like(self.values)
        # beta = 0: only the pattern of the first argument is used.
        return torch.sparse.sampled_addmm(self._csr, left.contiguous(), right.mT, beta=0.0).values()

    def largest_entry(self) -> Tensor:
        return _largest_magnitude(self.values.detach())

    def without_segments(self) -> Self:
        """The same matrix, seen as one graph."""
        whole = self.with_values(self.values)
        whole.segment = whole.num_segments = None
        return whole

    def padded(self) -> DenseOperator:
        """The graphs of a ragged batch as a padded dense batch `[graph, node, node]`, nodes in their order."""
        from lanczosnet.affinity.blocks import block_layout, dense_blocks  # they build on this module

        if self.segment is None:
            segment, count = torch.zeros(self.num_nodes, dtype=torch.long, device=self.device), 1
        else:
            segment, count = self.segment, self.num_segments or 0
        return dense_blocks(self, block_layout(segment, count))

    def _multiply(self, signal: Tensor) -> Tensor:
        if self.num_nodes == 0:
            return signal.clone()
        return self._csr @ signal


class _SparseProduct(torch.autograd.Function):
    """CSR @ signal whose backward keeps the pattern; plain autograd through `torch.sparse.mm` allocates N x N."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, signal: Tensor, operator: SparseOperator) -> Tensor:
        ctx.operator = operator
        ctx.save_for_backward(values, signal)
        return operator._multiply(signal)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        _, signal = ctx.saved_tensors
        operator: SparseOperator = ctx.operator
        grad_values = grad_signal = None
        if ctx.needs_input_grad[0]:
            pair = (grad, signal) if grad.dim() == 2 else (grad.unsqueeze(1), signal.unsqueeze(1))
            grad_values = operator.sampled_product(*pair)
        if ctx.needs_input_grad[1]:
            grad_signal = operator.T.product(grad)
        return grad_values, grad_signal, None


def _is_watched(tensor: Tensor) -> bool:
    """Whether autograd follows a tensor, backward or forward (where a product without a rule for it must raise)."""
    return (tensor.requires_grad and torch.is_grad_enabled()) or unpack_dual(tensor).tangent is not None


def _largest_magnitude(values: Tensor) -> Tensor:
    """The largest absolute value along the last axis, in float64, without a copy."""
    if values.shape[-1] == 0:
        return values.new_zeros(values.shape[:-1], dtype=torch.float64)
    lowest, highest = values.aminmax(dim=-1)
    return torch.maximum(-lowest, highest).double()


def row_pointers(count: Tensor) -> Tensor:
    """CSR pointers from the number of entries per row."""
    return torch.cat([count.new_zeros(1), count.cumsum(0)])


def places_within(segment: Tensor, num_segments: int) -> tuple[Tensor, Tensor]:
    """Each node's place within its segment, in node order, and the segments' sizes."""
    size = torch.bincount(segment, minlength=num_segments)
    order = torch.argsort(segment, stable=True)
    first = (row_pointers(size)[:-1]).repeat_interleave(size)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=segment.device) - first
    return place, size
