"""MPNN, message passing neural networks (Gilmer et al., ICML 2017)."""

from collections.abc import Callable, Sequence
from typing import Unpack

from torch import Tensor, nn

from lanczosnet.affinity import Padding
from lanczosnet.baselines.base import CommonOptions, EdgeBatch, RecurrentBaseline, message_blocks
from lanczosnet.baselines.edge_types import Aggregation, NodeMessages, PairMessages
from lanczosnet.baselines.gated_messages import GatedMessages
from lanczosnet.baselines.padded_endpoints import padded_endpoints
from lanczosnet.baselines.padded_operators import ChannelBatch, ChannelInputs, node_blocks
from lanczosnet.batching.padded import PaddedBatch


class MPNN(RecurrentBaseline):
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
        self.num_message_layers = 1 + len(message_channels)
        num_channels = 1 + self.num_edge_types
        messages = PairMessages if both_ends else NodeMessages
        self.messages = messages(hidden_channels, num_channels, message_channels, aggregation)
        self.update = nn.GRUCell(num_channels * hidden_channels, hidden_channels)

    def blocks(self, inputs: EdgeBatch, padding: Padding) -> PaddedBatch | None:
        if isinstance(self.messages, NodeMessages):
            channels = message_blocks(inputs, padding, self.messages.aggregation)
            return ChannelBatch(**node_blocks(inputs.x, padding, channels.dtype), matrix=channels)
        if self.num_message_layers > 2:
            return None  # between the first layer and the last there is more to do than for each end
        return padded_endpoints(inputs, padding, self.messages.aggregation)

    def step(self, inputs: EdgeBatch | ChannelInputs) -> Callable[[Tensor], Tensor]:
        return GatedMessages(self.messages, self.update, self.num_layers).along(inputs.channels)
