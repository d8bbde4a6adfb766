"""GCN (Kipf and Welling, ICLR 2017)."""

from typing import Any, Unpack

from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from lanczosnet.baselines.base import BaselineNetwork, CommonOptions, EdgeBatch
from lanczosnet.baselines.edge_types import EdgeList


class GCN(BaselineNetwork):
    """X' = relu(sum_c S_c X W_c), with S = D^-1/2 (A + I) D^-1/2 of the simple graph and of every edge type.

    Args:
        *sizes, **common: as in `BaselineNetwork`.
    """

    def __init__(self, *sizes: int, **common: Unpack[CommonOptions]) -> None:
        super().__init__(*sizes, **common)
        self.convolutions = self.typed_convolutions(lambda *width: GCNConv(*width, normalize=False))

    def prepare(self, data: Any, *, validate: bool = True) -> EdgeBatch:
        inputs = super().prepare(data, validate=validate)
        return inputs.with_channels(lambda edges: symmetric_normalized(edges, len(inputs.x)))


def symmetric_normalized(edges: EdgeList, num_nodes: int) -> EdgeList:
    """D^-1/2 (A + I) D^-1/2 as weights of edges, as PyG has it."""
    assert edges.edge_weight is not None
    return EdgeList(*gcn_norm(edges.edge_index, edges.edge_weight, num_nodes, dtype=edges.edge_weight.dtype))
