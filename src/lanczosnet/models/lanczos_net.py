"""LanczosNet (section 3.2, Algorithm 2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Unpack

import torch
from torch import Tensor

from lanczosnet.affinity import RealForm, SparseOperator, hermitian, normalized
from lanczosnet.affinity.hermitian import check_charge, folded
from lanczosnet.affinity.sharded_operator import ShardedOperator
from lanczosnet.backends.segments import index_within_segment, segment_sum
from lanczosnet.batching.formed import (
    FormedOperators,
    formed_layers,
    layer_matrices,
    spectral_operators,
    stacked_powers,
)
from lanczosnet.batching.from_data import DENSE_UP_TO, check_pairs, graph_inputs
from lanczosnet.batching.graph_spectrum import GraphSpectrum, RitzFilter
from lanczosnet.batching.padded import PaddedBatch
from lanczosnet.batching.shard import ShardData
from lanczosnet.batching.sparse import SparseBatch
from lanczosnet.filters import DenseBasis, PowerFilter, responses, spectral_basis
from lanczosnet.graphs.edges import with_usable_edges
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.krylov import RitzPairs, hermitian_ritz_pairs
from lanczosnet.krylov.sharded_components import sharded_ritz_pairs
from lanczosnet.layers import LanczosConv
from lanczosnet.layers.lanczos_conv import fixed_ritz_pairs, refuse_gradient_of_weights
from lanczosnet.models.base import LanczosNetwork, LanczosOptions
from lanczosnet.models.filter_defaults import FilterDefaults, FilterDefaultsByBlock
from lanczosnet.transforms import AddRitzPairs

FORMS = FilterDefaultsByBlock(
    residual=FilterDefaults((0, 1, 2), (10, 20, 30), "mlp"),
    plain=FilterDefaults((1, 2, 5, 7), (10, 20, 30), "anchored"),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class SpectralBatch(PaddedBatch):
    """Many small graphs as LanczosNet sees them."""

    vectors: Annotated[Tensor, "graph node step"]  # V, the pairs of a graph's components side by side
    powers: Annotated[Tensor, "graph step scale"]  # of the Ritz values, or what else filters take of them
    known: Annotated[Tensor, "graph node scale node"]  # powers of S, and long scales of which nothing is learned
    typed: Annotated[Tensor, "graph node type node"]  # S of every edge type

    can_join = True
    can_pair = True


class LanczosNet(LanczosNetwork):
    """Multi-scale graph convolutions on Ritz pairs that are computed once per graph.

    Args:
        in_channels: number of node features, or of node types.
        hidden_channels: width of the layers.
        out_channels: classes or targets.
        num_layers: graph convolutions.
        short_scales, long_scales: as in `LanczosConv`; by default 0, 1, 2 and 10, 20, 30 in residual blocks, and
            1, 2, 5, 7 and 10, 20, 30 in the published form.
        spectral_filter, filter_channels, positive: as in `LanczosConv`; by default the filter is "mlp" in residual
            blocks, and "anchored" in the published form.
        exact_up_to: components of at most this many nodes are decomposed exactly instead of by Lanczos: by default
            those of up to `num_steps`, whose pairs are then all of S; with 0 none.
        signed: negative weights are negative entries of S, normalised by absolute values (the signed Laplacian).
        magnetic: the charge of the magnetic Laplacian, for directed edges: 0.25 is usual, 0 leaves directions out. Half
            of the hidden channels are then real parts and half imaginary ones; it needs residual blocks.
        **options: as in `LanczosNetwork`.

    Shapes:
        - **input:** `x` and `edge_index`, `edge_weight`, `batch`, `edge_attr` `[edge, type]`, or a PyG `Data` or
          `Batch` with these or `edge_type` `[edge]`; the pairs of `AddRitzPairs` are used where they are there.
          Weights and pairs are converted to the network's floating type; pairs are constants, so that with long scales
          an edge_weight that requires a gradient is refused
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
        spectral_filter: str | None = None,
        filter_channels: Sequence[int] = (128,),
        positive: bool = False,
        exact_up_to: int | None = None,
        signed: bool = False,
        magnetic: float = 0.0,
        **options: Unpack[LanczosOptions],
    ) -> None:
        check_charge(magnetic)
        form = FORMS.chosen(options.get("block", "residual"), short_scales, long_scales, spectral_filter)

        def convolution(in_channels: int, out_channels: int, **weights: Any) -> LanczosConv:
            return LanczosConv(
                in_channels,
                out_channels,
                form.short,
                form.long,
                options.get("num_steps", 20),
                spectral_filter=form.spectral_filter,
                filter_channels=filter_channels,
                positive=positive,
                **weights,
            )

        sizes = (in_channels, hidden_channels, out_channels, num_layers)
        super().__init__(*sizes, form.short, form.long, convolution, is_complex=magnetic > 0, **options)
        self.exact_up_to = exact_up_to
        self.signed, self.magnetic = signed, magnetic
        self.needs_pairs = len(form.long) > 0

    @property
    def learns_response(self) -> bool:
        """Whether what the network does to Ritz values changes while it learns."""
        return self.needs_pairs and not isinstance(self.convolutions[0].filter, PowerFilter)

    @property
    def takes_host_features(self) -> bool:
        return self.multiplies_first and self.encoder.node_input == "features"

    @property
    def transform(self) -> AddRitzPairs | None:
        """What may be computed once for every graph of a data set."""
        if not self.needs_pairs:
            return None
        bounds: dict[str, Any] = {"exact_up_to": self.exact_up_to, "search_steps": self.search_steps}
        return AddRitzPairs(self.num_steps, signed=self.signed, magnetic=self.magnetic, **bounds)

    @torch.compiler.disable
    def prepare(self, data: Any, *, validate: bool = True) -> SparseBatch:
        data = self._usable(data)
        graph = graph_inputs(data, self, validate=validate, packed=True, dtype=self.dtype)
        if self.is_complex:
            return self._prepared_complex(data, replace(graph, padding=None), validate)
        S = self._affinity(data, graph, validate)
        basis = None
        if self.needs_pairs:
            refuse_gradient_of_weights(S)
            pairs = self._pairs(graph, S, validate)
            if graph.padding is not None:
                pairs = pairs._replace(vectors=graph.pad(pairs.vectors), segment=None)
            basis = spectral_basis(pairs, S.processes, graph.num_shared)
        graph = graph.with_sparse_features() if self.multiplies_first else graph
        return replace(graph, spectrum=GraphSpectrum(graph.operator(S), basis, graph.edge_types))

    def _prepared_complex(self, data: Any, graph: SparseBatch, validate: bool) -> SparseBatch:
        """With real parts above imaginary ones: see `RealForm`."""
        S: Any = hermitian(data, self.magnetic, signed=self.signed, dtype=self.dtype)
        basis = None
        if self.needs_pairs:
            refuse_gradient_of_weights(S)
            basis = spectral_basis(self._complex_pairs(graph, S, validate))
        return replace(graph.with_sparse_features(), spectrum=GraphSpectrum(S, basis))

    def _complex_pairs(self, inputs: SparseBatch, S: RealForm, validate: bool) -> RitzPairs:
        if inputs.ritz is None:
            bounds = {"exact_up_to": self.exact_up_to, "search_steps": self.search_steps}
            fixed: Any = S.detach()
            return hermitian_ritz_pairs(fixed, self.num_steps, (inputs.component, inputs.num_components), **bounds)
        values, vectors = inputs.ritz
        of_both = replace(inputs, component=torch.cat([inputs.component] * 2), ritz=(values, folded(vectors)))
        return self._given_pairs(of_both, S, validate, 2 * self.num_steps)

    def _usable(self, data: Any) -> Any:
        """With signs and directions apart from weights, where they count."""
        if not (self.signed or self.is_complex) or data is None:
            return data
        if isinstance(data, StoredGraph | ShardData):
            raise ValueError("a graph folder keeps neither signs nor directions: leave signed and magnetic out")
        return with_usable_edges(data)

    def _affinity(self, data: Any, graph: SparseBatch, validate: bool) -> Any:
        """S as a sparse operator."""
        if self.signed:
            return hermitian(data, dtype=self.dtype)
        return normalized(graph.adjacency, validate=validate)

    @property
    def num_operators(self) -> int:
        return len(self.short_scales) + (0 if self.learns_response else len(self.long_scales)) + self.num_edge_types

    def padded(self, everything: Any, validate: bool) -> SpectralBatch | None:
        """None where channels are complex, which only sparse graphs have."""
        if self.is_complex:
            return None
        everything = self._usable(everything)
        graph = graph_inputs(everything, self, validate=validate, by_graph=True, dtype=self.dtype)
        S = self._affinity(everything, graph, validate)
        values, vectors = _by_graph(self._pairs(graph, S, validate), graph) if self.needs_pairs else _no_pairs(graph)
        # Two graphs may share a block, so that padding must be zero: the power 0 is one there, too.
        is_step = (vectors.abs().amax(1) > 0).unsqueeze(-1)
        power = self._features(values) * is_step if self.needs_pairs else values.unsqueeze(-1)
        known = stacked_powers(graph.operator(S).dense(), self.short_scales)
        if not self.learns_response and self.needs_pairs:
            known = torch.cat([known, spectral_operators(vectors, power.unsqueeze(2)).squeeze(1)], 2)
            power, vectors = power[:, :0], vectors[:, :, :0]
        return SpectralBatch(
            x=graph.pad(graph.x),
            descriptors=graph.descriptors,
            mask=graph.mask,
            vectors=vectors,
            powers=power,
            known=known * graph.mask[:, :, None, None],
            typed=graph.typed_blocks(),
        )

    def _features(self, values: Tensor) -> Tensor:
        """What the filters of all layers take of Ritz values."""
        features: Tensor = self.convolutions[0].filter.features(values)  # type: ignore[union-attr, operator]
        return features

    def _pairs(self, inputs: SparseBatch, S: SparseOperator | ShardedOperator, validate: bool) -> RitzPairs:
        if inputs.ritz is None:
            components = (inputs.component, inputs.num_components)
            bounds = {"exact_up_to": self.exact_up_to, "search_steps": self.search_steps}
            if isinstance(S, ShardedOperator):
                return sharded_ritz_pairs(S, self.num_steps, components, inputs.num_shared, **bounds)
            return fixed_ritz_pairs(S, self.num_steps, components=components, **bounds)
        return self._given_pairs(inputs, S, validate, self.num_steps)

    def _given_pairs(self, inputs: SparseBatch, S: Any, validate: bool, num_pairs: int) -> RitzPairs:
        """Those that the data carry."""
        assert inputs.ritz is not None
        values, vectors = inputs.ritz
        if values.shape[1] != num_pairs:
            phases = f", magnetic={self.magnetic}" if self.magnetic else ""
            raise ValueError(
                f"the data carries {values.shape[1]} Ritz pairs, but the model wants {num_pairs}: "
                f"apply AddRitzPairs(num_steps={self.num_steps}{phases})"
            )
        # A component has as many pairs as there are columns in which any of its nodes is not zero.
        rank = (segment_sum(vectors.abs(), inputs.component, inputs.num_components) > 0).sum(1)
        pairs = RitzPairs(values, vectors, rank, inputs.component)
        if validate and isinstance(S, SparseOperator):
            check_pairs(pairs, S)
        return pairs

    def spectrum(self, inputs: SparseBatch, features: Tensor) -> GraphSpectrum:
        """That of `prepare`: features change nothing of it."""
        raise AssertionError("prepare has left the spectrum out")

    def operators(self, blocks: SpectralBatch, features: Tensor) -> Sequence[FormedOperators]:
        """What every layer multiplies with: formed where blocks have one shape and the number of products counts."""
        filters: list[Any] = [convolution.filter for convolution in self.convolutions]
        response = responses(filters, blocks.powers) if self.learns_response else None
        # Above this, to form V f(R) V^T costs more than the fewer products save; two graphs may share a wider block.
        is_wide = blocks.pair_mask is None and blocks.mask.shape[1] > DENSE_UP_TO
        if response is not None and blocks.rows is None and not is_wide:
            matrices = layer_matrices(blocks.vectors, response, blocks.known, blocks.typed)
            return formed_layers(matrices, blocks.padding)
        known = FormedOperators(torch.cat([blocks.known, blocks.typed], 2), blocks.padding)
        if response is None:
            return [known] * len(filters)
        if blocks.rows is None:  # padding is carried along, in steps as in nodes
            basis = DenseBasis(blocks.vectors, blocks.padding)
            return [replace(known, long_scales=RitzFilter(basis, of_layer)) for of_layer in response.unbind(2)]
        existing = blocks.vectors.abs().amax(1).flatten().nonzero().squeeze(1)
        basis = DenseBasis(blocks.vectors, blocks.padding, existing=existing)
        by_layer = (of_layer.flatten(0, 1).index_select(0, existing) for of_layer in response.unbind(2))
        return [replace(known, long_scales=RitzFilter(basis, of_layer)) for of_layer in by_layer]


