"""GCN (Kipf and Welling, ICLR 2017)."""

from typing import Any, Unpack

from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from lanczosnet.baselines.base import BaselineNetwork, CommonOptions, EdgeBatch
from lanczosnet.baselines.edge_types import EdgeList, WithEdgeTypes
from lanczosnet.layers.widths import layer_widths


class GCN(BaselineNetwork):
    """X' = relu(sum_c S_c X W_c), with S = D^-1/2 (A + I) D^-1/2 of the simple graph and of every edge type.

    Args:
        in_channels: number of node features, or of node types.
        hidden_channels: width of the layers.
        out_channels: classes or targets.
        num_layers: graph convolutions.
        **common: as in `CommonOptions`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **common)
        self.convolutions = nn.ModuleList(
            WithEdgeTypes(GCNConv(*width, normalize=False), *width, self.num_edge_types)
            for width in layer_widths(self.encoder.out_channels, hidden_channels, self.last_channels, num_layers)
        )

    def prepare(self, data: Any, *, validate: bool = True) -> EdgeBatch:
        inputs = super().prepare(data, validate=validate)
        return inputs.with_channels(lambda edges: symmetric_normalized(edges, len(inputs.x)))

    def propagate(self, x: Tensor, inputs: EdgeBatch) -> Tensor:
        simple, *types = inputs.channels
        return self.stack(x, self.convolutions, simple, types)


def symmetric_normalized(edges: EdgeList, num_nodes: int) -> EdgeList:
    """D^-1/2 (A + I) D^-1/2 as weights of edges, as PyG has it."""
    assert edges.edge_weight is not None
    return EdgeList(*gcn_norm(edges.edge_index, edges.edge_weight, num_nodes, dtype=edges.edge_weight.dtype))
