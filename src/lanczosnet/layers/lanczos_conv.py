"""The multi-scale graph convolution of LanczosNet (Eq. 7, Algorithm 2)."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from lanczosnet.affinity import SparseOperator, adjacency, adjacency_by_type, normalized
from lanczosnet.filters import Scales, power_filter, power_sum, power_terms, spectral_basis, spectral_filter
from lanczosnet.krylov import RitzPairs, component_ritz_pairs
from lanczosnet.layers.blocks import BlockOperators, BlockSpectrum, block_convolution
from lanczosnet.layers.scale_weights import by_term, num_matrices
from lanczosnet.layers.spectrum import EdgeTypeOperators, GraphSpectrum


class LanczosConv(nn.Module):
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
            biases, zero there too) or "power" (nothing learned).
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
        tied_scales: bool = False,
        num_edge_types: int = 0,
        inner_activation: Callable[[Tensor], Tensor] | None = None,
        bias: bool = True,
        gain: float = 1.0,
    ) -> None:
        super().__init__()
        self.gain = gain
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.short_scales = Scales(short_scales).finite
        self.long_scales = Scales(long_scales, allow_infinity=True)
        self.num_steps = num_steps
        self.num_edge_types = num_edge_types
        self.inner_activation = inner_activation
        if num_steps < 1:
            raise ValueError(f"num_steps must be at least 1, but is {num_steps}")
        self.tied_scales = tied_scales
        self.num_scales = len(self.short_scales) + len(self.long_scales)
        if self.num_scales + num_edge_types == 0:
            raise ValueError("a convolution needs at least one short scale, long scale or edge type")
        self.filter = None
        if len(self.long_scales):
            self.filter = _filter(spectral_filter, tuple(self.long_scales), filter_channels, positive)
        self.weight = nn.Parameter(
            torch.empty(num_matrices(self.num_scales, num_edge_types, tied_scales), in_channels, out_channels)
        )
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    @property
    def multiplies_first(self) -> bool:
        """Whether features meet nothing but weights, which they outnumber: then they may be `SparseFeatures`."""
        factor = 1 if self.tied_scales else max(1, len(self.long_scales))
        narrows = self.in_channels > factor * self.out_channels
        return narrows and self.num_edge_types == 0 and self.inner_activation is None

    def reset_parameters(self) -> None:
        """Glorot for the concatenation's one weight matrix, zero for the bias."""
        nn.init.xavier_uniform_(self.weight.view(-1, self.out_channels), self.gain)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.filter is not None:
            self.filter.reset_parameters()  # type: ignore[operator]

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
                f"nodes and the layer {self.num_steps} steps: make them anew from this graph"
            )
        return _converted(pairs, S.dtype)

    def _edge_types(
        self, edge_index: Tensor, edge_weight: Tensor | None, edge_type: Tensor | None, S: SparseOperator
    ) -> EdgeTypeOperators | None:
        if self.num_edge_types == 0:
            return None
        if edge_type is None:
            raise ValueError(f"this layer has {self.num_edge_types} edge types: pass edge_type")
        if edge_weight is not None:  # an edge of weight zero is none, of whatever type
            exists = edge_weight.detach() != 0
            edge_index, edge_type = edge_index[:, exists], edge_type[exists]
        by_type = adjacency_by_type(edge_index, edge_type, self.num_edge_types, num_nodes=S.num_nodes, dtype=S.dtype)
        return EdgeTypeOperators([normalized(A) for A in by_type])

    def convolve(self, x: Tensor, spectrum: GraphSpectrum | BlockOperators | BlockSpectrum) -> Tensor:
        """Eq. 7 for `[..., node, in_channels]`, in whatever layout the spectrum is.

        In padded blocks the operators of all terms take its place, or those of all but the long scales.
        """
        if x.shape[-1] != self.in_channels:
            raise ValueError(f"this layer takes {self.in_channels} channels, but got {x.shape[-1]}")
        if isinstance(spectrum, BlockOperators):
            return block_convolution(x, spectrum, self._by_term().flatten(0, 1), self.bias)
        if isinstance(spectrum, BlockSpectrum):
            short, long, typed = self._weights()
            y = block_convolution(x, spectrum.known, torch.cat([short, typed]).flatten(0, 1), self.bias)
            return y + spectrum.long_scales(x, long.flatten(0, 1))
        y = self._folded(x, spectrum) if self.inner_activation is None else self._concatenated(x, spectrum)
        return y if self.bias is None else y + self.bias

    def _folded(self, x: Tensor, spectrum: GraphSpectrum) -> Tensor:
        parts = self._tied(x, spectrum) if self.tied_scales else self._untied(x, spectrum)
        typed = self._weights()[2]
        if len(typed) and spectrum.edge_types is not None:
            parts.append(spectrum.edge_types.convolve(x, typed))
        return sum(parts[1:], start=parts[0])

    def _untied(self, x: Tensor, spectrum: GraphSpectrum) -> list[Tensor]:
        short, long, _ = self._weights()
        parts = []
        if len(short):
            parts.append(power_filter(spectrum.operator, x, self.short_scales, short))
        if spectrum.basis is not None and self.filter is not None:
            parts.append(_long_scales(x, spectrum, self.filter(spectrum.basis.values), long))
        return parts

    def _tied(self, x: Tensor, spectrum: GraphSpectrum) -> list[Tensor]:
        """The same where all scales have one weight: features meet it once, before anything else."""
        if not self.num_scales:
            return []
        product = x @ (self.weight[0] / self.num_scales)
        parts = []
        if len(self.short_scales):
            parts.append(power_sum(spectrum.operator, product, self.short_scales))
        if spectrum.basis is not None and self.filter is not None:
            response = self.filter(spectrum.basis.values).sum(-1, keepdim=True)
            parts.append(spectrum.basis.inverse(response * spectrum.basis.transform(product)))
        return parts

    def _concatenated(self, x: Tensor, spectrum: GraphSpectrum) -> Tensor:
        """The twin that forms every block, for a nonlinearity before the concatenation."""
        blocks = power_terms(spectrum.operator, x, self.short_scales)
        if spectrum.basis is not None and self.filter is not None:
            coefficients = spectrum.basis.transform(x)
            response = self.filter(spectrum.basis.values)
            blocks += [spectrum.basis.inverse(part.unsqueeze(-1) * coefficients) for part in response.unbind(-1)]
        if spectrum.edge_types is not None:
            blocks += spectrum.edge_types.terms(x)
        if self.inner_activation is not None:
            blocks = [self.inner_activation(block) for block in blocks]
        return torch.cat(blocks, -1) @ self._by_term().flatten(0, 1)

    def _weights(self) -> tuple[Tensor, ...]:
        """The weights of the short scales, of the long scales, and of the edge types."""
        return self._by_term().split([len(self.short_scales), len(self.long_scales), self.num_edge_types])

    def _by_term(self) -> Tensor:
        return by_term(self.weight, self.num_scales, self.tied_scales)

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


