"""AdaLanczosNet (section 3.3): graph kernel and node embeddings are learned through the Lanczos algorithm."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from lanczosnet.affinity import DenseOperator, GraphKernel
from lanczosnet.affinity.kernel import learned_affinity, learned_operator
from lanczosnet.affinity.sharded_operator import ShardedOperator
from lanczosnet.backends.segments import index_within_segment
from lanczosnet.batching.adaptive_spectrum import adaptive_spectrum, component_plan
from lanczosnet.batching.formed import FormedOperators, formed_layers, joined_terms, stacked_powers
from lanczosnet.batching.from_data import graph_inputs
from lanczosnet.batching.graph_spectrum import AdaptiveSpectrum
from lanczosnet.batching.padded import PaddedBatch
from lanczosnet.batching.shard import SMALLEST_SHARED, ShardData
from lanczosnet.batching.sharded_spectrum import sharded_spectrum
from lanczosnet.batching.sparse import SparseBatch
from lanczosnet.filters import (
    EntrywiseTridiagonalFilter,
    SpectralTridiagonalFilter,
    VectorizedTridiagonalFilter,
    filtered_by_layer,
    spectral_filter,
)
from lanczosnet.krylov import lanczos, tridiagonal_matrix
from lanczosnet.layers import AdaLanczosConv
from lanczosnet.models.base import LanczosNetwork, LanczosOptions
from lanczosnet.models.filter_defaults import FilterDefaults, FilterDefaultsByBlock

FORMS = FilterDefaultsByBlock(
    residual=FilterDefaults((0, 1, 2), (10, 20), "mlp"), plain=FilterDefaults((1, 2, 5), (10, 20), "anchored")
)
TridiagonalFilter = Literal["spectral", "vectorized", "entrywise"]


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveBatch(PaddedBatch):
    """Many small graphs as AdaLanczosNet sees them."""

    pattern: Annotated[Tensor, "graph node node"]  # ones where edges are
    typed: Annotated[Tensor, "graph node type node"]  # S of every edge type
    start: Annotated[Tensor, "graph node"]  # the Lanczos start vector
    is_exact: bool  # whether all graphs are filtered exactly, or all by Lanczos


class AdaLanczosNet(LanczosNetwork):
    """LanczosNet on a learned affinity, differentiated through Lanczos (or exactly, where a graph is small).

    Args:
        in_channels: number of node features, or of node types.
        hidden_channels: width of the layers.
        out_channels: classes or targets.
        num_layers: graph convolutions.
        short_scales: powers of the learned S that are multiplied out; by default 0, 1, 2 in residual blocks, and
            1, 2, 5 in the published form.
        long_scales: powers of T that the filters see; 10, 20 by default.
        tridiagonal_filter: "spectral" (a filter of the eigenvalues of T, with a stable gradient), "vectorized" (the
            published MLP on all entries of the powers of T) or "entrywise" (its lean form).
        spectral_filter: with "spectral": "anchored", "mlp", "unbiased", "power" or "heat"; by default "mlp" in residual
            blocks, and "anchored" in the published form.
        filter_channels: sizes of the filter's hidden layers.
        kernel_channels: sizes of the MLP f_theta of the graph kernel (Eq. 9); none where f is discarded and the node
            features or embeddings themselves are compared.
        self_loops: S of A + I, as for the other networks, where an edge weighs about exp(-1) beside a self-loop's one;
            False for section 3.3 to the letter, S of the graph kernel's A alone; nodes without an edge keep theirs.
        exact_up_to: graphs and components of at most this many nodes are filtered exactly (K where absent); 0 is the
            published path, Lanczos on everything. Only "spectral" filters can be exact.
        start: "ones", or "random" from a fixed seed; both make every prediction reproducible.
        seed: of the random start vector.
        reorthogonalize: False is the paper's recurrence.
        **options: as in `LanczosNetwork`; `search_steps` only for outputs per node of an affinity of which nothing is
            learned.

    Shapes:
        - **input:** as for `LanczosNet`; edge weights only say where edges are
        - **output:** `[node, out_channels]`, or `[graph, out_channels]` with a readout
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        short_scales: Sequence[int] | None = None,
        long_scales: Sequence[float] | None = None,
        tridiagonal_filter: TridiagonalFilter = "spectral",
        spectral_filter: str | None = None,
        filter_channels: Sequence[int] = (128,),
        kernel_channels: Sequence[int] = (),
        self_loops: bool = True,
        exact_up_to: int | None = None,
        start: Literal["ones", "random"] = "ones",
        seed: int = 0,
        reorthogonalize: bool = True,
        **options: Unpack[LanczosOptions],
    ) -> None:
        if start not in ("ones", "random"):
            raise ValueError(f"start must be 'ones' or 'random', not {start!r}")
        num_steps = options.get("num_steps", 20)
        if num_steps < 1:
            raise ValueError(f"num_steps must be at least 1, but is {num_steps}")

        form = FORMS.chosen(options.get("block", "residual"), short_scales, long_scales, spectral_filter)

        def convolution(in_channels: int, out_channels: int, **weights: Any) -> AdaLanczosConv:
            chosen = _filter(tridiagonal_filter, form, num_steps, filter_channels) if form.long else None
            return AdaLanczosConv(in_channels, out_channels, chosen, form.short, len(form.long), **weights)

        sizes = (in_channels, hidden_channels, out_channels, num_layers)
        kernel = partial(GraphKernel, hidden_channels=kernel_channels)
        super().__init__(*sizes, form.short, form.long, convolution, kernel, **options)
        # Filters of entries depend on the basis, which must then be Lanczos'.
        exact = num_steps if exact_up_to is None else exact_up_to
        self.exact_up_to = exact if tridiagonal_filter == "spectral" else 0
        self.self_loops = self_loops
        self.start = start
        self.seed = seed
        self.reorthogonalize = reorthogonalize
        needs_lanczos = self.learns_affinity or self.readout is not None or tridiagonal_filter != "spectral"
        if self.search_steps > num_steps and needs_lanczos:
            raise ValueError(
                "search_steps is for outputs per node of an affinity of which nothing is learned, with a spectral "
                "filter: leave it out, or raise num_steps"
            )

    def prepare(self, data: Any, *, validate: bool = True) -> SparseBatch:
        graph = graph_inputs(data, self, validate=validate, dtype=self.dtype)
        plan = None
        if graph.padding is None and not isinstance(data, ShardData):
            plan = component_plan(graph.adjacency, self.exact_up_to, graph.component, graph.num_components)
        graph = replace(graph, plan=plan, start=self._start_vector(graph))
        if self.learns_affinity:
            return graph
        graph = replace(graph, spectrum=self._fixed_spectrum(graph))
        return graph.with_sparse_features() if self.multiplies_first else graph

    def check_shareable(self) -> None:
        """As in `LanczosNetwork`, and whether S stays the same."""
        super().check_shareable()
        if self.learns_affinity:
            raise ValueError(
                "AdaLanczosNet learns its affinity, which cannot be shared out over processes: leave kernel_channels "
                "and learned embeddings out, or use one process"
            )
        if self.start != "ones":
            raise ValueError(
                "a random start vector cannot be shared out over processes: set start='ones', or use one process"
            )
        if self.exact_up_to >= SMALLEST_SHARED:
            raise ValueError(
                f"exact_up_to is {self.exact_up_to}, but components of {SMALLEST_SHARED:,} nodes may lie in several "
                "processes: make it smaller, or use one process"
            )

    @property
    def learns_affinity(self) -> bool:
        """Without an f_theta, and on features that are given, S and all that follows from it stay the same."""
        return any(True for module in (self.encoder, self.kernel) for _ in module.parameters())

    @torch.no_grad()
    def _fixed_spectrum(self, inputs: SparseBatch) -> AdaptiveSpectrum:
        spectrum = self.spectrum(inputs, self.encoder(inputs.x))
        acts_on_spectrum = getattr(self.convolutions[0].filter, "acts_on_spectrum", False)
        return spectrum.decomposed() if acts_on_spectrum else spectrum

    @property
    def num_operators(self) -> int:
        return 1 + self.num_edge_types

    def padded(self, everything: Any, validate: bool) -> AdaptiveBatch | None:
        """None where some graphs are to be filtered exactly and others by Lanczos, or where Lanczos meets graphs of
        several components."""
        graph = graph_inputs(everything, self, validate=validate, by_graph=True, dtype=self.dtype)
        size = everything.ptr.diff()
        is_exact = bool(size.max() <= self.exact_up_to)
        if not is_exact and (size.min() <= self.exact_up_to or graph.num_components > len(size)):
            return None
        mask, start = graph.mask, self._start_vector(graph)
        pattern = (graph.operator(graph.adjacency).dense() != 0).to(mask.dtype)
        return AdaptiveBatch(
            x=graph.pad(graph.x),
            descriptors=graph.descriptors,
            mask=mask,
            pattern=pattern * (1 - torch.eye(mask.shape[1], dtype=mask.dtype, device=mask.device)),
            typed=graph.typed_blocks(),
            start=mask if start is None else start,
            is_exact=is_exact,
        )

    @torch.compiler.disable
    def operators(self, blocks: AdaptiveBatch, features: Tensor) -> list[FormedOperators]:
        """What every layer multiplies with, from the graph kernel on these features."""
        with torch.autocast(features.device.type, enabled=False):
            S = self._learned(blocks, blocks.padding.pad(features.to(blocks.pattern.dtype)))
            short = stacked_powers(S.dense(), self.short_scales)
            long = self._long_scales(S, None if blocks.is_exact else blocks.start)
            return formed_layers(joined_terms(short, long, blocks.typed), blocks.padding)

    def _learned(self, blocks: AdaptiveBatch, features: Tensor) -> DenseOperator:
        """S from the graph kernel on features `[graph, node, channel]`."""
        embedding = self.kernel.layers(features)
        values = learned_affinity(embedding, blocks.pattern, blocks.mask, self_loops=self.self_loops)
        return DenseOperator(values, mask=blocks.mask)

    def _long_scales(self, S: DenseOperator, start: Tensor | None) -> Tensor:
        """`[graph, layer, node, scale, node]`, by Lanczos from a start vector, or exactly without one."""
        filters: list[Any] = [convolution.filter for convolution in self.convolutions]
        if not self.long_scales:
            return S.values.new_zeros(S.shape[0], len(filters), S.num_nodes, 0, S.num_nodes)
        if start is None:
            return filtered_by_layer(filters, S.dense(), dtype=S.dtype).movedim(2, 3)
        found = lanczos(S, start, self.num_steps, reorthogonalize=self.reorthogonalize, validate=False)
        Q = found.basis[:, None, None]
        return (Q @ filtered_by_layer(filters, tridiagonal_matrix(found)) @ Q.mT).movedim(2, 3)

    @torch.compiler.disable
    def spectrum(self, inputs: SparseBatch, features: Tensor) -> AdaptiveSpectrum:
        """S from the graph kernel on these features, compressed."""
        with torch.autocast(features.device.type, enabled=False):
            A = self.kernel(inputs.adjacency, features.to(inputs.adjacency.dtype))
            S = learned_operator(A, self_loops=self.self_loops)
            operator: Any = inputs.operator(S)
            if isinstance(operator, ShardedOperator):
                return self._sharded_spectrum(operator, inputs)
            return adaptive_spectrum(
                operator,
                self.num_steps,
                start=inputs.start,
                exact_up_to=self.exact_up_to,
                search_steps=self.search_steps,
                component=inputs.component,
                num_components=inputs.num_components,
                reorthogonalize=self.reorthogonalize,
                edge_types=inputs.edge_types,
                plan=inputs.plan,
            )

    def _sharded_spectrum(self, operator: ShardedOperator, inputs: SparseBatch) -> AdaptiveSpectrum:
        return sharded_spectrum(
            operator,
            self.num_steps,
            (inputs.component, inputs.num_components),
            inputs.num_shared,
            exact_up_to=self.exact_up_to,
            search_steps=self.search_steps,
            reorthogonalize=self.reorthogonalize,
        )

    def _start_vector(self, inputs: SparseBatch) -> Tensor | None:
        """Ones (None says so), or for every component the beginning of the same random sequence."""
        if self.start == "ones":
            return None
        place, size = index_within_segment(inputs.component, inputs.num_components)
        longest = int(size.max()) if len(size) else 0
        # NumPy's sequence begins the same whatever its length, so that a graph's start does not depend on its batch.
        sequence = torch.from_numpy(np.random.default_rng(self.seed).standard_normal(longest)).to(
            inputs.adjacency.values
        )
        return inputs.pad(sequence[place].unsqueeze(-1)).squeeze(-1)


def _filter(kind: str, form: FilterDefaults, num_steps: int, channels: Sequence[int]) -> nn.Module:
    if kind == "spectral":
        return SpectralTridiagonalFilter(spectral_filter(form.spectral_filter, form.long, channels))
    if kind == "vectorized":
        return VectorizedTridiagonalFilter(form.long, num_steps, channels)
    if kind == "entrywise":
        return EntrywiseTridiagonalFilter(form.long, channels)
    raise ValueError(f"unknown tridiagonal filter {kind!r}: choose 'spectral', 'vectorized' or 'entrywise'")
