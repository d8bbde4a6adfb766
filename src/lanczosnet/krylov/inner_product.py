"""Inner products for one graph, a padded batch, or ragged graphs side by side: the only place that knows which.

A basis is stored `[..., step, node]`, so that a projection is one matrix product over contiguous vectors.
Coefficients have one row per graph: `[..., step]`, or `[segment, step]` for ragged graphs.
"""

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor

from lanczosnet.affinity.hermitian import turned
from lanczosnet.backends import operation
from lanczosnet.backends.processes import Processes
from lanczosnet.backends.segments import segment_sum


@operation
def project(basis: Tensor, vector: Tensor) -> Tensor:
    """Q^T z of one graph: `[step, node]`, `[node]` -> `[step]`."""
    return basis @ vector


class InnerProduct(Protocol):
    def project(self, basis: Tensor, vector: Tensor) -> Tensor:
        """Q^T z: `[..., step, node]`, `[..., node]` -> coefficients `[graph, step]`."""

    def combine(self, basis: Tensor, coefficients: Tensor) -> Tensor:
        """Q c: `[..., step, node]`, `[graph, step]` -> `[..., node]`."""

    def without(self, vector: Tensor, basis: Tensor, coefficients: Tensor) -> Tensor:
        """z - Q c."""

    def dot(self, left: Tensor, right: Tensor) -> Tensor:
        """One number per graph, summed in float64."""

    def norm(self, vector: Tensor) -> Tensor:
        """The length per graph, summed in float64, with gradient zero at zero."""

    def spread(self, per_graph: Tensor) -> Tensor:
        """A number per graph, laid out so that it multiplies `[..., node]`."""

    def total(self, sums: Tensor) -> Tensor:
        """Sums over the nodes of this process, over those of all."""


class WholeInnerProduct:
    """Every leading index is one graph: a single graph `[node]` or a dense batch `[graph, node]`."""

    def project(self, basis: Tensor, vector: Tensor) -> Tensor:
        if vector.dim() > 1:
            return (basis @ vector.unsqueeze(-1)).squeeze(-1)
        return project(basis, vector)

    def combine(self, basis: Tensor, coefficients: Tensor) -> Tensor:
        if coefficients.dim() == 1:
            return coefficients @ basis
        return (coefficients.unsqueeze(-2) @ basis).squeeze(-2)

    def without(self, vector: Tensor, basis: Tensor, coefficients: Tensor) -> Tensor:
        if vector.dim() == 1:
            return torch.addmv(vector, basis.mT, coefficients, alpha=-1)
        return torch.baddbmm(vector.unsqueeze(-2), coefficients.unsqueeze(-2), basis, alpha=-1).squeeze(-2)

    def dot(self, left: Tensor, right: Tensor) -> Tensor:
        return (left * right).sum(-1, dtype=torch.float64)

    def norm(self, vector: Tensor) -> Tensor:
        return torch.linalg.vector_norm(vector, dim=-1, dtype=torch.float64)

    def spread(self, per_graph: Tensor) -> Tensor:
        return per_graph.unsqueeze(-1)

    def total(self, sums: Tensor) -> Tensor:
        return sums


class SegmentInnerProduct:
    """Ragged graphs or components: node i belongs to graph segment[i]."""

    def __init__(self, segment: Tensor, num_segments: int) -> None:
        self.segment = segment
        self.num_segments = num_segments

    def project(self, basis: Tensor, vector: Tensor) -> Tensor:
        return segment_sum((basis * vector).mT.double(), self.segment, self.num_segments).to(vector.dtype)

    def combine(self, basis: Tensor, coefficients: Tensor) -> Tensor:
        return (basis * coefficients.mT.index_select(1, self.segment)).sum(0)

    def without(self, vector: Tensor, basis: Tensor, coefficients: Tensor) -> Tensor:
        return vector - self.combine(basis, coefficients)

    def dot(self, left: Tensor, right: Tensor) -> Tensor:
        return segment_sum(left.double() * right.double(), self.segment, self.num_segments)

    def norm(self, vector: Tensor) -> Tensor:
        return _safe_sqrt(self.dot(vector, vector))

    def spread(self, per_graph: Tensor) -> Tensor:
        return per_graph.index_select(0, self.segment)

    def total(self, sums: Tensor) -> Tensor:
        return sums


