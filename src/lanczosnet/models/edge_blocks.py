"""Many small graphs for messages along edges: a batch packs the edges of its graphs into rows of a few capacities."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Annotated, Self

import torch
from torch import Tensor

from lanczosnet.affinity import BlockLayout
from lanczosnet.affinity.operator import places_within
from lanczosnet.layers.edge_types import Aggregation
from lanczosnet.layers.packed import PackedEdges, Slots
from lanczosnet.models.blocks import Blocks, ChannelInputs, node_blocks
from lanczosnet.models.common import EdgeInputs, state_type

# Of the number of edges in a batch, beyond the mean: of QM8's batches of 64 molecules, 1 in 1,000 has more.
DEVIATIONS = 4
ALIGNED_TO = 8  # rows of a channel
# What a product of its own for a channel costs, in rows of padding: its kernels, once forwards and twice backwards.
ROWS_PER_PRODUCT = 512


@dataclass(frozen=True, eq=False)
class EdgeCounts:
    """How many edges the graphs of a data set have, and how many a batch of them may therefore have."""

    counts: Tensor  # on the host, [graph, channel]

    def is_usual(self, graphs: Tensor) -> bool:
        """Whether a batch of these graphs has no more edges than usual, in any channel."""
        return bool((self.counts[graphs].sum(0) <= self.usual(len(graphs))).all())

    def usual(self, num_graphs: int) -> Tensor:
        """What nearly all batches of so many graphs have at most, `[channel]`."""
        spread, mean = self._spread_and_mean
        return (num_graphs * mean + DEVIATIONS * math.sqrt(num_graphs) * spread).minimum(self.most(num_graphs))

    def most(self, num_graphs: int) -> Tensor:
        """What any batch of so many graphs has at most, `[channel]`."""
        return num_graphs * self._largest

    @cached_property
    def _spread_and_mean(self) -> tuple[Tensor, Tensor]:
        return torch.std_mean(self.counts.double(), 0, correction=0)

    @cached_property
    def _largest(self) -> Tensor:
        return self.counts.amax(0)


def capacity_for(counts: Tensor) -> tuple[int, ...]:
    """Rows of every channel for at most so many edges, `[channel]`: more than that, so that the last row is free."""
    return alike([ALIGNED_TO * (int(count) // ALIGNED_TO + 1) for count in counts.tolist()])


def alike(sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes grown to those of neighbours where that costs less than another product: equal ones share it."""
    best: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    for end in range(1, len(sizes) + 1):
        runs = [(best[begin], (max(sizes[begin:end]),) * (end - begin)) for begin in range(end)]
        best.append(min((cost + sum(run) + ROWS_PER_PRODUCT, before + run) for (cost, before), run in runs))
    return best[-1][1]


