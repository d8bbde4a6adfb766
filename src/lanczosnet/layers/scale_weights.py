"""The weights of a multi-scale convolution: a matrix per term, or one that all scales share."""

import torch
from torch import Tensor


def num_matrices(num_scales: int, num_edge_types: int, tied: bool) -> int:
    """How many are learned; edge types always have their own."""
    return (min(1, num_scales) if tied else num_scales) + num_edge_types


def by_term(weight: Tensor, num_scales: int, tied: bool) -> Tensor:
    """What is learned -> `[scale and edge type, in_channels, out_channels]`: tied scales are averaged."""
    if not tied or num_scales == 0:
        return weight
    shared = (weight[:1] / num_scales).expand(num_scales, -1, -1)
    return shared if len(weight) == 1 else torch.cat([shared, weight[1:]])
