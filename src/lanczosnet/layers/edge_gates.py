"""Learned edge weights from numbers on edges."""

import torch
from torch import Tensor, nn

FARTHEST = 10.0  # deviations from the mean that count


class EdgeGates(nn.Module):
    """tanh MLP(e): some weights between -1 and 1 for every edge, which multiply S.

    The numbers e are standardised by those of the training data (`set_scale`), and cut off where they are far outside.

    Args:
        in_channels: numbers on an edge.
        num_gates: weights.
        hidden_channels: of the MLP.

    Shapes:
        `[edge, in_channels]` -> `[edge, num_gates]`.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, in_channels: int, num_gates: int, hidden_channels: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(in_channels, hidden_channels), nn.GELU(), nn.Linear(hidden_channels, num_gates)
        )
        self.register_buffer("mean", torch.zeros(in_channels))
        self.register_buffer("deviation", torch.ones(in_channels))

    def reset_parameters(self) -> None:
        """The scale stays."""
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()

    def set_scale(self, edge_attr: Tensor) -> None:
        """Standardise by these numbers, `[edge, in_channels]`."""
        deviation, mean = torch.std_mean(edge_attr.double().view(-1, len(self.mean)), 0, correction=0)
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(deviation > 0, deviation, 1.0))

    def forward(self, edge_attr: Tensor) -> Tensor:
        scaled = (edge_attr.to(self.mean.dtype) - self.mean) / self.deviation
        gates: Tensor = self.layers(scaled.clamp(-FARTHEST, FARTHEST)).tanh()
        return gates
