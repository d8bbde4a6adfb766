"""The convolution of AdaLanczosNet: filters on T, or on S itself where it is small, with gradients into S."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lanczosnet.affinity import BlockLayout, DenseOperator, Operator, SparseOperator, block_layout, dense_blocks
from lanczosnet.affinity.blocks import BlockEntries, block_entries
from lanczosnet.filters import Scales, power_filter, power_sum
from lanczosnet.krylov import Tridiagonalization, lanczos, leading, ritz, tridiagonal_matrix
from lanczosnet.krylov.ritz import checked_search_steps
from lanczosnet.krylov.setup import working_type
from lanczosnet.krylov.symmetric_eigen import symmetric_eigen
from lanczosnet.layers.basis import (
    BasisCoordinates,
    BlockCoordinates,
    Coordinates,
    NodeCoordinates,
    PaddedCoordinates,
    Places,
    RaggedCoordinates,
    SubsetCoordinates,
    places_of,
)
from lanczosnet.layers.blocks import BlockOperators, block_convolution
from lanczosnet.layers.scale_weights import by_term, num_matrices
from lanczosnet.layers.spectrum import EdgeTypeOperators

# How many places a node may have in padded blocks: dense products are that much faster than a pass for every step.
MOST_PADDING = 2


class Core(NamedTuple):
    """A part of the graph, compressed: S ~ Q C Q^T with C of size K x K, or C = S itself where that is small."""

    matrix: Tensor  # C, [..., step, step]
    coordinates: Coordinates
    eigen: tuple[Tensor, Tensor] | None = None  # of C, where it stays the same

    def decomposed(self) -> "Core":
        return self._replace(eigen=symmetric_eigen(self.matrix))


class AdaptiveSpectrum(NamedTuple):
    """A graph as AdaLanczosConv sees it, with gradients into whatever S was made of."""

    operator: Operator
    cores: list[Core]
    edge_types: EdgeTypeOperators | None = None

    def decomposed(self) -> "AdaptiveSpectrum":
        """With eigenpairs, for spectral filters of a graph that stays the same."""
        return self._replace(cores=[core.decomposed() for core in self.cores])


class ComponentPlan(NamedTuple):
    """Which components of a sparse graph are kept exactly and which are compressed; the same for all weights."""

    small: BlockLayout | None  # the exact ones as dense blocks
    entries: BlockEntries | None  # of the operator, in these blocks
    inside: Tensor | None  # one on the nodes of compressed components, [node]; None if there are none
    segment: Tensor | None  # the compressed components, numbered among themselves, [node]
    num_segments: int
    largest: int  # nodes
    places: Places | None = None  # the compressed ones as padded blocks, where they are of about one size


def component_plan(
    operator: SparseOperator, exact_up_to: int, component: Tensor | None = None, num_components: int = 1
) -> ComponentPlan:
    """Make it once where the graph's edges stay the same: `adaptive_spectrum` then never waits for a GPU."""
    if component is None:
        component, num_components = torch.zeros(operator.num_nodes, dtype=torch.long, device=operator.device), 1
    size = torch.bincount(component, minlength=num_components)
    is_small = size <= exact_up_to
    small = entries = inside = segment = places = None
    if bool(is_small.any()):
        small = block_layout(component, num_components, keep=is_small)
        entries = block_entries(operator, small)
    num_segments = int((~is_small).sum())
    if num_segments:
        inside = (~is_small[component]).to(operator.dtype)
        # Nodes of exact components have a start vector of zero, so it does not matter whom they are counted with.
        segment = ((~is_small).cumsum(0) - 1).clamp(min=0)[component]
    largest = int(size.max()) if len(size) else 0
    if num_segments > 1 and num_segments * largest <= MOST_PADDING * int(size[~is_small].sum()):
        places = places_of(block_layout(component, num_components, keep=~is_small))
    return ComponentPlan(small, entries, inside, segment, num_segments, largest, places)


