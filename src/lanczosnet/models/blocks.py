"""Many small graphs as padded blocks of one shape, worked out once: a batch is then the same rows of a few tensors.

The shapes of a batch depend on its size alone, and nothing in it asks the device for a number.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

import torch
from torch import Tensor
from torch_geometric.data import Batch

from lanczosnet.affinity import BlockLayout, block_layout
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
        return type(self)(**{key: value.index_select(0, graphs) for key, value in self.tensors().items()})

    def tensors(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def fit_in_blocks(graphs: PackedGraphs, num_operators: int) -> bool:
    """Whether the graphs are small enough, and so few that their dense operators are no burden on the memory."""
    if len(graphs) == 0:
        return False
    width = int(graphs.node_ptr.diff().max())
    return 0 < width <= DENSE_UP_TO and 4 * len(graphs) * max(num_operators, 1) * width**2 <= MOST_BYTES


def all_graphs(graphs: PackedGraphs) -> Batch:
    return graphs.batch(torch.arange(len(graphs)))


def layout_of(batch: Any) -> BlockLayout:
    """A block for every graph."""
    return block_layout(batch.batch, batch.num_graphs)


def operator_block(linear: Callable[[Tensor], Tensor], layout: BlockLayout, dtype: torch.dtype) -> Tensor:
    """A linear map of signals `[node, channel]` as blocks `[graph, node, node]`: what it makes of every unit vector.

    All graphs at once, so that any of PyG's aggregations serves as the map, as long as it stays inside the graphs.
    """
    places = torch.arange(layout.width, device=layout.place.device)
    return layout.pad(linear((layout.place.unsqueeze(1) == places).to(dtype)))
