"""GGNN, gated graph neural networks (Li et al., ICLR 2016)."""

from collections.abc import Callable, Sequence
from typing import Unpack

from torch import Tensor, nn

from lanczosnet.affinity import Padding
from lanczosnet.baselines.base import CommonOptions, EdgeBatch, RecurrentBaseline, message_blocks
from lanczosnet.baselines.edge_types import Aggregation, NodeMessages
from lanczosnet.baselines.gated_messages import GatedMessages
from lanczosnet.baselines.padded_operators import ChannelBatch, ChannelInputs, node_blocks
from lanczosnet.batching.padded import PaddedBatch


class GGNN(RecurrentBaseline):
    """h' = GRU([sum or mean over neighbours j in channel c of f_c(h_j)]_c, h), the same functions in every step.

    PyG's GatedGraphConv has other weights in every step and one edge type; with one step at a time and one type it is
    the same layer.

    Args:
        aggregation: "sum" or "mean" over neighbours.
        message_channels: hidden sizes of the message functions; none for the matrices of the cited work.
        *sizes, **common: as in `BaselineNetwork`.
    """

    blocks_on_cpu = False  # edge by edge is less arithmetic

    def __init__(
        self,
        *sizes: int,
        aggregation: Aggregation = "sum",
        message_channels: Sequence[int] = (),
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(*sizes, **common)
        num_channels = 1 + self.num_edge_types
        self.messages = NodeMessages(self.hidden_channels, num_channels, message_channels, aggregation)
        self.update = nn.GRUCell(num_channels * self.hidden_channels, self.hidden_channels)

    def blocks(self, inputs: EdgeBatch, padding: Padding) -> PaddedBatch:
        channels = message_blocks(inputs, padding, self.messages.aggregation)
        return ChannelBatch(**node_blocks(inputs.x, padding, channels.dtype), matrix=channels)

    def step(self, inputs: EdgeBatch | ChannelInputs) -> Callable[[Tensor], Tensor]:
        return GatedMessages(self.messages, self.update, self.num_layers).along(inputs.channels)