def adaptive_spectrum(
    operator: Operator,
    num_steps: int,
    *,
    start: Tensor | None = None,
    exact_up_to: int | None = None,
    search_steps: int | None = None,
    component: Tensor | None = None,
    num_components: int = 1,
    reorthogonalize: bool = True,
    edge_types: EdgeTypeOperators | None = None,
    plan: ComponentPlan | None = None,
) -> AdaptiveSpectrum:
    """Compress S, differentiably: exactly where a graph or component is small, by Lanczos where it is not.

    At a breakdown, the normal case for small and symmetric graphs, the derivative of (Q, T) does not exist, while that
    of f(S) does. Small graphs therefore keep S itself.

    Args:
        operator: S, a dense batch or one sparse matrix.
        num_steps: K.
        start: the Lanczos start vector; ones where absent.
        exact_up_to: the most nodes of a graph (dense) or component (sparse) that is kept exactly; K where absent, and
            0 for the published path, which runs Lanczos on everything.
        search_steps: run so many Lanczos steps, keep the `num_steps` Ritz pairs of largest modulus; a single pair has
            no gradient where Ritz values meet: only where nothing of S is learned.
        component: the component of every node of a sparse operator, `[node]`; one component where absent.
        num_components: how many there are.
        reorthogonalize: False is the paper's recurrence.
        edge_types: operators to carry along.
        plan: what `component_plan` made of a sparse operator with these edges; made here where absent.
    """
    exact_up_to = num_steps if exact_up_to is None else exact_up_to
    steps = checked_search_steps(search_steps, num_steps)
    if steps > num_steps and operator.requires_grad:
        raise ValueError("search_steps needs an S of which nothing is learned: leave it out, or raise num_steps")
    options = {"num_steps": steps, "reorthogonalize": reorthogonalize}
    if isinstance(operator, DenseOperator):
        cores = _dense_cores(operator, start, exact_up_to, num_steps, options)
    else:
        assert isinstance(operator, SparseOperator)
        plan = component_plan(operator, exact_up_to, component, num_components) if plan is None else plan
        cores = _sparse_cores(operator, start, plan, num_steps, options)
    return AdaptiveSpectrum(operator, cores, edge_types)


def _dense_cores(
    operator: DenseOperator, start: Tensor | None, exact_up_to: int, num_pairs: int, options: dict[str, Any]
) -> list[Core]:
    width, num_graphs = operator.num_nodes, operator.shape[0]
    if width <= exact_up_to:
        return [Core(operator.dense(), NodeCoordinates())]
    size = torch.full((num_graphs,), width) if operator.mask is None else operator.mask.sum(-1)
    is_small = (size <= exact_up_to).to(operator.device)
    small, large = is_small.nonzero().squeeze(1), (~is_small).nonzero().squeeze(1)
    if len(small) == 0:
        return [_lanczos_core(operator, start, num_pairs, options)]
    cores = [Core(operator.dense()[small], SubsetCoordinates(NodeCoordinates(), small, num_graphs))]
    if len(large):
        mask = None if operator.mask is None else operator.mask[large]
        part = DenseOperator(operator.dense()[large], mask=mask)
        core = _lanczos_core(part, None if start is None else start[large], num_pairs, options)
        cores.append(core._replace(coordinates=SubsetCoordinates(core.coordinates, large, num_graphs)))
    return cores


def _sparse_cores(
    operator: SparseOperator, start: Tensor | None, plan: ComponentPlan, num_pairs: int, options: dict[str, Any]
) -> list[Core]:
    cores = []
    if plan.small is not None:
        cores.append(Core(dense_blocks(operator, plan.small, plan.entries).dense(), BlockCoordinates(plan.small)))
    if plan.inside is not None:
        start = plan.inside if start is None else start * plan.inside
        dtype = working_type(plan.largest, options["num_steps"], operator.dtype)
        options = options | {"working_dtype": dtype, "validate": False}
        cores.append(_lanczos_core(operator, start, num_pairs, options, plan))
    return cores


def _lanczos_core(
    operator: Operator,
    start: Tensor | None,
    num_pairs: int,
    options: dict[str, Any],
    plan: ComponentPlan | None = None,
) -> Core:
    if plan is None or plan.num_segments == 1:  # all that is not zero belongs to one component
        operator = operator.without_segments() if isinstance(operator, SparseOperator) else operator
        matrix, basis = _compressed(lanczos(operator, start, **options), num_pairs)
        return Core(matrix, BasisCoordinates(basis))
    assert plan.segment is not None
    result = lanczos(operator, start, segment=plan.segment, num_segments=plan.num_segments, **options)
    matrix, basis = _compressed(result, num_pairs)
    coordinates: Coordinates
    if plan.places is None:
        coordinates = RaggedCoordinates(basis, plan.segment, plan.num_segments)
    else:
        coordinates = PaddedCoordinates(basis, plan.places)
    return Core(matrix, coordinates)


def _compressed(result: Tridiagonalization, num_pairs: int) -> tuple[Tensor, Tensor]:
    """C and Q: T and the Lanczos vectors or, where more steps were run than are kept, the leading Ritz pairs."""
    if result.basis.shape[-1] <= num_pairs:
        return tridiagonal_matrix(result), result.basis
    pairs = leading(ritz(result), num_pairs)
    return torch.diag_embed(pairs.values), pairs.vectors