def _by_graph(pairs: RitzPairs, inputs: SparseBatch) -> tuple[Tensor, Tensor]:
    """The pairs of every graph's components side by side: values `[graph, step]`, vectors `[graph, node, step]`."""
    graph = torch.empty(inputs.num_components, dtype=torch.long, device=inputs.batch.device)
    graph[inputs.component] = inputs.batch
    exists = torch.arange(pairs.values.shape[1], device=graph.device) < pairs.rank.unsqueeze(1)
    component, step = exists.nonzero(as_tuple=True)
    place, count = index_within_segment(graph[component], inputs.num_graphs)
    column = torch.zeros_like(exists, dtype=torch.long)
    column[component, step] = place
    values = pairs.values.new_zeros(inputs.num_graphs, int(count.max()))
    values[graph[component], place] = pairs.values[component, step]
    vectors = pairs.vectors.new_zeros(len(pairs.vectors), values.shape[1])
    # Columns past a component's rank are zero, and adding them to the first one changes nothing.
    vectors = vectors.scatter_add(1, column[inputs.component], pairs.vectors)
    return values, inputs.pad(vectors)


def _no_pairs(inputs: SparseBatch) -> tuple[Tensor, Tensor]:
    nothing = inputs.mask.new_zeros(*inputs.mask.shape, 0)
    return nothing[:, 0], nothing
