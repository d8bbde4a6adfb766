"""Many small graphs as padded blocks of one shape, worked out once: a batch is then the same rows of a few tensors.

The shapes of a batch depend on its size alone, and nothing in it asks the device for a number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import torch
from torch import Tensor
from torch_geometric.data import Batch

from lanczosnet.affinity import BlockLayout
from lanczosnet.graphs import PackedGraphs
from lanczosnet.models.entrance import DENSE_UP_TO

# The operators of a data set may take this many bytes: QM8's take less than one GiB, whatever the network.
MOST_BYTES = 2**31


@dataclass(frozen=True)
class Blocks:
    """What a network needs of graphs besides its parameters; the first axis of every tensor is the graph."""

    x: Tensor  # node types [graph, node] or features [graph, node, feature], zero on padding
    mask: Tensor  # [graph, node], one on nodes and zero on padding

    def __len__(self) -> int:
        return len(self.mask)

    @property
    def nodes(self) -> Tensor:
        """x as a network's encoder takes it, `[graph x node, ...]`."""
        return self.x.flatten(0, 1)

    def gather(self, graphs: Tensor) -> Self:
        """The blocks of the graphs of these numbers."""
        return replace(self, **{key: value.index_select(0, graphs) for key, value in self.tensors().items()})

    def tensors(self) -> dict[str, Tensor]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {key: value for key, value in values.items() if isinstance(value, Tensor)}

    def entered(self) -> Self:
        """In the form that the layers take, made once per forward pass."""
        return self


@dataclass(frozen=True)
class OperatorBlocks(Blocks):
    """Graphs for layers that multiply with operators which are known beforehand, and with one matrix."""

    operators: Tensor  # [graph, node, term, node]


@dataclass(frozen=True)
class ChannelBlocks(Blocks):
    """Graphs for layers that do something of their own in every channel."""

    channels: Tensor  # [graph, channel, node, node]; once entered, the channel comes first

    def entered(self) -> Self:
        return replace(self, channels=self.channels.transpose(0, 1).contiguous())


@dataclass(frozen=True)
class PartitionBlocks(ChannelBlocks):
    """The same, and the simple graph in two parts."""

    clusters: Tensor  # edges inside clusters, [graph, node, node]; once entered, [1, graph, node, node]
    cut: Tensor  # and those between them

    def entered(self) -> Self:
        return replace(super().entered(), clusters=self.clusters.unsqueeze(0), cut=self.cut.unsqueeze(0))


@dataclass(frozen=True)
class EdgeBlocks(Blocks):
    """Graphs for messages along edges: every channel has as many slots for edges as a graph of the data set needs."""

    ends: Tensor  # whether a slot's edge ends (0) or begins (1) at a node, [graph, slot, 2, node]
    weight: Tensor  # of the slot's message at the edge's end, [graph, slot]; zero where the slot is empty
    capacity: tuple[int, ...]  # slots of each channel

    @property
    def channels(self) -> "EdgeBlocks":
        return self

    def entered(self) -> Self:
        return replace(self, ends=self.ends.to(self.weight.dtype))


def fit_in_blocks(graphs: PackedGraphs, num_operators: int) -> bool:
    """Whether the graphs are small enough, and so few that their dense operators are no burden on the memory."""
    if len(graphs) == 0:
        return False
    width = int(graphs.node_ptr.diff().max())
    return 0 < width <= DENSE_UP_TO and 4 * len(graphs) * max(num_operators, 1) * width**2 <= MOST_BYTES


def all_graphs(graphs: PackedGraphs) -> Batch:
    return graphs.batch(torch.arange(len(graphs)))


def operator_block(linear: Callable[[Tensor], Tensor], layout: BlockLayout, dtype: torch.dtype) -> Tensor:
    """A linear map of signals `[node, channel]` as blocks `[graph, node, node]`: what it makes of every unit vector.

    All graphs at once, so that any of PyG's aggregations serves as the map, as long as it stays inside the graphs.
    """
    places = torch.arange(layout.width, device=layout.place.device)
    return layout.pad(linear((layout.place.unsqueeze(1) == places).to(dtype)))


def identity_block(layout: BlockLayout, dtype: torch.dtype) -> Tensor:
    return torch.diag_embed(layout.mask.to(dtype))


def node_blocks(x: Tensor, layout: BlockLayout, dtype: torch.dtype) -> dict[str, Tensor]:
    """The fields that all blocks have."""
    return {"x": layout.pad(x), "mask": layout.mask.to(dtype)}


def operator_blocks(x: Tensor, layout: BlockLayout, operators: Sequence[Tensor]) -> OperatorBlocks:
    """From one `[graph, node, node]` for every term."""
    return OperatorBlocks(**node_blocks(x, layout, operators[0].dtype), operators=torch.stack(list(operators), 2))