class AdaLanczosConv(nn.Module):
    r"""Multi-scale graph convolution of AdaLanczosNet (Eqs. 7 and 10): :math:`\hat L_i = Q\, g_i(T)\, Q^\top`.

    Args:
        in_channels: size of each input.
        out_channels: size of each output.
        filter: maps T to one matrix per long scale (see `lanczosnet.filters.tridiagonal`); None without long scales.
        short_scales: powers of S that are multiplied out.
        num_long_scales: how many matrices the filter gives.
        tied_scales: as in `LanczosConv`.
        num_edge_types: adds one hop per edge type.
        bias: add a bias.
        gain: of the first weights, relative to Glorot's.

    Shapes:
        - **input:** `[..., node, in_channels]` and the graph's `AdaptiveSpectrum`; in padded blocks the operators of
          all terms take its place
        - **output:** `[..., node, out_channels]`
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        filter: nn.Module | None,  # noqa: A002
        short_scales: Sequence[int] = (1, 2, 5),
        num_long_scales: int = 2,
        *,
        tied_scales: bool = False,
        num_edge_types: int = 0,
        bias: bool = True,
        gain: float = 1.0,
    ) -> None:
        super().__init__()
        self.gain = gain
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.short_scales = Scales(short_scales).finite
        self.filter = filter
        self.tied_scales = tied_scales
        self.sizes = [len(self.short_scales), num_long_scales if filter is not None else 0, num_edge_types]
        if sum(self.sizes) == 0:
            raise ValueError("a convolution needs at least one short scale, long scale or edge type")
        self.num_scales = sum(self.sizes[:2])
        self.weight = nn.Parameter(
            torch.empty(num_matrices(self.num_scales, num_edge_types, tied_scales), in_channels, out_channels)
        )
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    @property
    def multiplies_first(self) -> bool:
        """Whether features meet nothing but weights, which they outnumber: then they may be `SparseFeatures`."""
        factor = 1 if self.tied_scales else max(1, self.sizes[1])
        return self.in_channels > factor * self.out_channels and self.sizes[2] == 0

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight.view(-1, self.out_channels), self.gain)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.filter is not None:
            self.filter.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, spectrum: AdaptiveSpectrum | BlockOperators) -> Tensor:
        if isinstance(spectrum, BlockOperators):
            return block_convolution(x, spectrum, self._by_term().flatten(0, 1), self.bias)
        short, long, typed = self._by_term().split(self.sizes)
        parts = self._tied(x, spectrum) if self.tied_scales else self._untied(x, spectrum, short, long)
        if len(typed) and spectrum.edge_types is not None:
            parts.append(spectrum.edge_types.convolve(x, typed))
        y = sum(parts[1:], start=parts[0])
        return y if self.bias is None else y + self.bias

    def convolve(self, x: Tensor, spectrum: AdaptiveSpectrum | BlockOperators) -> Tensor:
        """The same under the name that `LanczosConv` has for it."""
        return self(x, spectrum)

    def _untied(self, x: Tensor, spectrum: AdaptiveSpectrum, short: Tensor, long: Tensor) -> list[Tensor]:
        parts = []
        if len(short):
            parts.append(power_filter(spectrum.operator, x, self.short_scales, short))
        if self.filter is not None:
            parts += [_long_scales(x, core, _filtered(self.filter, core), long) for core in spectrum.cores]
        return parts

    def _tied(self, x: Tensor, spectrum: AdaptiveSpectrum) -> list[Tensor]:
        """The same where all scales have one weight: the filters of all are one."""
        if not self.num_scales:
            return []
        weight = self.weight[:1] / self.num_scales
        parts = []
        if len(self.short_scales):
            parts.append(power_sum(spectrum.operator, x @ weight[0], self.short_scales))
        if self.filter is not None:
            for core in spectrum.cores:
                parts.append(_long_scales(x, core, _filtered(self.filter, core).sum(-3, keepdim=True), weight))
        return parts

    def _by_term(self) -> Tensor:
        return by_term(self.weight, self.num_scales, self.tied_scales)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, short_scales={list(self.short_scales)}"


@torch.compiler.disable  # eigenvalues, forward-mode slopes and hand-written gradients are not for tracing
def _filtered(chosen: nn.Module, core: Core) -> Tensor:
    return chosen(core.matrix) if core.eigen is None else chosen(core.matrix, core.eigen)


def _long_scales(x: Tensor, core: Core, filters: Tensor, weights: Tensor) -> Tensor:
    """Q sum_i F_i Q^T X W_i as one product, for filters `[..., scale, step, step]`."""
    wide = filters.movedim(-3, -2).flatten(-2)  # [..., step, scale x step]
    weighted = core.coordinates.weighted(x, weights)  # [..., scale, step, out]
    return core.coordinates.inverse(wide @ weighted.flatten(-3, -2).to(wide.dtype))
