"""GAT, graph attention networks (Velickovic et al., ICLR 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv
from torch_geometric.utils import add_self_loops, remove_self_loops

from lanczosnet.affinity import Padding
from lanczosnet.baselines.attention import block_attention
from lanczosnet.baselines.base import BaselineNetwork, CommonOptions, EdgeBatch, aggregation_block
from lanczosnet.baselines.edge_types import EdgeList
from lanczosnet.baselines.padded_operators import ChannelBatch, ChannelInputs, node_blocks
from lanczosnet.batching.formed import FormedOperators
from lanczosnet.batching.padded import PaddedBatch


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionBatch(ChannelBatch):
    """Graphs with how often nodes are neighbours."""

    can_pair = False  # a program of the Triton kernel holds one graph: a pair would be a larger tile, mostly of nothing

    def inputs(self) -> ChannelInputs:
        # Padding attends to itself, so that every softmax has something to choose from.
        itself = torch.diag_embed(1 - self.mask).unsqueeze(1)
        log_count = (self.matrix + itself).log()
        return ChannelInputs(FormedOperators(log_count.transpose(0, 1), self.padding))


class GAT(BaselineNetwork):
    """Every head of every channel (the simple graph, each edge type) attends to a node's neighbours and the node itself
    with weights that sum to one; hidden layers put the results side by side, the last one averages them.

    Args:
        heads: attention heads per channel, one number for all layers or one for each.
        *sizes, **common: as in `BaselineNetwork`; dropout acts on the attention, and on the input of all layers but the
            first.
    """

    blocks_on_cpu = False  # edge by edge is less arithmetic

    def __init__(
        self,
        *sizes: int,
        heads: int | Sequence[int] = 8,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(*sizes, **common)
        num_layers = self.num_layers
        heads = [heads] * num_layers if isinstance(heads, int) else list(heads)
        if len(heads) != num_layers or min(heads) < 1:
            raise ValueError(f"heads must be a positive number for each of the {num_layers} layers, but is {heads}")
        num_channels = 1 + self.num_edge_types
        dropout = self.dropout.p
        self.convolutions = nn.ModuleList()
        size = self.encoder.out_channels
        for place, ((_, width), number) in enumerate(zip(self.widths, heads, strict=True), start=1):
            is_last = place == num_layers
            self.convolutions.append(
                nn.ModuleList(
                    GATConv(size, width, number, concat=not is_last, dropout=dropout, add_self_loops=False)
                    for _ in range(num_channels)
                )
            )
            size = width * number * num_channels

    def prepare(self, data: Any, *, validate: bool = True) -> EdgeBatch:
        inputs = super().prepare(data, validate=validate)
        return inputs.with_channels(lambda edges: _with_self_loops(edges, len(inputs.x)))

    def blocks(self, inputs: EdgeBatch, padding: Padding) -> PaddedBatch:
        counts = torch.stack([aggregation_block(edges, inputs, padding) for edges in inputs.channels], 1)
        return AttentionBatch(**node_blocks(inputs.x, padding, counts.dtype), matrix=counts)

    def propagate(self, x: Tensor, inputs: EdgeBatch | ChannelInputs) -> Tensor:
        for place, convolutions in enumerate(self.convolutions, start=1):
            x = _attended(convolutions, x, inputs.channels)  # type: ignore[arg-type]
            if place < len(self.convolutions):
                x = self.dropout(nn.functional.elu(x))
        return x


def _attended(convolutions: Sequence[GATConv], x: Tensor, channels: list[EdgeList] | FormedOperators) -> Tensor:
    """What the channels' layers make of the states, side by side where they concatenate their heads; else the mean."""
    if isinstance(channels, FormedOperators):
        return block_attention(convolutions, x, channels)
    parts = [layer(x, edges.edge_index) for layer, edges in zip(convolutions, channels, strict=True)]
    return torch.cat(parts, dim=-1) if convolutions[0].concat else torch.stack(parts).mean(0)


def _with_self_loops(edges: EdgeList, num_nodes: int) -> EdgeList:
    """Every node once among its own neighbours, as PyG's layer does it in every call."""
    index, _ = remove_self_loops(edges.edge_index)
    return EdgeList(add_self_loops(index, num_nodes=num_nodes)[0])