class RangeInnerProduct:
    """Components side by side, each of which is a range of nodes: no node is looked up, and each is summed alone."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes

    def project(self, basis: Tensor, vector: Tensor) -> Tensor:
        return torch.stack([project(*part) for part in self._parts(basis, vector)])

    def combine(self, basis: Tensor, coefficients: Tensor) -> Tensor:
        parts = zip(coefficients, basis.split(self.sizes, -1), strict=True)
        return torch.cat([own @ part for own, part in parts])

    def without(self, vector: Tensor, basis: Tensor, coefficients: Tensor) -> Tensor:
        parts = zip(self._parts(basis, vector), coefficients, strict=True)
        return torch.cat([torch.addmv(part, own.mT, along, alpha=-1) for (own, part), along in parts])

    def dot(self, left: Tensor, right: Tensor) -> Tensor:
        return torch.stack([part.sum(dtype=torch.float64) for part in (left * right).split(self.sizes)])

    def norm(self, vector: Tensor) -> Tensor:
        parts = vector.split(self.sizes)
        return torch.stack([torch.linalg.vector_norm(part, dtype=torch.float64) for part in parts])

    def spread(self, per_graph: Tensor) -> Tensor:
        return torch.cat([each.expand(size) for each, size in zip(per_graph, self.sizes, strict=True)])

    def total(self, sums: Tensor) -> Tensor:
        return sums

    def _parts(self, basis: Tensor, vector: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(basis.split(self.sizes, -1), vector.split(self.sizes), strict=True)


class HermitianInnerProduct:
    """One of the others for the real form of a Hermitian matrix, on complex vectors as real parts and imaginary ones.

    Lanczos vectors are real polynomials of the matrix times the start vector, so that their inner products are real:
    coefficients are what they are without this. But rounding turns a vector towards i times an earlier one, which is
    orthogonal to it among real vectors and not among complex ones. Hence that direction is taken out, too.
    """

    def __init__(self, own: WholeInnerProduct | SegmentInnerProduct) -> None:
        self.own = own
        self.project, self.combine, self.dot = own.project, own.combine, own.dot
        self.norm, self.spread, self.total = own.norm, own.spread, own.total

    def without(self, vector: Tensor, basis: Tensor, coefficients: Tensor) -> Tensor:
        along = self.own.project(basis, -turned(vector))
        return self.own.without(vector, basis, coefficients) - turned(self.own.combine(basis, along))


class ShardedInnerProduct:
    """One of the others on the nodes of this process, with sums over all processes."""

    def __init__(self, own: WholeInnerProduct | SegmentInnerProduct, processes: Processes) -> None:
        self.own, self.processes = own, processes
        self.combine, self.without, self.spread = own.combine, own.without, own.spread

    def project(self, basis: Tensor, vector: Tensor) -> Tensor:
        return self.total(self.own.project(basis, vector))

    def dot(self, left: Tensor, right: Tensor) -> Tensor:
        return self.total(self.own.dot(left, right))

    def norm(self, vector: Tensor) -> Tensor:
        return _safe_sqrt(self.dot(vector, vector))

    def total(self, sums: Tensor) -> Tensor:
        return self.processes.total(sums)


def _safe_sqrt(square: Tensor) -> Tensor:
    """sqrt with gradient zero, not infinity, at zero."""
    positive = square > 0
    root = torch.where(positive, square, torch.ones_like(square)).sqrt()
    return torch.where(positive, root, torch.zeros_like(square))


def inner_product(
    segment: Tensor | None,
    num_segments: int | None,
    processes: Processes | None = None,
    *,
    is_real_form: bool = False,
) -> InnerProduct:
    own: WholeInnerProduct | SegmentInnerProduct = WholeInnerProduct()
    if segment is not None:
        if num_segments is None:
            num_segments = int(segment.max()) + 1 if segment.numel() else 0
        own = SegmentInnerProduct(segment, num_segments)
    if is_real_form:
        return HermitianInnerProduct(own)
    return own if processes is None else ShardedInnerProduct(own, processes)