@dataclass(frozen=True, kw_only=True, eq=False)
class EdgeBlocks(Blocks):
    """Graphs for messages along edges. A graph has its edges in slots from number 1 on, channel after channel.

    Slot 0 is empty in every graph, so that padding with zeros adds nothing.
    """

    counts: Annotated[Tensor, "graph channel"]  # of edges, and one more: none
    channel: Annotated[Tensor, "graph slot"]  # the last one where a slot is empty
    ends: Annotated[Tensor, "graph slot end"]  # the nodes where an edge ends (0) and begins (1)
    arrival: Annotated[Tensor, "graph slot"]  # node x C + channel
    weight: Annotated[Tensor, "graph slot"]
    arriving: Annotated[Tensor, "graph node slot"]  # the slots that arrive at a node, as many for each channel
    touching: Annotated[Tensor, "graph node slot"]  # 2 x slot + end of those that are this node
    all_counts: EdgeCounts  # of the whole data set
    is_usual: bool = False  # whether the batch has no more edges than usual

    def shape_of(self, graphs: Tensor) -> int | None:
        return DEVIATIONS if self.all_counts.is_usual(graphs) else None

    def gather_as(self, graphs: Tensor, shape: int) -> Self:
        return replace(self.gather(graphs, same_shape=True), is_usual=True)

    def entered(self) -> ChannelInputs:
        most = self.all_counts.usual if self.is_usual else self.all_counts.most
        return ChannelInputs(self._packed(capacity_for(most(len(self)))))

    def _packed(self, capacity: tuple[int, ...]) -> PackedEdges:
        num_graphs, num_slots = self.channel.shape
        row = self._row_of_slot(capacity)
        last = sum(capacity) - 1
        # Which slot is in a row; padding, and the last row, have an empty one.
        slot = row.new_zeros(last + 1).scatter(0, row.flatten(), _numbers(num_graphs * num_slots, row))
        first_node = _numbers(num_graphs, row).view(-1, 1) * self.mask.shape[1]
        weight = self.weight.flatten().index_select(0, slot)
        arriving = row.gather(1, self.arriving.flatten(1)).view(self.mask.numel() * len(capacity), -1)
        touching = 2 * row.gather(1, self.touching.flatten(1) // 2) + self.touching.flatten(1) % 2
        return PackedEdges(
            ends=(self.ends + first_node.unsqueeze(2)).flatten(0, 1).index_select(0, slot),
            touching=Slots(touching.view(self.mask.numel(), -1), 2 * last),
            arrival=(self.arrival + first_node * len(capacity)).flatten().index_select(0, slot),
            arriving=Slots(arriving, last, weight.index_select(0, arriving.flatten()).view_as(arriving)),
            weight=weight,
            capacity=capacity,
            padding=self.padding,
        )

    def _row_of_slot(self, capacity: tuple[int, ...]) -> Tensor:
        """`[graph, slot]`; the last row, which no edge needs, for all that are empty."""
        num_rows, num_slots = sum(capacity), self.channel.shape[1]
        # A row comes after the edges of earlier graphs in its channel, a slot after those of earlier channels in its
        # graph. Both sums also count the graph's own edges in the channel, which the difference leaves out.
        shift = self.counts.cumsum(0) - self.counts.cumsum(1)
        begins = [*accumulate(capacity, initial=-1)]
        begins[-1] += num_slots  # past all rows
        for column, begin in zip(shift.unbind(1), begins, strict=True):
            column.add_(begin)
        return (shift.gather(1, self.channel) + _numbers(num_slots, shift)).clamp(max=num_rows - 1)


def edge_blocks(inputs: EdgeInputs, layout: BlockLayout, aggregation: Aggregation) -> EdgeBlocks:
    num_channels, num_nodes = len(inputs.channels), len(inputs.x)
    sizes = torch.tensor([edges.edge_index.shape[1] for edges in inputs.channels], device=inputs.batch.device)
    channel = _numbers(num_channels, sizes).repeat_interleave(sizes)
    source, target = torch.cat([edges.edge_index for edges in inputs.channels], 1)
    graph = inputs.batch[target]
    slot, per_graph = places_within(graph, inputs.num_graphs)
    slot = slot + 1
    arrival = target * num_channels + channel
    arriving = in_slots(slot, arrival, num_nodes * num_channels)
    touching = in_slots(torch.cat([2 * slot, 2 * slot + 1]), torch.cat([target, source]), num_nodes)
    degree = arrival.bincount(minlength=num_nodes * num_channels)[arrival].to(state_type(inputs))
    counts = (graph * (num_channels + 1) + channel).bincount(minlength=inputs.num_graphs * (num_channels + 1))
    counts = counts.view(inputs.num_graphs, -1)

    def by_graph(values: Tensor, empty: int = 0) -> Tensor:
        found = values.new_full((inputs.num_graphs, 1 + int(per_graph.max()), *values.shape[1:]), empty)
        found[graph, slot] = values
        return found

    places = layout.place[torch.stack([target, source], 1)]
    return EdgeBlocks(
        **node_blocks(inputs.x, layout, degree.dtype),
        counts=counts,
        channel=by_graph(channel, num_channels),
        ends=by_graph(places),
        arrival=by_graph(places[:, 0] * num_channels + channel),
        weight=by_graph(1 / degree if aggregation == "mean" else torch.ones_like(degree)),
        arriving=layout.pad(arriving.view(num_nodes, -1)),
        touching=layout.pad(touching),
        all_counts=EdgeCounts(counts[:, :-1].cpu()),
    )


def in_slots(values: Tensor, owner: Tensor, num_owners: int) -> Tensor:
    """What belongs to every owner, and zeros, `[owner, slot]`."""
    place, size = places_within(owner, num_owners)
    slots = values.new_zeros(num_owners, max(int(size.max()), 1))
    slots[owner, place] = values
    return slots


def _numbers(count: int, like: Tensor) -> Tensor:
    return torch.arange(count, device=like.device)
