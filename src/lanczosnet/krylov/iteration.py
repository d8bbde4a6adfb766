"""Algorithm 1, written once for one graph, a padded batch and ragged graphs.

A Lanczos vector shorter than its tolerance becomes exactly zero, and S @ 0 = 0 keeps it so: graphs whose Krylov space
is exhausted need no branch, and neither does padding.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lanczosnet.krylov.inner_product import InnerProduct

# Relative to the operator's norm. In float64 this tells breakdown from a small coefficient on all of QM8;
# in float32 no threshold does, which is why small graphs are iterated in float64.
BREAKDOWN_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-5}
# What the rounding of a float32 operator leaves of an exact breakdown, even if the iteration runs in float64.
ROUNDED_INPUT_TOLERANCE = 1e-6

Product = Callable[[Tensor], Tensor]
FreshVector = Callable[[], Tensor]


class Basis(Protocol):
    """The Lanczos vectors so far."""

    def append(self, vector: Tensor, factor: Tensor | float) -> Tensor:
        """Take factor * vector in, and return it."""

    def matrix(self) -> Tensor:
        """`[..., step, node]`."""


class PreallocatedBasis:
    """Writes into one block of memory; for iterations that autograd does not watch."""

    def __init__(self, start: Tensor, capacity: int) -> None:
        self.block = start.new_empty(*start.shape[:-1], capacity, start.shape[-1])
        self.rows = self.block.unbind(-2)
        self.count = 0

    def append(self, vector: Tensor, factor: Tensor | float) -> Tensor:
        row = self.rows[self.count]
        self.count += 1
        return torch.mul(vector, factor, out=row)

    def matrix(self) -> Tensor:
        return self.block.narrow(-2, 0, self.count)


class RecordedBasis:
    """Keeps every vector as autograd made it."""

    def __init__(self) -> None:
        self.vectors: list[Tensor] = []

    def append(self, vector: Tensor, factor: Tensor | float) -> Tensor:
        self.vectors.append(vector * factor)
        return self.vectors[-1]

    def matrix(self) -> Tensor:
        return torch.stack(self.vectors, dim=-2)


class Breakdown(NamedTuple):
    """When a residual is nothing but rounding."""

    scale: Tensor  # [graph], a lower bound on the operator's norm
    tolerance: float  # relative to the norm

    def threshold(self, first_image: Tensor, inner: InnerProduct) -> Tensor:
        """The length that a residual must exceed, per graph."""
        return self.tolerance * torch.maximum(self.scale, inner.norm(first_image).detach())


def breakdown_tolerance(working_dtype: torch.dtype, input_dtype: torch.dtype) -> float:
    tolerance = BREAKDOWN_TOLERANCE[working_dtype]
    return tolerance if input_dtype == torch.float64 else max(tolerance, ROUNDED_INPUT_TOLERANCE)


class Coefficients(NamedTuple):
    """What the iteration found, besides the basis: `[graph, step]` each."""

    diagonal: Tensor  # gamma
    off_diagonal: Tensor  # beta, the last one being the length of the residual
    steps: Tensor  # [graph], how many Lanczos vectors are not zero


def iterate(
    product: Product,
    start: Tensor,
    num_steps: int,
    inner: InnerProduct,
    basis: Basis,
    *,
    breakdown: Breakdown,
    reorthogonalize: bool = True,
    fresh_vector: FreshVector | None = None,
) -> Coefficients:
    """Fill `basis` with num_steps + 1 Lanczos vectors from a unit (or zero) start vector.

    Every tensor operation of the loop costs as much as a product with a small graph: it has no more of them than it
    needs.
    """
    present = [inner.norm(start) > 0]
    if fresh_vector is not None and not bool(present[0].all()):
        start = torch.where(inner.spread(present[0]), start, unit(fresh_vector(), inner))
        present = [inner.norm(start) > 0]
    vector = previous = basis.append(start, 1.0)
    diagonal: list[Tensor] = []
    lengths: list[Tensor] = []
    for step in range(num_steps):
        residual = product(vector)
        if step == 0:
            threshold = breakdown.threshold(residual, inner)
        if reorthogonalize:
            residual, overlap = orthogonalized(residual, basis.matrix(), inner)
            gamma = overlap[..., -1]
        else:
            gamma = inner.dot(vector, residual).to(start.dtype)
            residual = residual - inner.spread(gamma) * vector
            if step > 0:
                residual = residual - inner.spread(lengths[-1].to(start.dtype)) * previous
        length = inner.norm(residual)
        goes_on = length > threshold
        factor = inner.spread(inverse(length, goes_on).to(start.dtype))
        if fresh_vector is not None and not bool(goes_on.all()):
            fresh = fresh_direction(fresh_vector(), basis.matrix(), inner)
            residual, factor = torch.where(inner.spread(goes_on), residual * factor, fresh), torch.ones_like(factor)
            length, goes_on = length * goes_on, inner.norm(residual) > 0
        previous, vector = vector, basis.append(residual, factor)
        diagonal.append(gamma)
        lengths.append(length)
        present.append(goes_on)
    reached = torch.stack(present, -1)
    off_diagonal = torch.stack(lengths, -1) * reached[..., 1:]
    return Coefficients(torch.stack(diagonal, -1), off_diagonal.to(start.dtype), reached[..., :-1].sum(-1))


def inverse(length: Tensor, is_valid: Tensor) -> Tensor:
    """1 / length, and zero, with gradient zero, where that is not valid."""
    return torch.where(is_valid, length, torch.inf).reciprocal()


def orthogonalized(vector: Tensor, basis: Tensor, inner: InnerProduct) -> tuple[Tensor, Tensor]:
    """The part of a vector outside the basis, by two-pass classical Gram-Schmidt, and its overlap with the basis."""
    first = inner.project(basis, vector)
    vector = inner.without(vector, basis, first)
    second = inner.project(basis, vector)
    return inner.without(vector, basis, second), first + second


def fresh_direction(vector: Tensor, basis: Tensor, inner: InnerProduct) -> Tensor:
    """A unit vector orthogonal to the basis, or exactly zero where the basis already spans the graph."""
    tolerance = BREAKDOWN_TOLERANCE[vector.dtype]
    for _ in range(2):  # the second round repairs what cancellation in the first one lost
        vector = unit(orthogonalized(unit(vector, inner), basis, inner)[0], inner, tolerance)
    return vector


def unit(vector: Tensor, inner: InnerProduct, tolerance: float = 0.0) -> Tensor:
    """Scaled to length one per graph; vectors no longer than the tolerance become zero."""
    length = inner.norm(vector)
    return vector * inner.spread(inverse(length, length > tolerance).to(vector.dtype))
