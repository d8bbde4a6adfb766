"""Counting and adding up within segments: the rows of a sparse matrix, the nodes of a graph or component."""

import torch
from torch import Tensor

from lanczosnet.backends.registry import operation


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
    first = (row_pointers(size)[:-1]).repeat_interleave(size)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=segment.device) - first
    return place, size
