"""Noise on node features while training."""

import torch.nn.functional as F
from torch import Tensor, nn


class NodeDropout(nn.Module):
    """Drops all features of a node at once, and scales those of the others: what is left is a random propagation."""

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"node_dropout must be at least 0 and below 1, but is {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return x
        return x * F.dropout(x.new_ones(*x.shape[:-1], 1), self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def feature_noise(node_dropout: float, dropout: float) -> nn.Module:
    """Whole nodes, then single features."""
    return nn.Sequential(NodeDropout(node_dropout), nn.Dropout(dropout)) if node_dropout else nn.Dropout(dropout)
