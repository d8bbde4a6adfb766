"""Counting and adding up within segments: the rows of a sparse matrix, the nodes of a graph or component."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lanczosnet.backends.registry import operation

LONGEST_PIECE = 2**12  # entries of a row, which one program of a kernel adds up one after the other


@operation
def segment_sum(per_node: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """`[node, ...]` -> `[segment, ...]`."""
    return per_node.new_zeros(num_segments, *per_node.shape[1:]).index_add(0, segment, per_node)


def row_pointers(count: Tensor) -> Tensor:
    """CSR pointers from the number of entries per row."""
    return torch.cat([count.new_zeros(1), count.cumsum(0)])


def index_within_segment(segment: Tensor, num_segments: int) -> tuple[Tensor, Tensor]:
    """Each node's index within its segment, in node order, and the segments' sizes."""
    size = torch.bincount(segment, minlength=num_segments)
    order = torch.argsort(segment, stable=True)
    first = (row_pointers(size)[:-1]).repeat_interleave(size, output_size=len(order))
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=segment.device) - first
    return place, size


@dataclass(frozen=True, eq=False)
class LongRows:
    """Rows of very many entries, cut into pieces."""

    is_long: Tensor  # `[row]`, of all rows
    row: Tensor  # their numbers
    begin: Tensor  # `[piece]`, among all entries
    end: Tensor
    offsets: Tensor  # of every long row among the pieces

    def added_up(self, pieces: Tensor) -> Tensor:
        """`[piece, channel]` -> `[long row, channel]`."""
        return torch.segment_reduce(pieces, "sum", offsets=self.offsets)


def long_rows(row_pointer: Tensor, longest: int | None = None) -> LongRows | None:
    """Those of more entries than `longest`, if there are any. The host waits for the answer."""
    longest = longest or LONGEST_PIECE
    length = row_pointer.diff()
    is_long = length > longest
    row = is_long.nonzero().view(-1)
    if not len(row):
        return None
    count = (length[row].long() + longest - 1) // longest
    offsets = row_pointers(count)
    piece = torch.arange(int(offsets[-1]), device=row.device) - offsets[:-1].repeat_interleave(count)
    begin = row_pointer[row].long().repeat_interleave(count) + longest * piece
    end = torch.minimum(begin + longest, row_pointer[row + 1].long().repeat_interleave(count))
    return LongRows(is_long, row, begin, end, offsets)
