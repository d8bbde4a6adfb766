"""GCN (Kipf and Welling, ICLR 2017)."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from lanczosnet.baselines.base import BaselineNetwork, CommonOptions, EdgeBatch
from lanczosnet.baselines.edge_types import EdgeList
from lanczosnet.layers.residual import Block, ResidualStack, is_residual


class GCN(BaselineNetwork):
    """X' = relu(sum_c S_c X W_c), with S = D^-1/2 (A + I) D^-1/2 of the simple graph and of every edge type.

    Args:
        block: "plain" as cited, or "residual": the same convolutions in the residual blocks of the Lanczos networks.
        feedforward: in residual blocks, a linear map after the activation.
        *sizes, **common: as in `BaselineNetwork`.
    """

    def __init__(
        self, *sizes: int, block: Block = "plain", feedforward: bool = True, **common: Unpack[CommonOptions]
    ) -> None:
        super().__init__(*sizes, **common)
        self.residual_stack: ResidualStack | None = None
        if is_residual(block):
            end = self.out_channels if self.readout is None else None
            ends = (self.encoder.out_channels, self.hidden_channels, end, self.num_layers)
            self.residual_stack = ResidualStack(*ends, feedforward=feedforward, dropout=self.dropout.p)
            self.widths = [(self.hidden_channels, self.hidden_channels)] * self.num_layers
        self.convolutions = self.typed_convolutions(lambda *width: GCNConv(*width, normalize=False))

    def prepare(self, data: Any, *, validate: bool = True) -> EdgeBatch:
        inputs = super().prepare(data, validate=validate)
        return inputs.with_channels(lambda edges: symmetric_normalized(edges, len(inputs.x)))

    def stack(self, x: Tensor, layers: nn.ModuleList, *arguments: Any) -> Tensor:
        if self.residual_stack is None:
            return super().stack(x, layers, *arguments)
        return self.residual_stack(x, [partial(_called, layer, arguments) for layer in layers])


def _called(layer: nn.Module, arguments: Sequence[Any], x: Tensor) -> Tensor:
    return layer(x, *arguments)


def symmetric_normalized(edges: EdgeList, num_nodes: int) -> EdgeList:
    """D^-1/2 (A + I) D^-1/2 as weights of edges, as PyG has it."""
    assert edges.edge_weight is not None
    return EdgeList(*gcn_norm(edges.edge_index, edges.edge_weight, num_nodes, dtype=edges.edge_weight.dtype))
