"""MPNN, message passing neural networks (Gilmer et al., ICML 2017)."""

from collections.abc import Sequence
from typing import Unpack

from torch import Tensor, nn

from lanczosnet.layers.edge_types import Aggregation, PairMessages
from lanczosnet.models.common import CommonOptions, EdgeInputs, RecurrentNetwork


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
        **common: as in `CommonOptions`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        aggregation: Aggregation = "mean",
        message_channels: Sequence[int] = (),
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, num_layers, **common)
        num_channels = 1 + self.num_edge_types
        self.messages = PairMessages(hidden_channels, num_channels, message_channels, aggregation)
        self.update = nn.GRUCell(num_channels * hidden_channels, hidden_channels)

    def step(self, state: Tensor, inputs: EdgeInputs) -> Tensor:
        return self.update(self.messages(state, inputs.channels), state)
