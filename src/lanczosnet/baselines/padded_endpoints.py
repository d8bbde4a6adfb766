"""Many small graphs for messages along edges: a batch packs the ends of its edges into rows of a few capacities.

A node is one row for every channel in which it has a neighbour, and so at most two rows for every edge.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Annotated, Self

import torch
from torch import Tensor

from lanczosnet.affinity import Padding
from lanczosnet.backends.segments import index_within_segment
from lanczosnet.baselines.base import EdgeBatch, state_type
from lanczosnet.baselines.edge_types import Aggregation, side_by_side
from lanczosnet.baselines.endpoint_messages import PackedNodes, Slots
from lanczosnet.baselines.padded_operators import ChannelInputs, node_blocks
from lanczosnet.batching.padded import PaddedBatch

# Of the number of rows in a batch, beyond the mean: of QM8's batches of 64 molecules, 1 in 1,000 has more.
DEVIATIONS = 4
ALIGNED_TO = 8  # rows of a channel
# What a product of its own for a channel costs, in rows of padding: its kernels, once forwards and twice backwards.
ROWS_PER_PRODUCT = 512


@dataclass(frozen=True, eq=False)
class RowCounts:
    """How many rows the graphs of a data set have, and how many a batch of them may therefore have."""

    counts: Tensor  # on the host, [graph, channel]

    def is_usual(self, graphs: Tensor) -> bool:
        """Whether a batch of these graphs has no more rows than usual, in any channel."""
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
    """Rows of every channel where so many are needed at most, `[channel]`: more, so that the last row is free."""
    return merge_capacities([ALIGNED_TO * (int(count) // ALIGNED_TO + 1) for count in counts.tolist()])


def merge_capacities(sizes: Sequence[int]) -> tuple[int, ...]:
    """Sizes grown to those of neighbours where that costs less than another product: equal ones share it."""
    best: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    for end in range(1, len(sizes) + 1):
        runs = [(best[begin], (max(sizes[begin:end]),) * (end - begin)) for begin in range(end)]
        best.append(min((cost + sum(run) + ROWS_PER_PRODUCT, before + run) for (cost, before), run in runs))
    return best[-1][1]


@dataclass(frozen=True, kw_only=True, eq=False)
class EndpointBatch(PaddedBatch):
    """Graphs for messages along edges. A graph has its rows in slots from number 1 on, channel after channel.

    Slot 0 is empty in every graph, so that padding with zeros adds nothing.
    """

    counts: Annotated[Tensor, "graph channel"]  # of rows, and one more: none
    channel: Annotated[Tensor, "graph slot"]  # the last one where a slot is empty
    node: Annotated[Tensor, "graph slot"]
    own: Annotated[Tensor, "graph node channel"]  # a node's slots
    senders: Annotated[Tensor, "graph slot place"]  # the slots from which messages come
    sender_weight: Annotated[Tensor, "graph slot place"]
    receivers: Annotated[Tensor, "graph slot place"]  # the slots to which they go
    receiver_weight: Annotated[Tensor, "graph slot place"]
    all_counts: RowCounts  # of the whole data set
    is_usual: bool = False  # whether the batch has no more rows than usual

    def shape_of(self, graphs: Tensor) -> int | None:
        return DEVIATIONS if self.all_counts.is_usual(graphs) else None

    def gather_as(self, graphs: Tensor, shape: int) -> Self:
        return replace(self.gather(graphs, same_shape=True), is_usual=True)

    def inputs(self) -> ChannelInputs:
        most = self.all_counts.usual if self.is_usual else self.all_counts.most
        return ChannelInputs(self._packed(capacity_for(most(len(self)))))

    def _packed(self, capacity: tuple[int, ...]) -> PackedNodes:
        num_graphs, num_slots = self.channel.shape
        row = self._row_of_slot(capacity)
        last = sum(capacity) - 1
        # Which slot is in a row; padding, and the last row, have an empty one.
        slot = row.new_zeros(last + 1).scatter(0, row.flatten(), _numbers(num_graphs * num_slots, row))
        graph = slot // num_slots

        def by_row(values: Tensor) -> Tensor:
            return values.flatten(0, 1).index_select(0, slot)

        def slots(places: Tensor, weight: Tensor) -> Slots:
            place = by_row(places) + (graph * num_slots).unsqueeze(1)
            return Slots(row.flatten().index_select(0, place.flatten()).view_as(place), last, by_row(weight))

        return PackedNodes(
            node=by_row(self.node) + graph * self.mask.shape[1],
            own=Slots(row.gather(1, self.own.flatten(1)).view(self.mask.numel(), -1), last),
            senders=slots(self.senders, self.sender_weight),
            receivers=slots(self.receivers, self.receiver_weight),
            capacity=capacity,
            padding=self.padding,
        )

    def _row_of_slot(self, capacity: tuple[int, ...]) -> Tensor:
        """`[graph, slot]`; the last row, which no node needs, for all that are empty."""
        num_rows, num_slots = sum(capacity), self.channel.shape[1]
        # A row comes after those of earlier graphs in its channel, a slot after those of earlier channels in its
        # graph. Both sums also count the graph's own in the channel, which the difference leaves out.
        shift = self.counts.cumsum(0) - self.counts.cumsum(1)
        begins = [*accumulate(capacity, initial=-1)]
        begins[-1] += num_slots  # past all rows
        for column, begin in zip(shift.unbind(1), begins, strict=True):
            column.add_(begin)
        return (shift.gather(1, self.channel) + _numbers(num_slots, shift)).clamp(max=num_rows - 1)


def padded_endpoints(inputs: EdgeBatch, padding: Padding, aggregation: Aggregation) -> EndpointBatch:
    num_channels, num_nodes = len(inputs.channels), len(inputs.x)
    num_ends = num_nodes * num_channels
    source, target = side_by_side(inputs.channels).edge_index  # node x C + channel
    has_edges = (source.bincount(minlength=num_ends) + target.bincount(minlength=num_ends)) > 0
    channel, node = has_edges.view(num_nodes, num_channels).T.nonzero().unbind(1)
    end, graph = node * num_channels + channel, inputs.batch[node]
    place, per_graph = index_within_segment(graph, inputs.num_graphs)
    slot = place.new_zeros(num_ends).index_put((end,), place + 1)
    counts = (graph * (num_channels + 1) + channel).bincount(minlength=inputs.num_graphs * (num_channels + 1))
    counts = counts.view(inputs.num_graphs, -1)
    degree = target.bincount(minlength=num_ends)[target].to(state_type(inputs))
    weight = 1 / degree if aggregation == "mean" else torch.ones_like(degree)

    def by_graph(values: Tensor, empty: int = 0) -> Tensor:
        found = values.new_full((inputs.num_graphs, 1 + int(per_graph.max()), *values.shape[1:]), empty)
        found[graph, place + 1] = values
        return found

    def met(values: Tensor, owner: Tensor) -> Tensor:
        return by_graph(in_slots(values, owner, num_ends)[end])

    return EndpointBatch(
        **node_blocks(inputs.x, padding, degree.dtype),
        counts=counts,
        channel=by_graph(channel, num_channels),
        node=by_graph(padding.place[node]),
        own=padding.pad(slot.view(num_nodes, num_channels)),
        senders=met(slot[source], target),
        sender_weight=met(weight, target),
        receivers=met(slot[target], source),
        receiver_weight=met(weight, source),
        all_counts=RowCounts(counts[:, :-1].cpu()),
    )


def in_slots(values: Tensor, owner: Tensor, num_owners: int) -> Tensor:
    """What belongs to every owner, and zeros, `[owner, slot]`."""
    place, size = index_within_segment(owner, num_owners)
    slots = values.new_zeros(num_owners, max(int(size.max()), 1))
    slots[owner, place] = values
    return slots


def _numbers(count: int, like: Tensor) -> Tensor:
    return torch.arange(count, device=like.device)