def fixed_ritz_pairs(
    S: SparseOperator, num_steps: int, *, exact_up_to: int | None = None, search_steps: int | None = None
) -> RitzPairs:
    """The Ritz pairs of every component of S as constants, in the type of S but never found in half precision."""
    working_dtype = torch.promote_types(S.dtype, torch.float32)
    fixed = S.with_values(S.values.detach().to(working_dtype))
    pairs = component_ritz_pairs(fixed, num_steps, exact_up_to=exact_up_to, search_steps=search_steps)
    return _converted(pairs, S.dtype)


def _converted(pairs: RitzPairs, dtype: torch.dtype) -> RitzPairs:
    return pairs._replace(values=pairs.values.to(dtype), vectors=pairs.vectors.to(dtype))


def _filter(name: str, scales: Sequence[float], channels: Sequence[int], positive: bool) -> nn.Module:
    return spectral_filter(name, scales, channels, positive=positive)


def _long_scales(x: Tensor, spectrum: GraphSpectrum, response: Tensor, weights: Tensor) -> Tensor:
    """sum_i V f_i(R) V^T X W_i = V sum_i f_i(R) (V^T X) W_i: one pass through the K-dimensional space."""
    assert spectrum.basis is not None
    num_scales, in_channels, out_channels = weights.shape
    if in_channels > num_scales * out_channels:  # then X W_i are the fewer channels to transform
        products = spectrum.basis.transform(x @ weights.movedim(0, 1).flatten(1)).unflatten(-1, (num_scales, -1))
        return spectrum.basis.inverse((response.unsqueeze(-1) * products).sum(-2))
    coefficients = spectrum.basis.transform(x)
    spread = response.unsqueeze(-1) * coefficients.unsqueeze(-2)  # [frequency, scale, in_channels]
    return spectrum.basis.inverse(spread.flatten(-2) @ weights.flatten(0, 1))
