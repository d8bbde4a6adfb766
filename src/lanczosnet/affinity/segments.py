"""Counting within segments: the rows of a sparse matrix, the nodes of a graph or component."""

import torch
from torch import Tensor


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
