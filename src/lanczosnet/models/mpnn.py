"""MPNN, message passing neural networks (Gilmer et al., ICML 2017)."""

from collections.abc import Callable, Sequence
from typing import Unpack

import torch
from torch import Tensor, nn
from torch_geometric.utils import degree

from lanczosnet.affinity import BlockLayout
from lanczosnet.affinity.operator import places_within
from lanczosnet.layers.edge_types import Aggregation, Edges, NodeMessages, PairMessages
from lanczosnet.layers.gated import GatedMessages
from lanczosnet.models.blocks import Blocks, ChannelBlocks, ChannelInputs, EdgeBlocks, node_blocks
from lanczosnet.models.common import CommonOptions, EdgeInputs, RecurrentNetwork, message_blocks, state_type


class MPNN(RecurrentNetwork):
    """h_i' = GRU([sum or mean over neighbours j in channel c of f_c(h_i, h_j)]_c, h_i); read out graphs by "set2set".

    The comparison has one function of both ends per edge type, where PyG's NNConv makes a matrix for h_j from features
    of the edge, of which discrete types leave one matrix each.

    Args:
        in_channels: number of node features, or of node types.
        hidden_channels: size of the states.
        out_channels: classes or targets.
        num_layers: propagation steps.
        aggregation: "sum" or "mean" over neighbours.
        message_channels: hidden sizes of the message functions; none for linear ones.
        both_ends: messages are functions of both ends of an edge; False for the cited work's, functions of the sender.
        **common: as in `CommonOptions`.
    """

    blocks_on_cpu = False  # edge by edge is less arithmetic

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        aggregation: Aggregation = "mean",
        message_channels: Sequence[int] = (),
        both_ends: bool = True,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, **common)
        num_channels = 1 + self.num_edge_types
        messages = PairMessages if both_ends else NodeMessages
        self.messages = messages(hidden_channels, num_channels, message_channels, aggregation)
        self.update = nn.GRUCell(num_channels * hidden_channels, hidden_channels)

    def blocks(self, inputs: EdgeInputs, layout: BlockLayout) -> Blocks:
        if isinstance(self.messages, NodeMessages):
            channels = message_blocks(inputs, layout, self.messages.aggregation)
            return ChannelBlocks(**node_blocks(inputs.x, layout, channels.dtype), matrix=channels)
        capacity = alike([most_edges(edges, inputs) for edges in inputs.channels])
        pairs = zip(inputs.channels, capacity, strict=True)
        slots = [slotted(edges, size, inputs, layout, self.messages.aggregation) for edges, size in pairs]
        return EdgeBlocks(
            **node_blocks(inputs.x, layout, slots[0][1].dtype),
            ends=torch.cat([ends for ends, _ in slots], 1),
            weight=torch.cat([weight for _, weight in slots], 1),
            capacity=capacity,
        )

    def step(self, inputs: EdgeInputs | ChannelInputs) -> Callable[[Tensor], Tensor]:
        return GatedMessages(self.messages, self.update).along(inputs.channels)


def most_edges(edges: Edges, inputs: EdgeInputs) -> int:
    """Of any graph."""
    return int(inputs.batch[edges.edge_index[1]].bincount(minlength=1).max())


def alike(sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes grown by up to a third, to that of another channel where there is one: equal ones share products."""
    return tuple(max(other for other in sizes if 3 * other <= 4 * size) for size in sizes)


def slotted(
    edges: Edges, capacity: int, inputs: EdgeInputs, layout: BlockLayout, aggregation: Aggregation
) -> tuple[Tensor, Tensor]:
    """A channel's edges in slots of their graphs: both ends `[graph, slot, 2, node]`, and weights `[graph, slot]`."""
    source, target = edges.edge_index
    graph = inputs.batch[target]
    slot, _ = places_within(graph, inputs.num_graphs)
    ends = torch.zeros(inputs.num_graphs, capacity, 2, layout.width, dtype=torch.bool, device=graph.device)
    ends[graph, slot, 0, layout.place[target]] = True
    ends[graph, slot, 1, layout.place[source]] = True
    weight = torch.zeros(inputs.num_graphs, capacity, dtype=state_type(inputs), device=graph.device)
    arriving = degree(target, len(inputs.x), weight.dtype)[target]
    weight[graph, slot] = 1 / arriving if aggregation == "mean" else torch.ones_like(arriving)
    return ends, weight
