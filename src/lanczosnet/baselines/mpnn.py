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
        aggregation: "sum" or "mean" over neighbours.
        message_channels: hidden sizes of the message functions; none for linear ones.
        both_ends: messages are functions of both ends of an edge; False for the cited work's, functions of the sender.
        *sizes, **common: as in `BaselineNetwork`.
    """

    blocks_on_cpu = False  # edge by edge is less arithmetic

    def __init__(
        self,
        *sizes: int,
        aggregation: Aggregation = "mean",
        message_channels: Sequence[int] = (),
        both_ends: bool = True,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(*sizes, **common)
        self.num_message_layers = 1 + len(message_channels)
        num_channels = 1 + self.num_edge_types
        messages = PairMessages if both_ends else NodeMessages
        self.messages = messages(self.hidden_channels, num_channels, message_channels, aggregation)
        self.update = nn.GRUCell(num_channels * self.hidden_channels, self.hidden_channels)

    def blocks(self, inputs: EdgeBatch, padding: Padding) -> PaddedBatch | None:
        if isinstance(self.messages, NodeMessages):
            channels = message_blocks(inputs, padding, self.messages.aggregation)
            return ChannelBatch(**node_blocks(inputs.x, padding, channels.dtype), matrix=channels)
        if self.num_message_layers > 2:
            return None  # between the first layer and the last there is more to do than for each end
        return padded_endpoints(inputs, padding, self.messages.aggregation)

    def step(self, inputs: EdgeBatch | ChannelInputs) -> Callable[[Tensor], Tensor]:
        return GatedMessages(self.messages, self.update, self.num_layers).along(inputs.channels)
