"""The one operator type: a matrix over the nodes that is only ever multiplied with signals.

Two storages share it. `DenseOperator` holds a matrix or a padded batch of small ones; `SparseOperator` holds one
large graph, or many ragged ones side by side, in CSR form with int32 indices wherever they fit.
"""

from abc import ABC, abstractmethod
from typing import Any, Self

import torch
from torch import Tensor

from lanczosnet.backends.processes import Processes


class Operator(ABC):
    """A square matrix over nodes, shape `[..., node, node]`, that multiplies signals `[..., node(, channel)]`."""

    symmetric: bool
    values: Tensor  # the stored entries: what gradients flow into
    has_values = True  # or makes them anew whenever they are asked for: see `PatternOperator`

    # Which graph (or component) a node belongs to, [node]; None where the whole operator is one graph or a dense batch.
    segment: Tensor | None = None
    num_segments: int | None = None
    # Those that share its rows, where there are several: see `ShardedOperator`.
    processes: Processes | None = None
    # Which rows of a padded dense batch are nodes, [..., node]; None where all are.
    mask: Tensor | None = None
    # Whether it stands for a Hermitian matrix: see `RealForm`.
    is_real_form = False

    @property
    def stored_values(self) -> Tensor:
        """Those that are kept: none of an operator that makes them anew."""
        return self.values if self.has_values else self.new_zeros(0)

    def new_zeros(self, *shape: int) -> Tensor:
        """Of the type and on the device of the entries."""
        return torch.zeros(shape, dtype=self.dtype, device=self.device)

    def detach(self) -> Self:
        """The same matrix, which no gradient reaches."""
        return self.with_values(self.values.detach())

    @property
    @abstractmethod
    def shape(self) -> torch.Size: ...

    @property
    def num_nodes(self) -> int:
        return self.shape[-1]

    @property
    def num_all_nodes(self) -> int:
        """With those of other processes."""
        return self.num_nodes

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
        return largest_magnitude(self.values.detach().flatten(-2))


def largest_magnitude(values: Tensor) -> Tensor:
    """The largest absolute value along the last axis, in float64, without a copy."""
    if values.shape[-1] == 0:
        return values.new_zeros(values.shape[:-1], dtype=torch.float64)
    lowest, highest = values.aminmax() if values.dim() == 1 else values.aminmax(dim=-1)  # eight times as fast
    return torch.maximum(-lowest, highest).double()


def full_precision_product(matrix: Tensor, signal: Tensor) -> Tensor:
    """matrix @ signal in the type of the matrix, under autocast too."""
    with torch.autocast(signal.device.type, enabled=False):
        return matrix @ signal.to(matrix.dtype)
