"""LanczosNet (section 3.2, Algorithm 2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from lanczosnet.affinity import SparseOperator, normalized
from lanczosnet.affinity.segments import index_within_segment
from lanczosnet.filters import PowerFilter, powers, responses, spectral_basis
from lanczosnet.graphs import AddRitzPairs, PackedGraphs
from lanczosnet.krylov import RitzPairs
from lanczosnet.krylov.ritz import checked_search_steps
from lanczosnet.layers import GraphSpectrum, LanczosConv, NodeEncoder
from lanczosnet.layers import readout as make_readout
from lanczosnet.layers.blocks import BlockOperators, BlockSpectrum, formed_operators, spectral_operators, stacked_powers
from lanczosnet.layers.encoder import NodeInput
from lanczosnet.layers.lanczos_conv import fixed_ritz_pairs, refuse_gradient_of_weights
from lanczosnet.layers.noise import FeatureNoise
from lanczosnet.models.between import Normalization, between
from lanczosnet.models.blocks import Blocks, all_graphs, fit_in_blocks
from lanczosnet.models.entrance import GraphInputs, check_pairs, graph_inputs, rank_of, type_of
from lanczosnet.models.widths import layer_widths


@dataclass(frozen=True, kw_only=True, eq=False)
class SpectralBlocks(Blocks):
    """Many small graphs as LanczosNet sees them."""

    vectors: Annotated[Tensor, "graph node step"]  # V, the pairs of a graph's components side by side
    powers: Annotated[Tensor, "graph step scale"]  # of the Ritz values
    known: Annotated[Tensor, "graph node scale node"]  # powers of S, and long scales of which nothing is learned
    typed: Annotated[Tensor, "graph node type node"]  # S of every edge type

    can_pair = True


class LanczosNet(nn.Module):
    """Multi-scale graph convolutions on Ritz pairs that are computed once per graph.

    Args:
        in_channels: number of node features, or of node types.
        hidden_channels: width of the layers.
        out_channels: classes or targets.
        num_layers: graph convolutions.
        short_scales, long_scales, num_steps, spectral_filter, filter_channels, positive: as in `LanczosConv`.
        node_input: "features", or discrete node types as "one-hot" or "learned" embeddings.
        embedding_channels: size of a learned embedding.
        num_edge_types: one affinity per edge type besides the graph's own.
        readout: None for one output per node; "mean", "sum", "gated" or "set2set" for one per graph.
        normalization: None, or "layer": of every node's channels, between a convolution and its activation.
        residual: add the input of a convolution to what comes out, where both are as wide.
        dropout: after every activation, and on the input where `input_dropout` says so.
        input_dropout: on the node features.
        node_dropout: on all features of a node at once (random propagation).
        initial_gain: of the convolutions' first weights, relative to Glorot's; small ones leave less of them in what a
            shallow network learns from few labels.
        tied_scales: one weight matrix for all scales of a convolution, as in `LanczosConv`.
        bias: add a bias in every convolution; Algorithm 2 has none.
        exact_up_to: components of up to so many nodes are decomposed in place of running Lanczos on them: by default
            those of up to `num_steps`, whose pairs are then all of S; with 0 none.
        search_steps: Lanczos steps that are run to find the `num_steps` pairs; of more, those of largest modulus are
            kept, and converge (an implicit restart). As many as `num_steps` where absent.

    Shapes:
        - **input:** a PyG `Data` or `Batch` with x, edge_index and, as the options want them, edge_weight,
          edge_type `[edge]` or edge_attr `[edge, type]`; the pairs of `AddRitzPairs` are used where they are there.
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
        short_scales: Sequence[int] = (1, 2, 5, 7),
        long_scales: Sequence[float] = (10, 20, 30),
        num_steps: int = 20,
        spectral_filter: str = "anchored",
        filter_channels: Sequence[int] = (128,),
        positive: bool = False,
        node_input: NodeInput = "features",
        embedding_channels: int = 64,
        num_edge_types: int = 0,
        readout: str | None = None,
        normalization: Normalization = None,
        residual: bool = False,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        node_dropout: float = 0.0,
        initial_gain: float = 1.0,
        tied_scales: bool = False,
        bias: bool = True,
        exact_up_to: int | None = None,
        search_steps: int | None = None,
    ) -> None:
        super().__init__()
        self.short_scales = tuple(short_scales)
        self.long_scales = tuple(long_scales)
        self.num_steps = num_steps
        self.exact_up_to = exact_up_to
        self.search_steps = checked_search_steps(search_steps, num_steps)
        self.num_edge_types = num_edge_types
        self.needs_pairs = len(long_scales) > 0
        self.encoder = NodeEncoder(in_channels, node_input, embedding_channels)
        last = out_channels if readout is None else hidden_channels
        widths = layer_widths(self.encoder.out_channels, hidden_channels, last, num_layers)
        self.convolutions = nn.ModuleList(
            LanczosConv(
                *width,
                short_scales,
                long_scales,
                num_steps,
                spectral_filter=spectral_filter,
                filter_channels=filter_channels,
                positive=positive,
                num_edge_types=num_edge_types,
                gain=initial_gain,
                tied_scales=tied_scales,
                bias=bias,
            )
            for width in widths
        )
        self.readout = None if readout is None else make_readout(readout, hidden_channels, out_channels)
        self.between = between(widths, readout is not None, normalization, residual, dropout)
        self.input_dropout = FeatureNoise(node_dropout, input_dropout)

    def reset_parameters(self) -> None:
        for module in (self.encoder, *self.convolutions, *self.between, self.readout):
            if module is not None:
                module.reset_parameters()

    @property
    def learns_response(self) -> bool:
        """Whether what the network does to Ritz values changes while it learns."""
        return self.needs_pairs and not isinstance(self.convolutions[0].filter, PowerFilter)

    @property
    def transform(self) -> AddRitzPairs | None:
        """What may be computed once for every graph of a data set."""
        if not self.needs_pairs:
            return None
        return AddRitzPairs(self.num_steps, exact_up_to=self.exact_up_to, search_steps=self.search_steps)

    @torch.compiler.disable
    def prepare(self, data: Any, *, validate: bool = True) -> tuple[GraphInputs, GraphSpectrum]:
        """Everything that does not depend on parameters; pass it in place of `data` where the graph stays the same."""
        inputs = graph_inputs(data, self.encoder, self.num_edge_types, validate=validate, dtype=type_of(self))
        S = normalized(inputs.adjacency, validate=validate)
        basis = None
        if self.needs_pairs:
            refuse_gradient_of_weights(S)
            pairs = self._pairs(inputs, S, validate)
            if inputs.layout is not None:
                pairs = pairs._replace(vectors=inputs.layout.pad(pairs.vectors), segment=None)
            basis = spectral_basis(pairs)
        inputs = inputs.with_sparse_features() if self.convolutions[0].multiplies_first else inputs
        return inputs, GraphSpectrum(inputs.arranged(S), basis, inputs.edge_types)

    @torch.no_grad()
    def prepare_all(self, graphs: PackedGraphs, *, validate: bool = True) -> SpectralBlocks | None:
        """The same for many small graphs, in padded blocks of which a batch is a `gather`; None if they do not fit."""
        num_known = len(self.short_scales) + (0 if self.learns_response else len(self.long_scales))
        if self.readout is None or not fit_in_blocks(graphs, num_known + self.num_edge_types):
            return None
        everything = all_graphs(graphs)
        inputs = graph_inputs(
            everything, self.encoder, self.num_edge_types, validate=validate, by_graph=True, dtype=type_of(self)
        )
        S = normalized(inputs.adjacency, validate=validate)
        values, vectors = _by_graph(self._pairs(inputs, S, validate), inputs) if self.needs_pairs else _no_pairs(inputs)
        # Two graphs may share a block, so that padding must be zero: the power 0 is one there, too.
        is_step = (vectors.abs().amax(1) > 0).unsqueeze(-1)
        power = powers(values, self.long_scales) * is_step if self.needs_pairs else values.unsqueeze(-1)
        known = stacked_powers(inputs.arranged(S).dense(), self.short_scales)
        if not self.learns_response and self.needs_pairs:
            known = torch.cat([known, spectral_operators(vectors, power.unsqueeze(2)).squeeze(1)], 2)
            power, vectors = power[:, :0], vectors[:, :, :0]
        return SpectralBlocks(
            x=inputs.enter(inputs.x),
            mask=inputs.mask,
            vectors=vectors,
            powers=power,
            known=known * inputs.mask[:, :, None, None],
            typed=inputs.typed_blocks(),
        )

    def _pairs(self, inputs: GraphInputs, S: SparseOperator, validate: bool) -> RitzPairs:
        if inputs.ritz is None:
            bounds = {"exact_up_to": self.exact_up_to, "search_steps": self.search_steps}
            return fixed_ritz_pairs(S, self.num_steps, **bounds)
        values, vectors = inputs.ritz
        if values.shape[1] != self.num_steps:
            raise ValueError(
                f"the data carries {values.shape[1]} Ritz pairs, but the model wants {self.num_steps}: "
                f"apply AddRitzPairs(num_steps={self.num_steps})"
            )
        rank = rank_of(vectors, inputs.component, inputs.num_components)
        pairs = RitzPairs(values, vectors, rank, inputs.component)
        if validate:
            check_pairs(pairs, S)
        return pairs

    def forward(self, data: Any) -> Tensor:
        if isinstance(data, SpectralBlocks):
            x = self._convolved(self.input_dropout(self.encoder(data.nodes)), self.operators(data))
            return data.read(self.readout, x)
        inputs, spectrum = data if isinstance(data, tuple) else self.prepare(data)
        x = inputs.enter(self.input_dropout(self.encoder(inputs.x)))
        x = inputs.leave(self._convolved(x, [spectrum] * len(self.convolutions)))
        return x if self.readout is None else self.readout(x, inputs.batch, inputs.num_graphs)

    def _convolved(self, x: Tensor, spectra: Iterable[GraphSpectrum | BlockOperators | BlockSpectrum]) -> Tensor:
        for place, (convolution, spectrum) in enumerate(zip(self.convolutions, spectra, strict=True)):
            y = convolution.convolve(x, spectrum)  # type: ignore[operator]
            x = self.between[place](y, x) if place < len(self.between) else y
        return x

    def operators(self, blocks: SpectralBlocks) -> Sequence[BlockOperators | BlockSpectrum]:
        """What every layer multiplies with: formed where blocks have one shape and the number of products counts."""
        filters: list[Any] = [convolution.filter for convolution in self.convolutions]
        response = responses(filters, blocks.powers) if self.learns_response else None
        if response is not None and blocks.rows is None:
            return formed_operators(blocks.vectors, response, blocks.known, blocks.typed, blocks.padding)
        known = BlockOperators(torch.cat([blocks.known, blocks.typed], 2), blocks.padding)
        if response is None:
            return [known] * len(filters)
        existing = blocks.vectors.abs().amax(1).flatten().nonzero().squeeze(1)
        return [BlockSpectrum(known, blocks.vectors, of_layer, existing) for of_layer in response.unbind(2)]


def _by_graph(pairs: RitzPairs, inputs: GraphInputs) -> tuple[Tensor, Tensor]:
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
    return values, inputs.enter(vectors)


def _no_pairs(inputs: GraphInputs) -> tuple[Tensor, Tensor]:
    nothing = inputs.mask.new_zeros(*inputs.mask.shape, 0)
    return nothing[:, 0], nothing
