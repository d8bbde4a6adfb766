"""From what a graph says of its nodes to their first states."""

from typing import Literal

import torch
from torch import Tensor, nn

from lanczosnet.backends.linear import embedding

NodeInput = Literal["features", "one-hot", "learned"]


class NodeEncoder(nn.Module):
    """Real features as they are, or discrete node types as fixed one-hot vectors or as learned embeddings.

    Args:
        in_channels: number of features, or of node types.
        node_input: "features", "one-hot" or "learned".
        embedding_channels: size of a learned embedding.

    Shapes:
        features `[node, in_channels]` or types `[node]` -> `[node, out_channels]`.
    """

    def __init__(self, in_channels: int, node_input: NodeInput = "features", embedding_channels: int = 64) -> None:
        super().__init__()
        if node_input not in ("features", "one-hot", "learned"):
            raise ValueError(f"node_input must be 'features', 'one-hot' or 'learned', not {node_input!r}")
        self.in_channels = in_channels
        self.node_input = node_input
        self.out_channels = embedding_channels if node_input == "learned" else in_channels
        self.embedding = nn.Embedding(in_channels, embedding_channels) if node_input == "learned" else None

    def reset_parameters(self) -> None:
        if self.embedding is not None:
            self.embedding.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        if self.node_input == "features":
            return self._checked_features(x)
        types = self._checked_types(x)
        if self.embedding is not None:
            return embedding(self.embedding.weight, types)
        return nn.functional.one_hot(types, self.in_channels).to(torch.get_default_dtype())

    def check_types(self, x: Tensor) -> None:
        """Whether all node types are known; for when a graph is prepared, since on a GPU the host must wait for it."""
        if self.node_input == "features" or x.numel() == 0:
            return
        smallest, largest = (int(bound) for bound in torch.aminmax(self._checked_types(x)))
        if smallest < 0 or largest >= self.in_channels:
            raise ValueError(
                f"this model knows the node types 0 to {self.in_channels - 1}, but x has {smallest} to {largest}"
            )

    def _checked_features(self, x: Tensor) -> Tensor:
        if x.dim() != 2 or x.shape[1] != self.in_channels or not x.is_floating_point():
            raise ValueError(
                f"this model takes real node features [node, {self.in_channels}], but x is {x.dtype} {tuple(x.shape)}"
            )
        return x

    def _checked_types(self, x: Tensor) -> Tensor:
        types = x.squeeze(-1) if x.dim() == 2 and x.shape[1] == 1 else x
        if types.dim() != 1 or types.is_floating_point():
            raise ValueError(f"this model takes node types, integers [node], but x is {x.dtype} {tuple(x.shape)}")
        return types
