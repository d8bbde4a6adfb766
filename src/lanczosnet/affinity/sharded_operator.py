"""One graph over many processes: each has the rows of its nodes, and asks the others for their neighbours' values."""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from lanczosnet.affinity.csr_product import csr_product
from lanczosnet.affinity.halo import Halo
from lanczosnet.affinity.operator import Operator, largest_magnitude
from lanczosnet.affinity.sparse_operator import SparseOperator, is_watched
from lanczosnet.backends.autograd import first_order
from lanczosnet.backends.processes import Processes


@dataclass(frozen=True, eq=False)
class ShardPattern:
    """Where the entries of a process' rows are: those between its own nodes, then those that lead elsewhere."""

    inside: SparseOperator
    row_pointer: Tensor  # of the entries that lead elsewhere, [node + 1]
    column: Tensor  # numbers in the halo, [outside entry]
    halo: Halo
    num_all_nodes: int

    @property
    def row(self) -> Tensor:
        """Of the entries that lead elsewhere."""
        count = self.row_pointer.diff()
        return torch.arange(len(count), device=count.device).repeat_interleave(count)


class ShardedOperator(Operator):
    """A symmetric sparse matrix whose rows are shared out. Signals hold the nodes of a process, `[node(, channel)]`.

    `shape` is that of the entries between a process' own nodes.
    """

    symmetric = True
    processes: Processes

    def __init__(self, pattern: ShardPattern, values: Tensor) -> None:
        """The values inside, then outside."""
        self.pattern, self.values = pattern, values
        self.processes = pattern.halo.processes
        inside, outside = values.detach().split([len(pattern.inside.column), len(pattern.column)])
        size = len(pattern.row_pointer) - 1
        self._inside = pattern.inside.with_values(inside)
        self._outside = torch.sparse_csr_tensor(
            pattern.row_pointer, pattern.column, outside, (size, len(pattern.halo)), check_invariants=False
        )

    @property
    def shape(self) -> torch.Size:
        return self.pattern.inside.shape

    @property
    def num_all_nodes(self) -> int:
        return self.pattern.num_all_nodes

    @property
    def inside(self) -> SparseOperator:
        """The entries between a process' own nodes."""
        return self._inside

    @property
    def row(self) -> Tensor:
        return torch.cat([self.pattern.inside.row.long(), self.pattern.row])

    @property
    def column(self) -> Tensor:
        """Of every entry, among the nodes of this process and then its halo."""
        return torch.cat([self.pattern.inside.column.long(), self.pattern.column.long() + self.num_nodes])

    def with_halo(self, signal: Tensor) -> Tensor:
        """The rows of a signal that columns stand for, `[node + halo, ...]`; no gradient reaches other processes."""
        return torch.cat([signal, self.pattern.halo(signal)])

    def to(self, *args: Any, **kwargs: Any) -> Self:
        values = self.values.to(*args, **kwargs)
        if values.device != self.device:
            raise ValueError("the rows of a process stay on their device: make the operator there")
        return self.with_values(values)

    def dense(self) -> Tensor:
        raise NotImplementedError("a matrix that is shared out is never whole")

    def with_values(self, values: Tensor) -> Self:
        return type(self)(self.pattern, values)

    def degree(self) -> Tensor:
        return self.values.new_zeros(self.num_nodes).index_add(0, self.row, self.values)

    def scaled(self, left: Tensor | None = None, right: Tensor | None = None) -> Self:
        values = self.values
        if left is not None:
            values = values * left.index_select(0, self.row)
        if right is not None:
            values = values * self.with_halo(right).index_select(0, self.column)
        return self.with_values(values)

    def plus_diagonal(self, diagonal: Tensor) -> Self:
        return self.with_values(self.values.index_add(0, self.pattern.inside.diagonal_position, diagonal))

    @property
    def T(self) -> Operator:
        return self

    def product(self, signal: Tensor) -> Tensor:
        if is_watched(self.values) or is_watched(signal):
            return _ShardedProduct.apply(self.values, signal, self)
        return self._multiply(signal)

    def sampled_product(self, left: Tensor, right: Tensor) -> Tensor:
        parts = [self._inside.sampled_product(left, right)]
        elsewhere = self.pattern.halo(right)
        if len(self.pattern.column):
            outside = torch.sparse.sampled_addmm(self._outside, left.contiguous(), elsewhere.mT, beta=0.0)
            parts.append(outside.values())
        return torch.cat(parts)

    def largest_entry(self) -> Tensor:
        return self.processes.largest(largest_magnitude(self.values.detach()))

    def _multiply(self, signal: Tensor) -> Tensor:
        """Messages travel while the entries inside are multiplied."""
        elsewhere = self.pattern.halo.begin(signal)
        found = self._inside.product(signal)
        arrived = elsewhere()
        return found.add_(csr_product(self._outside, arrived)) if len(self.pattern.column) else found


class _ShardedProduct(torch.autograd.Function):
    """As the product of a `SparseOperator`: backward is the same product, as the whole matrix is symmetric."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, signal: Tensor, operator: ShardedOperator) -> Tensor:
        ctx.operator = operator
        ctx.save_for_backward(*((values, signal) if ctx.needs_input_grad[0] else ()))
        return operator._multiply(signal)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        operator: ShardedOperator = ctx.operator
        grad_values = grad_signal = None
        if ctx.needs_input_grad[0]:
            _, signal = ctx.saved_tensors
            pair = (grad, signal) if grad.dim() == 2 else (grad.unsqueeze(1), signal.unsqueeze(1))
            grad_values = operator.sampled_product(*pair)
        if ctx.needs_input_grad[1]:
            grad_signal = operator._multiply(grad)
        return grad_values, grad_signal, None
