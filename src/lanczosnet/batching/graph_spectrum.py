"""A graph as convolutions see it, worked out once and shared by all layers: S, and V or Q of its long scales."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from lanczosnet.affinity import DenseOperator, Operator
from lanczosnet.affinity.operator import full_precision_product
from lanczosnet.batching.chunks import by_channels, num_channel_parts
from lanczosnet.batching.terms import Terms
from lanczosnet.filters import DenseBasis, SpectralBasis, power_filter, power_sum
from lanczosnet.krylov.symmetric_eigen import symmetric_eigen


class EdgeTypeOperators:
    """One operator per edge type, applied together: sum_t S_t X W_t."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self.operators = list(operators)
        self._wide: Tensor | None = None
        if all(isinstance(operator, DenseOperator) for operator in self.operators):
            # [S_1 ... S_T] side by side, so that all types are one product.
            self._wide = torch.cat([operator.dense() for operator in self.operators], dim=-1)

    def __len__(self) -> int:
        return len(self.operators)

    def stacked(self) -> Tensor:
        """The operators of a dense batch as `[graph, node, type, node]`."""
        assert self._wide is not None
        return self._wide.unflatten(-1, (len(self), -1))

    def terms(self, signal: Tensor) -> list[Tensor]:
        """[S_t X for every type t]."""
        return [operator @ signal for operator in self.operators]

    def convolve(self, signal: Tensor, weights: Tensor) -> Tensor:
        """`[..., node, in_channels]`, weights `[type, in_channels, out_channels]` -> `[..., node, out_channels]`."""
        mixed = (signal.unsqueeze(-3) @ weights).movedim(-3, 0)  # [type, ..., node, out_channels]
        if self._wide is None:
            terms = (operator @ part for operator, part in zip(self.operators, mixed, strict=True))
            return sum(terms, start=torch.zeros((), dtype=weights.dtype, device=weights.device))
        return full_precision_product(self._wide, mixed.movedim(0, -3).flatten(-3, -2))


@dataclass(frozen=True, eq=False)
class RitzFilter:
    """The long scales on Ritz pairs: L_i = V f_i(R) V^T is never formed."""

    basis: SpectralBasis
    response: Tensor | None = None  # f(R), [frequency, scale], where it is known

    def convolve(self, terms: Terms, spectral_filter: Any) -> Tensor:
        """sum_i V f_i(R) V^T X W_i by one pass through the K-dimensional space."""
        response = spectral_filter(self.basis.values) if self.response is None else self.response
        if terms.tied:
            return self.basis.lift(response.sum(-1, keepdim=True) * self.basis.project(terms.tied_product))
        weights = terms.weights[1]
        if _narrows(weights):
            products = self.basis.project(_products(terms.x, weights)).unflatten(-1, (len(weights), -1))
            return self.basis.lift((response.unsqueeze(-1) * products).sum(-2))
        coefficients = self.basis.project(terms.x)
        spread = response.unsqueeze(-1) * coefficients.unsqueeze(-2)  # [frequency, scale, in_channels]
        return self.basis.lift(spread.flatten(-2).to(weights.dtype) @ weights.flatten(0, 1))


@dataclass(frozen=True, eq=False)
class Core:
    """A part of the graph, compressed: S ~ Q C Q^T with C of size K x K, or C = S itself where that is small."""

    matrix: Tensor  # C, [..., step, step]
    basis: DenseBasis  # Q
    eigen: tuple[Tensor, Tensor] | None = None  # of C, where it stays the same

    def convolve(self, terms: Terms, matrix_filter: Any) -> Tensor:
        """Q sum_i F_i Q^T X W_i as one product."""
        filters, weights = self._filtered(matrix_filter), terms.weights[1]
        if terms.tied:
            filters, weights = filters.sum(-3, keepdim=True), terms.tied_weight
        wide = filters.movedim(-3, -2).flatten(-2)  # [..., step, scale x step]
        weighted = self._weighted(terms.x, weights)
        return self.basis.lift(wide @ weighted.flatten(-3, -2).to(wide.dtype))

    def _weighted(self, x: Tensor, weights: Tensor) -> Tensor:
        """Q^T X W_i of all i, `[..., scale, step, out]`: weights first where they leave fewer channels."""
        if _narrows(weights):
            return self.basis.project(_products(x, weights)).unflatten(-1, (len(weights), -1)).movedim(-2, -3)
        return self.basis.project(x).unsqueeze(-3) @ weights

    @torch.compiler.disable  # eigenvalues, forward-mode slopes and hand-written gradients are not for tracing
    def _filtered(self, matrix_filter: Any) -> Tensor:
        return matrix_filter(self.matrix) if self.eigen is None else matrix_filter(self.matrix, self.eigen)


def _narrows(weights: Tensor) -> bool:
    """Whether the products with all weights have fewer channels than the signal."""
    num_scales, in_channels, out_channels = weights.shape
    return in_channels > num_scales * out_channels


def _products(signal: Tensor, weights: Tensor) -> Tensor:
    """X W_i side by side, `[..., node, scale x out]`."""
    return signal @ weights.movedim(0, 1).flatten(1)


@dataclass(frozen=True, eq=False)
class GraphSpectrum:
    """S, its Ritz pairs where long scales are used, and S per edge type."""

    operator: Operator
    basis: SpectralBasis | None = None
    edge_types: EdgeTypeOperators | None = None

    @property
    def parts(self) -> Sequence[RitzFilter | Core]:
        """What the long scales are filtered on."""
        return [] if self.basis is None else [RitzFilter(self.basis)]

    def convolve(self, terms: Terms, chosen: nn.Module | None) -> Tensor:
        """Eq. 7, folded: no term has more channels than the input and the output need."""
        count = num_channel_parts(terms.x, self._num_rows, terms.out_channels)
        if count == 1:
            return self._convolved(terms, chosen)
        return by_channels(lambda part: self._convolved(terms.of_outputs(part), chosen), terms.out_channels, count)

    @property
    def _num_rows(self) -> int:
        """Those of S, or what each of several processes has on average: all divide their work alike."""
        processes = self.operator.processes
        return self.operator.num_all_nodes // (1 if processes is None else processes.size)

    def _convolved(self, terms: Terms, chosen: nn.Module | None) -> Tensor:
        parts = [] if not terms.short_scales else [self.propagate(terms)]
        if chosen is not None:
            parts += [part.convolve(terms, chosen) for part in self.parts]
        typed = terms.weights[2]
        if len(typed) and self.edge_types is not None:
            parts.append(self.edge_types.convolve(terms.x, typed))
        y = sum(parts[1:], start=parts[0])
        return y if terms.bias is None else y + terms.bias

    def propagate(self, terms: Terms) -> Tensor:
        """sum_s S^s X W_s of the short scales."""
        if terms.tied:
            return power_sum(self.operator, terms.tied_product, terms.short_scales)
        return power_filter(self.operator, terms.x, terms.short_scales, terms.weights[0])


@dataclass(frozen=True, eq=False)
class AdaptiveSpectrum(GraphSpectrum):
    """A graph as AdaLanczosConv sees it, with gradients into whatever S was made of."""

    cores: list[Core] = field(default_factory=list)

    @property
    def parts(self) -> Sequence[RitzFilter | Core]:
        return self.cores

    def decomposed(self) -> Self:
        """With eigenpairs, for spectral filters of a graph that stays the same."""
        return replace(self, cores=[replace(core, eigen=symmetric_eigen(core.matrix)) for core in self.cores])
