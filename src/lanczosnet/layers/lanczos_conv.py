"""The multi-scale graph convolution of LanczosNet (Eq. 7, Algorithm 2)."""

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import torch
from torch import Tensor

from lanczosnet.affinity import SparseOperator, adjacency, normalized
from lanczosnet.batching.graph_spectrum import EdgeTypeOperators, GraphSpectrum
from lanczosnet.batching.sparse import operators_by_type
from lanczosnet.filters import Scales, power_terms, spectral_basis
from lanczosnet.filters import spectral_filter as make_filter
from lanczosnet.krylov import RitzPairs, component_ritz_pairs
from lanczosnet.layers.conv_base import MultiScaleConv, WeightOptions


class LanczosConv(MultiScaleConv):
    r"""Multi-scale graph convolution from `LanczosNet <https://arxiv.org/abs/1901.01484>`_, Eq. 7:

    .. math::
        Y = [S^{s_1} X, \ldots, S^{s_M} X, \hat L_1 X, \ldots, \hat L_E X] W + b, \qquad
        \hat L_i = V f_i(R) V^\top

    with Ritz pairs :math:`V, R` of :math:`S = D^{-1/2} (A + I) D^{-1/2}` and learned spectral filters :math:`f_i`.
    Neither an :math:`\hat L_i` nor a block of the concatenation is ever formed: the weights are folded into the
    K-dimensional space for the long scales and into Horner's rule for the short ones.

    The Ritz pairs are constants: an edge_weight that requires a gradient is refused where there are long scales.
    Short scales alone have one, and `AdaLanczosConv` differentiates through Lanczos. Weights and pairs of another
    floating type are converted to that of the layer.

    Args:
        in_channels: size of each input.
        out_channels: size of each output.
        short_scales: powers of S that are multiplied out.
        long_scales: powers of the Ritz values that the filters see; `math.inf` is the equilibrium.
        num_steps: K, the Lanczos steps (Ritz pairs per connected component).
        spectral_filter: "anchored" (zero where the Ritz value is), "mlp" (as published), "unbiased" (that without
            biases, zero there too), "power" (nothing learned) or "heat" (learned times of diffusion, which begin at the
            long scales; see `HeatFilter`).
        filter_channels: sizes of the filter's hidden layers.
        positive: make the filters positive semi-definite.
        tied_scales: one matrix for all scales, short and long, whose terms are averaged: fewer weights for few labels.
        num_edge_types: adds one hop per edge type.
        inner_activation: applied to every block before the concatenation, which rules out the folding.
        bias: add a bias.
        gain: of the first weights, relative to Glorot's.

    Shapes:
        - **input:** node features `(|V|, F_in)`, edge_index `(2, |E|)`, edge_weight `(|E|)` *(optional; with long
          scales without a gradient)*, batch `(|V|)` *(optional)*, edge_type `(|E|)` or `(|E|, T)` *(with edge types)*
        - **output:** node features `(|V|, F_out)`
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        short_scales: Sequence[int] = (1, 2, 5, 7),
        long_scales: Sequence[float] = (10, 20, 30),
        num_steps: int = 20,
        *,
        spectral_filter: str = "anchored",
        filter_channels: Sequence[int] = (128,),
        positive: bool = False,
        inner_activation: Callable[[Tensor], Tensor] | None = None,
        **options: Unpack[WeightOptions],
    ) -> None:
        if num_steps < 1:
            raise ValueError(f"num_steps must be at least 1, but is {num_steps}")
        scales, chosen = Scales(long_scales, allow_infinity=True), None
        if len(scales):
            chosen = make_filter(spectral_filter, tuple(scales), filter_channels, positive=positive)
        super().__init__(in_channels, out_channels, short_scales, len(scales), chosen, **options)
        self.long_scales = scales
        self.num_steps = num_steps
        self.inner_activation = inner_activation

    @property
    def multiplies_first(self) -> bool:
        return super().multiplies_first and self.inner_activation is None

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_type: Tensor | None = None,
        pairs: RitzPairs | None = None,
    ) -> Tensor:
        """Convolve; `pairs`, where given, saves running Lanczos again (see `AddRitzPairs` and `spectrum`)."""
        spectrum = self.spectrum(edge_index, edge_weight, batch, num_nodes=len(x), edge_type=edge_type, pairs=pairs)
        return self.convolve(x, spectrum)

    @torch.compiler.disable
    def spectrum(
        self,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        num_nodes: int | None = None,
        edge_type: Tensor | None = None,
        pairs: RitzPairs | None = None,
    ) -> GraphSpectrum:
        """What `convolve` needs of a graph; make it once where the graph stays the same."""
        # Not the features' type: under autocast they may be in half precision, where S must not be.
        A = adjacency(edge_index, edge_weight, num_nodes=num_nodes, batch=batch, dtype=self.weight.dtype)
        S = normalized(A)
        assert isinstance(S, SparseOperator)
        if self.filter is None:
            pairs = None
        else:
            refuse_gradient_of_weights(S)
            pairs = fixed_ritz_pairs(S, self.num_steps) if pairs is None else self._given_pairs(pairs, S)
        return GraphSpectrum(
            S, None if pairs is None else spectral_basis(pairs), self._edge_types(edge_index, edge_weight, edge_type, S)
        )

    def _given_pairs(self, pairs: RitzPairs, S: SparseOperator) -> RitzPairs:
        if pairs.vectors.shape != (S.num_nodes, self.num_steps):
            raise ValueError(
                f"these Ritz pairs have vectors of shape {tuple(pairs.vectors.shape)}, but the graph has {S.num_nodes} "
                f"nodes and the layer {self.num_steps} steps: recompute them from this graph"
            )
        return _converted(pairs, S.dtype)

    def _edge_types(
        self, edge_index: Tensor, edge_weight: Tensor | None, edge_type: Tensor | None, S: SparseOperator
    ) -> EdgeTypeOperators | None:
        if self.num_edge_types == 0:
            return None
        if edge_type is None:
            raise ValueError(f"this layer has {self.num_edge_types} edge types: pass edge_type")
        options = (self.num_edge_types, S.num_nodes, S.dtype)
        return EdgeTypeOperators(operators_by_type(edge_index, edge_weight, edge_type, *options))

    def convolve(self, x: Tensor, spectrum: Any) -> Tensor:
        """Eq. 7 for `[..., node, in_channels]`, in whatever layout the spectrum is."""
        if self.inner_activation is None:
            return super().convolve(x, spectrum)
        blocks = torch.cat([self.inner_activation(block) for block in self._blocks(x, spectrum)], -1)
        y = blocks @ self._terms(x).by_term.flatten(0, 1)
        return y if self.bias is None else y + self.bias

    def _blocks(self, x: Tensor, spectrum: GraphSpectrum) -> list[Tensor]:
        """[S^s X, ..., L_i X, ...], formed for a nonlinearity before the concatenation."""
        blocks = power_terms(spectrum.operator, x, self.short_scales)
        if spectrum.basis is not None and self.filter is not None:
            coefficients = spectrum.basis.project(x)
            response = self.filter(spectrum.basis.values)
            blocks += [spectrum.basis.lift(part.unsqueeze(-1) * coefficients) for part in response.unbind(-1)]
        return blocks if spectrum.edge_types is None else blocks + spectrum.edge_types.terms(x)

    def extra_repr(self) -> str:
        scales = f"short_scales={list(self.short_scales)}, long_scales={list(self.long_scales)}"
        return f"{self.in_channels}, {self.out_channels}, {scales}, num_steps={self.num_steps}"


def refuse_gradient_of_weights(S: SparseOperator) -> None:
    """Ritz pairs are constants, so a gradient of the edge weights would lack what reaches them by the long scales."""
    if S.requires_grad and torch.is_grad_enabled():
        raise ValueError(
            "edge_weight requires a gradient, but the Ritz pairs of the long scales are constants, and their part of "
            "it would be missing: pass edge_weight.detach(), use short scales only (long_scales=()), or differentiate "
            "through Lanczos with AdaLanczosConv on adaptive_spectrum(S, num_steps)"
        )


def fixed_ritz_pairs(S: SparseOperator, num_steps: int, **options: Any) -> RitzPairs:
    """The Ritz pairs of every component of S as constants, in the type of S but never found in half precision.

    `options` are those of `component_ritz_pairs`.
    """
    working_dtype = torch.promote_types(S.dtype, torch.float32)
    fixed = S.with_values(S.values.detach().to(working_dtype))
    return _converted(component_ritz_pairs(fixed, num_steps, **options), S.dtype)


def _converted(pairs: RitzPairs, dtype: torch.dtype) -> RitzPairs:
    return pairs._replace(values=pairs.values.to(dtype), vectors=pairs.vectors.to(dtype))
