"""Diffusion over learned continuous times, in place of powers that somebody has to guess."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lanczosnet.filters.scales import Scales


class HeatFilter(nn.Module):
    """r -> exp(-t (1 - r)) for a learned time t > 0 of every scale: the heat kernel of I - S.

    It is smooth in t, positive, and next to zero where the Ritz value is, as soon as t is more than a few steps. Choose
    first times over a geometric range, such as 4, 8, 16, 32, 64.

    Args:
        scales: the first times.
    """

    def __init__(self, scales: Sequence[float]) -> None:
        super().__init__()
        self.scales = Scales(scales)
        if any(time == 0 for time in self.scales):
            raise ValueError(f"times of diffusion must be positive, but are {list(self.scales)}")
        self.log_times = nn.Parameter(torch.empty(len(self.scales)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.log_times.copy_(torch.tensor(list(self.scales), dtype=torch.float64).log())

    @property
    def times(self) -> Tensor:
        return self.log_times.exp()

    def features(self, values: Tensor) -> Tensor:
        """What `stacked` takes of Ritz values: themselves, `[...]` -> `[..., 1]`."""
        return values.unsqueeze(-1)

    def forward(self, values: Tensor) -> Tensor:
        """`[...]` Ritz values -> `[..., scale]`."""
        return torch.exp(self.times * (values.unsqueeze(-1) - 1.0))

    def with_slope(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """f(r) and f'(r), `[..., scale]`; the slope without a gradient."""
        response = self(values)
        return response, (self.times * response).detach()


def heat_responses(filters: Sequence[HeatFilter], features: Tensor) -> Tensor:
    """The responses of all layers' filters, `[..., 1]` -> `[..., filter, scale]`."""
    times = torch.stack([chosen.log_times for chosen in filters]).exp()
    return torch.exp(times * (features.unsqueeze(-2) - 1.0))


def heat_responses_and_slopes(filters: Sequence[HeatFilter], values: Tensor) -> tuple[Tensor, Tensor]:
    """The same from Ritz values `[...]`, and their derivatives without a gradient."""
    response = heat_responses(filters, values.unsqueeze(-1))
    times = torch.stack([chosen.times for chosen in filters])
    return response, (times * response).detach()
