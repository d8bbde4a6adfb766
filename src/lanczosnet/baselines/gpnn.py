"""GPNN, graph partition neural networks (Liao et al., 2018)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Unpack

from torch import Tensor, nn
from torch_geometric.nn import MLP

from lanczosnet.affinity import Padding, SparseOperator, adjacency
from lanczosnet.baselines.base import CommonOptions, EdgeBatch, RecurrentBaseline, aggregation_block, message_blocks
from lanczosnet.baselines.edge_types import Aggregation, EdgeList, NodeMessages
from lanczosnet.baselines.gated_messages import GatedMessages
from lanczosnet.baselines.padded_operators import ChannelInputs, PartitionBatch, node_blocks
from lanczosnet.batching.formed import FormedOperators
from lanczosnet.batching.padded import PaddedBatch
from lanczosnet.layers.tied_linear import TiedPerceptron
from lanczosnet.transforms.partition import spectral_partition


class GPNN(RecurrentBaseline):
    """In every round: propagate inside the clusters of a spectral partition, then across the cut between them, merge
    both with the state, and propagate over the whole graph as `GGNN` does.

    The published code of the comparison starts the step across the cut from the same state as that inside the
    clusters; here, as in the cited work, one follows the other.

    Args:
        num_partitions: clusters per connected component, where the data does not bring those of `AddPartition`.
        cluster_steps: steps inside the clusters per round.
        cut_steps: steps across the cut per round.
        aggregation: "sum" or "mean" over neighbours.
        message_channels: hidden sizes of the message functions; none for matrices.
        merge_channels: hidden sizes of the function that merges the three states.
        seed: of the partition.
        *sizes, **common: as in `BaselineNetwork`.
    """

    def __init__(
        self,
        *sizes: int,
        num_partitions: int = 3,
        cluster_steps: int = 1,
        cut_steps: int = 1,
        aggregation: Aggregation = "mean",
        message_channels: Sequence[int] = (),
        merge_channels: Sequence[int] = (512,),
        seed: int = 0,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(*sizes, **common)
        for name, value in (
            ("num_partitions", num_partitions),
            ("cluster_steps", cluster_steps),
            ("cut_steps", cut_steps),
        ):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, but is {value}")
        self.num_partitions = num_partitions
        self.cluster_steps = cluster_steps
        self.cut_steps = cut_steps
        self.seed = seed
        num_channels = 1 + self.num_edge_types
        self.part_messages = NodeMessages(self.hidden_channels, 1, message_channels, aggregation)
        self.part_update = nn.GRUCell(self.hidden_channels, self.hidden_channels)
        self.merge = MLP([3 * self.hidden_channels, *merge_channels, self.hidden_channels], norm=None)
        self.messages = NodeMessages(self.hidden_channels, num_channels, message_channels, aggregation)
        self.update = nn.GRUCell(num_channels * self.hidden_channels, self.hidden_channels)

    def prepare(self, data: Any, *, validate: bool = True) -> EdgeBatch:
        inputs = super().prepare(data, validate=validate)
        partition = getattr(data, "partition", None)
        if partition is None:
            A = adjacency(*inputs.channels[0], num_nodes=len(inputs.x), validate=validate)
            assert isinstance(A, SparseOperator)
            partition = spectral_partition(A, self.num_partitions, seed=self.seed)
        elif partition.shape != (len(inputs.x),):
            raise ValueError(
                f"the data carries a partition of shape {tuple(partition.shape)}, but has {len(inputs.x)} nodes: "
                "apply AddPartition again after changing a graph"
            )
        source, target = inputs.channels[0].edge_index
        inside = partition[source] == partition[target]
        index = inputs.channels[0].edge_index
        return replace(inputs, clusters=EdgeList(index[:, inside]), cut=EdgeList(index[:, ~inside]))

    @property
    def num_operators(self) -> int:
        return 3 + self.num_edge_types

    def blocks(self, inputs: EdgeBatch, padding: Padding) -> PaddedBatch:
        assert inputs.clusters is not None
        assert inputs.cut is not None
        channels = message_blocks(inputs, padding, self.messages.aggregation)
        return PartitionBatch(
            **node_blocks(inputs.x, padding, channels.dtype),
            matrix=channels,
            clusters=aggregation_block(inputs.clusters, inputs, padding, self.messages.aggregation),
            cut=aggregation_block(inputs.cut, inputs, padding, self.messages.aggregation),
        )

    def step(self, inputs: EdgeBatch | ChannelInputs) -> Callable[[Tensor], Tensor]:
        assert inputs.clusters is not None
        assert inputs.cut is not None
        of_parts = self.num_layers * (self.cluster_steps + self.cut_steps)
        parts = GatedMessages(self.part_messages, self.part_update, of_parts)
        whole = GatedMessages(self.messages, self.update, self.num_layers)
        inside, across = (parts.along(_as_channels(part)) for part in (inputs.clusters, inputs.cut))
        everywhere, merge = whole.along(inputs.channels), TiedPerceptron(self.merge.lins)

        def step(state: Tensor) -> Tensor:
            clustered = repeated(inside, state, self.cluster_steps)
            crossed = repeated(across, clustered, self.cut_steps)
            return everywhere(merge(state, clustered, crossed))

        return step


def repeated(step: Callable[[Tensor], Tensor], state: Tensor, times: int) -> Tensor:
    for _ in range(times):
        state = step(state)
    return state


def _as_channels(part: EdgeList | FormedOperators) -> list[EdgeList] | FormedOperators:
    """One part of the graph as the only channel."""
    return [part] if isinstance(part, EdgeList) else part
