"""Counting and adding up within segments: the rows of a sparse matrix, the nodes of a graph or component."""

import torch
from torch import Tensor

from lanczosnet.order import wants_one_order

MOST_PIECES = 512  # of a segment


def segment_sum(per_node: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """`[node, ...]` -> `[segment, ...]`.

    Under `torch.use_deterministic_algorithms` a GPU adds the rows of a segment one after the other, which takes long
    where it has thousands; there, segments are added up in pieces, and then these.
    """
    if not wants_one_order(per_node):
        return _sums(per_node, segment, num_segments)
    # As many as cost no more memory than the nodes.
    num_pieces = max(1, min(len(per_node) // max(num_segments, 1), MOST_PIECES))
    return _sums_of_pieces(per_node, segment, num_segments, num_pieces)


def _sums_of_pieces(per_node: Tensor, segment: Tensor, num_segments: int, num_pieces: int) -> Tensor:
    piece = segment * num_pieces + torch.arange(len(segment), device=segment.device) % num_pieces
    return _sums(per_node, piece, num_segments * num_pieces).unflatten(0, (num_segments, num_pieces)).sum(1)


def _sums(per_node: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    return per_node.new_zeros(num_segments, *per_node.shape[1:]).index_add(0, segment, per_node)


def row_pointers(count: Tensor) -> Tensor:
    """CSR pointers from the number of entries per row."""
    return torch.cat([count.new_zeros(1), count.cumsum(0)])


def places_within(segment: Tensor, num_segments: int) -> tuple[Tensor, Tensor]:
    """Each node's place within its segment, in node order, and the segments' sizes."""
    size = torch.bincount(segment, minlength=num_segments)
    order = torch.argsort(segment, stable=True)
    first = (row_pointers(size)[:-1]).repeat_interleave(size)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=segment.device) - first
    return place, size
