"""Small graphs or components as padded blocks: where nodes stand, and the blocks of a sparse operator."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lanczosnet.affinity.components import row_entries
from lanczosnet.affinity.operator import DenseOperator
from lanczosnet.affinity.sparse_operator import SparseOperator
from lanczosnet.backends.segments import index_within_segment


class SignalLayout(Protocol):
    """How signals stand in blocks."""

    def pad(self, signal: Tensor) -> Tensor: ...

    def unpad(self, blocks: Tensor) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Padding:
    """Where the rows of a signal are in blocks of `width` places; all other places are padding.

    Args:
        num_blocks: graphs or components.
        width: places of a block.
        rows: the place of every row among all blocks' places, `[row]`; None where there is a row for every place.
        node: which nodes have a row, `[row]`; None where all have one.
        num_nodes: nodes, with and without a row.
        size: nodes of every block, `[block]`.
    """

    num_blocks: int
    width: int
    rows: Tensor | None = None
    node: Tensor | None = None
    num_nodes: int = 0
    size: Tensor | None = None

    def pad(self, signal: Tensor) -> Tensor:
        """`[node, ...]` -> `[block, place, ...]`, zero on padding."""
        signal = signal if self.node is None else signal.index_select(0, self.node)
        if self.rows is not None:
            places = signal.new_zeros(self.num_blocks * self.width, *signal.shape[1:])
            signal = places.index_copy(0, self.rows, signal)
        return signal.unflatten(0, (self.num_blocks, self.width))

    def unpad(self, blocks: Tensor) -> Tensor:
        """`[block, place, ...]` -> `[node, ...]`, zero on nodes without a row."""
        signal = blocks.flatten(0, 1)
        signal = signal if self.rows is None else signal.index_select(0, self.rows)
        if self.node is None:
            return signal
        return signal.new_zeros(self.num_nodes, *signal.shape[1:]).index_copy(0, self.node, signal)

    @property
    def place(self) -> Tensor:
        """Of every row in its block, `[row]`."""
        assert self.rows is not None
        return self.rows % max(self.width, 1)

    def node_at(self, place: Tensor) -> Tensor:
        """The nodes at some places that are no padding, where not all nodes have a row."""
        assert self.rows is not None
        assert self.node is not None
        nodes = torch.zeros(self.num_blocks * self.width, dtype=self.node.dtype, device=self.node.device)
        return nodes.index_copy_(0, self.rows, self.node).index_select(0, place)

    @property
    def mask(self) -> Tensor:
        """Which places are not padding, `[block, place]`."""
        assert self.size is not None
        return torch.arange(self.width, device=self.size.device) < self.size.unsqueeze(1)


def padding_of(segment: Tensor, num_segments: int, keep: Tensor | None = None) -> Padding:
    """One block per segment, in order; only those that `keep` `[segment]` marks, where given."""
    node, block = None, segment
    if keep is not None:
        node = keep.index_select(0, segment).nonzero().squeeze(1)
        number = keep.cumsum(0)
        num_segments = int(number[-1]) if len(number) else 0
        block = number.index_select(0, segment.index_select(0, node)) - 1
    place, size = index_within_segment(block, num_segments)
    width = int(size.max()) if len(size) else 0
    return Padding(len(size), width, block * width + place, node, len(segment), size)


class BlockEntries(NamedTuple):
    """Which stored entries of a sparse operator lie in blocks, and where; the same for all values."""

    entry: Tensor | None  # [M]; None for all entries
    block: Tensor  # [M]
    row: Tensor  # [M]
    column: Tensor  # [M]


def block_entries(operator: SparseOperator, padding: Padding) -> BlockEntries:
    assert padding.rows is not None
    if padding.node is None:
        entry, place = None, padding.rows
        row, column = place[operator.row.long()], place[operator.column.long()]
    else:  # only the rows that are in blocks are read
        row, entry = row_entries(operator, padding.node, padding.rows)
        place = torch.full((padding.num_nodes,), -1, device=operator.device).index_copy_(0, padding.node, padding.rows)
        column = place.index_select(0, operator.column.index_select(0, entry))
        is_inside = (column >= 0).nonzero().squeeze(1)
        row, column, entry = (each.index_select(0, is_inside) for each in (row, column, entry.long()))
    width = max(padding.width, 1)
    return BlockEntries(entry, row // width, row % width, column % width)


def dense_blocks(operator: SparseOperator, padding: Padding, entries: BlockEntries | None = None) -> DenseOperator:
    """The operator's diagonal blocks as a padded dense batch; gradients reach the entries.

    `entries`, if known, saves the search for the operator's entries in the blocks.
    """
    entry, block, row, column = block_entries(operator, padding) if entries is None else entries
    if entry is None:
        values = operator.values
    elif operator.has_values:
        values = operator.values.index_select(0, entry)
    else:
        values = operator.values_at(padding.node_at(block * padding.width + row), entry)
    matrix = values.new_zeros(padding.num_blocks, padding.width, padding.width)
    # Added, not put: a stored zero between two blocks must not replace an entry of the first.
    matrix = matrix.index_put((block, row, column), values, accumulate=True)
    return DenseOperator(matrix, mask=padding.mask, symmetric=operator.symmetric)
