"""What the networks on PyG's layers share: the door for lists of edges, and what stands around the layers."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypedDict, Unpack

import torch
from torch import Tensor, nn
from torch_geometric.nn import SimpleConv, inits

from lanczosnet.affinity import BlockLayout, block_layout
from lanczosnet.affinity.adjacency import check_batch, check_edges, type_flags
from lanczosnet.baselines.edge_types import Aggregation, Edges
from lanczosnet.batching.from_data import as_data, edge_types_of, graph_of_node, node_input
from lanczosnet.batching.padded import (
    Blocks,
    OperatorBlocks,
    all_graphs,
    fit_in_blocks,
    operator_block,
    operator_blocks,
)
from lanczosnet.graphs import PackedGraphs
from lanczosnet.layers import NodeEncoder
from lanczosnet.layers import readout as make_readout
from lanczosnet.layers.encoder import NodeInput


class EdgeInputs(NamedTuple):
    """A graph, or a batch of them, as lists of edges."""

    x: Tensor  # node features or types, [node, ...]
    channels: list[Edges]  # the simple graph, then every edge type
    batch: Tensor  # [node]
    num_graphs: int
    clusters: Edges | None = None  # the simple graph's edges inside clusters, where it is partitioned
    cut: Edges | None = None  # and those between them
    is_crowded: bool = False  # whether a node has more neighbours than are sampled

    def with_channels(self, change: Callable[[Edges], Edges]) -> Self:
        return self._replace(channels=[change(edges) for edges in self.channels])


def edge_inputs(data: Any, encoder: NodeEncoder, num_edge_types: int = 0, *, validate: bool = True) -> EdgeInputs:
    """Read x, edge_index, edge_weight, edge_type or edge_attr, and batch, and check them."""
    x = node_input(data, encoder, validate=validate)
    batch, num_graphs = graph_of_node(data)
    index, weight = data.edge_index, getattr(data, "edge_weight", None)
    if weight is None:
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        weight = torch.ones(index.shape[1], dtype=dtype, device=index.device)
    if validate:
        check_edges(index, weight, len(x))
        if batch is not None:
            check_batch(batch, index, len(x), num_graphs)
    channels = [Edges(index, weight)]
    if num_edge_types:
        flags = type_flags(edge_types_of(data, num_edge_types), num_edge_types, index.shape[1])
        typed = [index[:, flag] for flag in flags.T]
        channels += [Edges(part, weight.new_ones(part.shape[1])) for part in typed]
    batch = torch.zeros(len(x), dtype=torch.long, device=x.device) if batch is None else batch
    return EdgeInputs(x, channels, batch, num_graphs)


class CommonOptions(TypedDict, total=False):
    """What every network takes by keyword.

    node_input: "features", or discrete node types as "one-hot" or "learned" embeddings.
    embedding_channels: size of a learned embedding.
    num_edge_types: edge types besides the simple graph.
    readout: None for one output per node; "mean", "sum", "gated" or "set2set" for one per graph.
    dropout: after every activation or propagation.
    input_dropout: on the node features.
    """

    node_input: NodeInput
    embedding_channels: int
    num_edge_types: int
    readout: str | None
    dropout: float
    input_dropout: float


class EdgeNetwork(nn.Module, ABC):
    """Node encoder, the layers of a network that defines `propagate`, and a readout where graphs are asked for.

    Shapes:
        - **input:** a PyG `Data` or `Batch` with x, edge_index and, as the options want them, edge_weight,
          edge_type `[edge]` or edge_attr `[edge, type]`
        - **output:** `[node, out_channels]`, or `[graph, out_channels]` with a readout
    """

    blocks_on_cpu = True  # whether padded blocks are the faster form there, too

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        node_input: NodeInput = "features",
        embedding_channels: int = 64,
        num_edge_types: int = 0,
        readout: str | None = None,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if num_edge_types < 0:
            raise ValueError(f"num_edge_types must be 0 (none) or more, but is {num_edge_types}")
        self.num_edge_types = num_edge_types
        self.encoder = NodeEncoder(in_channels, node_input, embedding_channels)
        self.readout = None if readout is None else make_readout(readout, hidden_channels, out_channels)
        self.dropout = nn.Dropout(dropout)
        self.input_dropout = nn.Dropout(input_dropout)
        self.last_channels = out_channels if readout is None else hidden_channels

    @abstractmethod
    def propagate(self, x: Tensor, inputs: Any) -> Tensor:
        """Encoded nodes -> `[node, last_channels]`."""

    def reset_parameters(self) -> None:
        for child in self.children():
            inits.reset(child)

    def prepare(self, data: Any, *, validate: bool = True) -> Any:
        """Everything that does not depend on parameters; pass it in place of `data` where the graph stays the same."""
        return edge_inputs(data, self.encoder, self.num_edge_types, validate=validate)

    def prepare_all(self, graphs: PackedGraphs, *, validate: bool = True) -> Blocks | None:
        """The same for many small graphs, in padded blocks of which a batch is a `gather`; None if they do not fit."""
        if self.readout is None or not fit_in_blocks(graphs, self.num_operators):
            return None
        with torch.no_grad():
            inputs = self.prepare(all_graphs(graphs), validate=validate)
            return self.blocks(inputs, block_layout(inputs.batch, inputs.num_graphs))

    @property
    def num_operators(self) -> int:
        """How many matrices per graph the blocks hold."""
        return 1 + self.num_edge_types

    def blocks(self, inputs: Any, layout: BlockLayout) -> Blocks | None:
        """What was prepared, in padded blocks; None where the network cannot do with those."""
        channels = [aggregation_block(edges, inputs, layout) for edges in inputs.channels]
        return operator_blocks(inputs.x, layout, channels)

    def forward(
        self,
        x: Any,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """`model(x, edge_index, ...)`, or `model(data)` with a PyG `Data` or `Batch` or what `prepare` made of it."""
        data = as_data(x, edge_index, edge_weight, batch, edge_attr, self.num_edge_types)
        if isinstance(data, Blocks):
            return self._of_blocks(data)
        inputs: Any = data if isinstance(data, tuple) else self.prepare(data)
        y = self.propagate(self.input_dropout(self.encoder(inputs.x)), inputs)
        return y if self.readout is None else self.readout(y, inputs.batch, inputs.num_graphs)

    def _of_blocks(self, blocks: Blocks) -> Tensor:
        x = self.input_dropout(self.encoder(blocks.nodes))
        if isinstance(blocks, OperatorBlocks):
            x = self.stack(x, self.convolutions, blocks.operators)  # type: ignore[arg-type]
        else:
            x = self.propagate(x, blocks.entered())  # type: ignore[attr-defined]
        return blocks.read(self.readout, x)

    def activate(self, x: Tensor) -> Tensor:
        return x.relu()

    def stack(self, x: Tensor, layers: nn.ModuleList, *arguments: Any) -> Tensor:
        """Layer after layer, activated and dropped out in between, and after the last where a readout follows."""
        for place, layer in enumerate(layers, start=1):
            x = layer(x, *arguments)
            if self.readout is not None or place < len(layers):
                x = self.dropout(self.activate(x))
        return x


def aggregation_block(
    edges: Edges, inputs: EdgeInputs, layout: BlockLayout, aggregation: Aggregation = "sum"
) -> Tensor:
    """What a channel does to the states of every graph, `[graph, node, node]`."""
    aggregate = SimpleConv(aggregation)
    return operator_block(lambda unit: aggregate(unit, *edges), layout, state_type(inputs))


def message_blocks(inputs: EdgeInputs, layout: BlockLayout, aggregation: Aggregation) -> Tensor:
    """All channels without the weights of their edges, `[graph, channel, node, node]`."""
    bare = [Edges(edges.edge_index) for edges in inputs.channels]
    return torch.stack([aggregation_block(edges, inputs, layout, aggregation) for edges in bare], 1)


def state_type(inputs: EdgeInputs) -> torch.dtype:
    return inputs.x.dtype if inputs.x.is_floating_point() else torch.get_default_dtype()


class RecurrentNetwork(EdgeNetwork):
    """States that one `step`, the same every time, changes `num_layers` times; a linear map before it, one after it."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **common)
        if num_layers < 1:
            raise ValueError(f"num_layers, the propagation steps, must be at least 1, but is {num_layers}")
        self.num_layers = num_layers
        self.input = nn.Linear(self.encoder.out_channels, hidden_channels)
        self.output = nn.Linear(hidden_channels, out_channels) if self.readout is None else nn.Identity()

    @abstractmethod
    def step(self, inputs: Any) -> Callable[[Tensor], Tensor]:
        """What every step does on these graphs, `[node, hidden_channels]` -> the same."""

    def propagate(self, x: Tensor, inputs: Any) -> Tensor:
        state, step = self.input(x), self.step(inputs)
        for _ in range(self.num_layers):
            state = self.dropout(step(state))
        return self.output(state)
