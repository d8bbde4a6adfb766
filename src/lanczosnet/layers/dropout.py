"""Noise on node features while training."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lanczosnet.batching.host_features import HostFeatures
from lanczosnet.batching.sparse_features import SparseFeatures


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


class FeatureDropout(nn.Module):
    """Dropout of whole nodes, then of single features."""

    def __init__(self, node_dropout: float, dropout: float) -> None:
        super().__init__()
        self.nodes = NodeDropout(node_dropout)
        self.features = nn.Dropout(dropout)

    def forward(self, x: Tensor | SparseFeatures | HostFeatures) -> Tensor | SparseFeatures | HostFeatures:
        if isinstance(x, Tensor):
            return self.features(self.nodes(x))
        if not self.training or self.nodes.p == self.features.p == 0.0:
            return x
        if isinstance(x, HostFeatures):
            return x.dropped(self.nodes(torch.ones(len(x), 1, dtype=x.dtype, device=x.device)), self.features.p)
        kept_nodes = self.nodes(x.entries.new_ones(len(x), 1)).squeeze(1)
        return x.scaled(self.features(torch.ones_like(x.entries)) * kept_nodes[x.node])
