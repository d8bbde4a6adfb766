"""Algorithm 1, written once for one graph, a padded batch and ragged graphs.

A Lanczos vector shorter than its tolerance becomes exactly zero, and S @ 0 = 0 keeps it so: graphs whose Krylov space
is exhausted need no branch, and neither does padding.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lanczosnet.krylov.inner_product import InnerProduct

# Relative to the size of T seen so far. In float64 this tells breakdown from a small coefficient on all of QM8;
# in float32 no threshold does, which is why small graphs are iterated in float64.
BREAKDOWN_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-5}

Product = Callable[[Tensor], Tensor]
FreshVector = Callable[[], Tensor]


class Basis(Protocol):
    """The Lanczos vectors so far."""

    def append(self, vector: Tensor) -> None: ...

    def matrix(self) -> Tensor:
        """`[..., step, node]`."""


class PreallocatedBasis:
    """Writes into one block of memory; for iterations that autograd does not watch."""

    def __init__(self, start: Tensor, capacity: int) -> None:
        self.block = start.new_zeros(*start.shape[:-1], capacity, start.shape[-1])
        self.count = 0

    def append(self, vector: Tensor) -> None:
        self.block[..., self.count, :] = vector
        self.count += 1

    def matrix(self) -> Tensor:
        return self.block[..., : self.count, :]


class RecordedBasis:
    """Keeps every vector as autograd made it."""

    def __init__(self) -> None:
        self.vectors: list[Tensor] = []

    def append(self, vector: Tensor) -> None:
        self.vectors.append(vector)

    def matrix(self) -> Tensor:
        return torch.stack(self.vectors, dim=-2)


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
    reorthogonalize: bool = True,
    fresh_vector: FreshVector | None = None,
) -> Coefficients:
    """Fill `basis` with num_steps + 1 Lanczos vectors from a unit (or zero) start vector."""
    tolerance = BREAKDOWN_TOLERANCE[start.dtype]
    diagonal, off_diagonal = [], []
    vector, previous, beta = start, torch.zeros_like(start), inner.norm(start)
    steps = (beta > 0).long()
    scale = torch.zeros_like(beta)
    for step in range(num_steps):
        basis.append(vector)
        residual = product(vector)
        if reorthogonalize:
            residual, overlap = orthogonalized(residual, basis.matrix(), inner)
            alpha = overlap[..., -1]
        else:
            alpha = inner.dot(vector, residual).to(start.dtype)
            residual = residual - inner.spread(alpha) * vector
            if step > 0:
                residual = residual - inner.spread(beta.to(start.dtype)) * previous
        beta = inner.norm(residual)
        scale = torch.maximum(scale, torch.maximum(alpha.detach().abs().double(), beta.detach()))
        goes_on = beta > tolerance * scale
        inverse = torch.where(goes_on, beta, torch.ones_like(beta)).reciprocal() * goes_on
        beta = beta * goes_on
        previous, vector = vector, residual * inner.spread(inverse.to(start.dtype))
        if fresh_vector is not None and not bool(goes_on.all()):
            vector = torch.where(inner.spread(goes_on), vector, fresh_direction(fresh_vector(), basis.matrix(), inner))
            goes_on = inner.norm(vector) > 0
        diagonal.append(alpha)
        off_diagonal.append(beta.to(start.dtype))
        if step + 1 < num_steps:
            steps = steps + goes_on
    basis.append(vector)
    return Coefficients(torch.stack(diagonal, -1), torch.stack(off_diagonal, -1), steps)


def orthogonalized(vector: Tensor, basis: Tensor, inner: InnerProduct) -> tuple[Tensor, Tensor]:
    """The part of a vector outside the basis, by two-pass classical Gram-Schmidt, and its overlap with the basis."""
    first = inner.project(basis, vector)
    vector = vector - inner.combine(basis, first)
    second = inner.project(basis, vector)
    return vector - inner.combine(basis, second), first + second


def fresh_direction(vector: Tensor, basis: Tensor, inner: InnerProduct) -> Tensor:
    """A unit vector orthogonal to the basis, or exactly zero where the basis already spans the graph."""
    tolerance = BREAKDOWN_TOLERANCE[vector.dtype]
    for _ in range(2):  # the second round repairs what cancellation in the first one lost
        vector = unit(orthogonalized(unit(vector, inner), basis, inner)[0], inner, tolerance)
    return vector


def unit(vector: Tensor, inner: InnerProduct, tolerance: float = 0.0) -> Tensor:
    """Scaled to length one per graph; vectors no longer than the tolerance become zero."""
    length = inner.norm(vector)
    long_enough = length > tolerance
    inverse = torch.where(long_enough, length, torch.ones_like(length)).reciprocal() * long_enough
    return vector * inner.spread(inverse.to(vector.dtype))
