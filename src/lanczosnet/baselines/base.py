"""What the networks on PyG's layers share: the door for lists of edges, and what stands around the layers."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypedDict, Unpack

import torch
from torch import Tensor, nn
from torch_geometric.nn import SimpleConv, inits

from lanczosnet.affinity import Padding, padding_of
from lanczosnet.affinity.adjacency import check_batch, check_edges, type_flags
from lanczosnet.baselines.edge_types import Aggregation, EdgeList, WithEdgeTypes
from lanczosnet.baselines.padded_operators import operator_block, operator_blocks
from lanczosnet.batching.from_data import edge_types_of, graph_of_node, node_input
from lanczosnet.batching.graph_batch import GraphBatch
from lanczosnet.batching.padded import PaddedBatch
from lanczosnet.layers import NodeEncoder
from lanczosnet.layers import readout as make_readout
from lanczosnet.layers.encoder import NodeInput
from lanczosnet.layers.network import GraphNetwork
from lanczosnet.layers.widths import layer_widths


@dataclass(frozen=True, eq=False)
class EdgeBatch(GraphBatch):
    """A graph, or a batch of them, as lists of edges."""

    x: Tensor  # node features or types, [node, ...]
    channels: list[EdgeList]  # the simple graph, then every edge type
    batch: Tensor  # [node]
    num_graphs: int
    clusters: EdgeList | None = None  # the simple graph's edges inside clusters, where it is partitioned
    cut: EdgeList | None = None  # and those between them
    is_crowded: bool = False  # whether a node has more neighbours than are sampled

    def with_channels(self, change: Callable[[EdgeList], EdgeList]) -> Self:
        return replace(self, channels=[change(edges) for edges in self.channels])


def edge_inputs(data: Any, encoder: NodeEncoder, num_edge_types: int = 0, *, validate: bool = True) -> EdgeBatch:
    """Read x, edge_index, edge_weight, edge_type or edge_attr, and batch, and check them."""
    x = node_input(data, encoder.check_types if validate else None)
    batch, num_graphs = graph_of_node(data)
    index, weight = data.edge_index, getattr(data, "edge_weight", None)
    if weight is None:
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        weight = torch.ones(index.shape[1], dtype=dtype, device=index.device)
    if validate:
        check_edges(index, weight, len(x))
        if batch is not None:
            check_batch(batch, index, len(x), num_graphs)
    channels = [EdgeList(index, weight)]
    if num_edge_types:
        flags = type_flags(edge_types_of(data, num_edge_types), num_edge_types, index.shape[1])
        typed = [index[:, flag] for flag in flags.T]
        channels += [EdgeList(part, weight.new_ones(part.shape[1])) for part in typed]
    batch = torch.zeros(len(x), dtype=torch.long, device=x.device) if batch is None else batch
    return EdgeBatch(x, channels, batch, num_graphs)


class CommonOptions(TypedDict, total=False):
    """What every network takes; `BaselineNetwork` documents it."""

    in_channels: int
    hidden_channels: int
    out_channels: int
    num_layers: int
    node_input: NodeInput
    embedding_channels: int
    num_edge_types: int
    readout: str | None
    dropout: float
    input_dropout: float


class BaselineNetwork(GraphNetwork):
    """A network of the comparison.

    Args:
        in_channels: number of node features, or of node types.
        hidden_channels: width of the layers, of a head (GAT), or of the states (GGNN, GPNN, MPNN).
        out_channels: classes or targets.
        num_layers: graph convolutions, or propagation steps.
        node_input: "features", or discrete node types as "one-hot" or "learned" embeddings.
        embedding_channels: size of a learned embedding.
        num_edge_types: edge types besides the simple graph.
        readout: None for one output per node; "mean", "sum", "gated" or "set2set" for one per graph.
        dropout: after every activation or propagation.
        input_dropout: on the node features.
    """

    blocks_on_cpu = True  # whether padded blocks are the faster form there, too

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
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
        self.hidden_channels, self.out_channels, self.num_layers = hidden_channels, out_channels, num_layers
        last = out_channels if readout is None else hidden_channels
        self.widths = layer_widths(self.encoder.out_channels, hidden_channels, last, num_layers)

    def typed_convolutions(self, make: Callable[[int, int], nn.Module], **options: Any) -> nn.ModuleList:
        """A convolution of the simple graph for every layer, `WithEdgeTypes` with these options."""
        return nn.ModuleList(
            WithEdgeTypes(make(*width), *width, self.num_edge_types, **options) for width in self.widths
        )

    def propagate(self, x: Tensor, inputs: Any) -> Tensor:
        """Encoded nodes -> what the last layer gives."""
        simple, *types = inputs.channels
        return self.stack(x, self.convolutions, self.arguments(simple), types)  # type: ignore[arg-type]

    def arguments(self, simple: EdgeList) -> Sequence[Any]:
        """What a convolution takes of the simple graph."""
        return simple

    def reset_parameters(self) -> None:
        for child in self.children():
            inits.reset(child)

    def prepare(self, data: Any, *, validate: bool = True) -> Any:
        return edge_inputs(data, self.encoder, self.num_edge_types, validate=validate)

    @property
    def num_operators(self) -> int:
        return 1 + self.num_edge_types

    def padded(self, everything: Any, validate: bool) -> PaddedBatch | None:
        inputs = self.prepare(everything, validate=validate)
        return self.blocks(inputs, padding_of(inputs.batch, inputs.num_graphs))

    def node_states(self, graph: GraphBatch, features: Tensor) -> Tensor:
        return graph.propagate(self, self.input_dropout(features))

    def blocks(self, inputs: Any, padding: Padding) -> PaddedBatch | None:
        """What was prepared, in padded blocks; None where the network cannot do with those."""
        channels = [aggregation_block(edges, inputs, padding) for edges in inputs.channels]
        return operator_blocks(inputs.x, padding, channels)

    def activate(self, x: Tensor) -> Tensor:
        return x.relu()

    def stack(self, x: Tensor, layers: nn.ModuleList, *arguments: Any) -> Tensor:
        """Layer after layer, activated and dropped out in between, and after the last where a readout follows."""
        for place, layer in enumerate(layers, start=1):
            x = layer(x, *arguments)
            if self.readout is not None or place < len(layers):
                x = self.dropout(self.activate(x))
        return x


def aggregation_block(edges: EdgeList, inputs: EdgeBatch, padding: Padding, aggregation: Aggregation = "sum") -> Tensor:
    """What a channel does to the states of every graph, `[graph, node, node]`."""
    aggregate = SimpleConv(aggregation)
    return operator_block(lambda unit: aggregate(unit, *edges), padding, state_type(inputs))


def message_blocks(inputs: EdgeBatch, padding: Padding, aggregation: Aggregation) -> Tensor:
    """All channels without the weights of their edges, `[graph, channel, node, node]`."""
    bare = [EdgeList(edges.edge_index) for edges in inputs.channels]
    return torch.stack([aggregation_block(edges, inputs, padding, aggregation) for edges in bare], 1)


def state_type(inputs: EdgeBatch) -> torch.dtype:
    return inputs.x.dtype if inputs.x.is_floating_point() else torch.get_default_dtype()


class RecurrentBaseline(BaselineNetwork):
    """States that one `step`, the same every time, changes `num_layers` times; a linear map before it, one after it."""

    def __init__(self, *sizes: int, **common: Unpack[CommonOptions]) -> None:
        super().__init__(*sizes, **common)
        self.input = nn.Linear(self.encoder.out_channels, self.hidden_channels)
        self.output = nn.Identity()
        if self.readout is None:
            self.output = nn.Linear(self.hidden_channels, self.out_channels)  # type: ignore[assignment]

    @abstractmethod
    def step(self, inputs: Any) -> Callable[[Tensor], Tensor]:
        """What every step does on these graphs, `[node, hidden_channels]` -> the same."""

    def propagate(self, x: Tensor, inputs: Any) -> Tensor:
        state, step = self.input(x), self.step(inputs)
        for _ in range(self.num_layers):
            state = self.dropout(step(state))
        return self.output(state)
