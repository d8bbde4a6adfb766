"""What all networks share: the arguments of a call, preparation, and the way from node states to outputs."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from lanczosnet.batching.buckets import Buckets, buckets_of
from lanczosnet.batching.from_data import as_data
from lanczosnet.batching.graph_batch import GraphBatch
from lanczosnet.batching.padded import PaddedBatch, all_graphs, fit_in_blocks
from lanczosnet.graphs import PackedGraphs
from lanczosnet.layers.encoder import NodeEncoder

EXPORT = (
    "a graph cannot be an input of an exported program, since the sizes of its spectrum depend on its edges: "
    "export FixedGraph(model, data) of lanczosnet.models, whose input are node features"
)


class GraphNetwork(nn.Module, ABC):
    """A node encoder, layers, and a readout where graphs are asked for.

    Shapes:
        - **input:** `x` and `edge_index`, `edge_weight`, `batch`, `edge_attr` `[edge, type]`, or a PyG `Data` or
          `Batch` with these or `edge_type` `[edge]`
        - **output:** `[node, out_channels]`, or `[graph, out_channels]` with a readout
    """

    encoder: NodeEncoder
    readout: Any
    num_edge_types: int
    edge_channels = 0  # numbers on an edge that the network uses

    @abstractmethod
    def prepare(self, data: Any, *, validate: bool = True) -> GraphBatch:
        """Everything that does not depend on parameters; pass it in place of `data` where the graph stays the same."""

    @property
    @abstractmethod
    def num_operators(self) -> int:
        """How many matrices per graph the padded form holds."""

    @abstractmethod
    def padded(self, everything: Any, validate: bool) -> PaddedBatch | None:
        """The graphs of a PyG `Batch` in padded blocks; None where the network cannot do with those."""

    @abstractmethod
    def node_states(self, graph: GraphBatch, features: Tensor) -> Tensor:
        """Encoded nodes -> what the last layer gives, `[row, channel]`."""

    @torch.no_grad()
    def prepare_all(self, graphs: PackedGraphs, *, validate: bool = True) -> PaddedBatch | None:
        """The same for many small graphs, in padded blocks of which a batch is a `gather`; None if they do not fit."""
        if self.readout is None or not fit_in_blocks(graphs, self.num_operators):
            return None
        return self.padded(all_graphs(graphs), validate)

    @torch.no_grad()
    def prepare_buckets(self, graphs: PackedGraphs, most_bytes: int) -> Buckets | None:
        """The same for graphs of all sizes, checked, in blocks of a few widths; None if they do not fit."""
        if self.readout is None:
            return None
        return buckets_of(graphs, self.num_operators, most_bytes, lambda batch: self.padded(batch, validate=True))

    def forward(
        self,
        x: Any,
        edge_index: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        """`model(x, edge_index, ...)`, or `model(data)` with a PyG `Data` or `Batch` or what `prepare` made of it."""
        data = as_data(x, edge_index, edge_weight, batch, edge_attr, self.num_edge_types, self.edge_channels)
        if not isinstance(data, GraphBatch) and torch.compiler.is_exporting():
            raise ValueError(EXPORT)
        graph = data if isinstance(data, GraphBatch) else self.prepare(data)
        return self.outputs(graph, self.node_states(graph, self.encoder(graph.nodes)))

    def outputs(self, graph: GraphBatch, states: Tensor) -> Tensor:
        """What the last layer gives -> outputs, of nodes or of graphs."""
        return graph.readout(self.readout, states)
