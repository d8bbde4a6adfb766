"""Small graphs or components of a sparse operator as one padded dense batch, and signals in and out of it."""

from typing import NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity.operator import DenseOperator
from lanczosnet.affinity.segments import index_within_segment
from lanczosnet.affinity.sparse_operator import SparseOperator


class BlockLayout(NamedTuple):
    """Where each node goes: node[i] is row place[i] of block block[i]; M nodes in B blocks of at most `width`."""

    node: Tensor  # [M]
    block: Tensor  # [M]
    place: Tensor  # [M]
    size: Tensor  # [B]
    width: int
    num_nodes: int  # of the whole graph, those outside the blocks included

    def pad(self, signal: Tensor) -> Tensor:
        """`[node, channel]` -> `[block, place, channel]`, zero on padding."""
        padded = signal.new_zeros(len(self.size), self.width, *signal.shape[1:])
        return padded.index_put((self.block, self.place), signal[self.node])

    def unpad(self, padded: Tensor) -> Tensor:
        """`[block, place, channel]` -> `[node, channel]`, zero on nodes outside the blocks."""
        signal = padded.new_zeros(self.num_nodes, *padded.shape[2:])
        return signal.index_put((self.node,), padded[self.block, self.place])

    @property
    def mask(self) -> Tensor:
        return torch.arange(self.width, device=self.size.device) < self.size.unsqueeze(1)


def block_layout(segment: Tensor, num_segments: int, keep: Tensor | None = None) -> BlockLayout:
    """One block per segment, in order; only those that `keep` `[segment]` marks, where given."""
    place, size = index_within_segment(segment, num_segments)
    if keep is None:
        node, block = torch.arange(len(segment), device=segment.device), segment
    else:
        node = keep[segment].nonzero().squeeze(1)
        block = (keep.cumsum(0) - 1)[segment[node]]
        size = size[keep]
    width = int(size.max()) if len(size) else 0
    return BlockLayout(node, block, place[node], size, width, len(segment))


class BlockEntries(NamedTuple):
    """Which stored entries of a sparse operator lie in blocks, and where; the same for all values."""

    entry: Tensor | None  # [M]; None for all entries
    block: Tensor  # [M]
    row: Tensor  # [M]
    column: Tensor  # [M]


def block_entries(operator: SparseOperator, layout: BlockLayout) -> BlockEntries:
    block = torch.full((layout.num_nodes,), -1, device=operator.device)
    block[layout.node] = layout.block
    place = torch.zeros_like(block)
    place[layout.node] = layout.place
    row, column = operator.row.long(), operator.column.long()
    entry = None
    if len(layout.node) < layout.num_nodes:
        entry = ((block[row] >= 0) & (block[column] >= 0)).nonzero().squeeze(1)
        row, column = row[entry], column[entry]
    return BlockEntries(entry, block[row], place[row], place[column])


def dense_blocks(operator: SparseOperator, layout: BlockLayout, entries: BlockEntries | None = None) -> DenseOperator:
    """The operator's diagonal blocks as a padded dense batch; gradients reach the entries.

    `entries`, where at hand, saves finding out which of the operator's entries they are.
    """
    entry, block, row, column = block_entries(operator, layout) if entries is None else entries
    values = operator.values if entry is None else operator.values.index_select(0, entry)
    matrix = values.new_zeros(len(layout.size), layout.width, layout.width)
    # Added, not put: a stored zero between two blocks must not replace an entry of the first.
    matrix = matrix.index_put((block, row, column), values, accumulate=True)
    return DenseOperator(matrix, mask=layout.mask, symmetric=operator.symmetric)
