"""Spectral filters: functions of a Ritz value, one per long scale.

Each maps `[...]` Ritz values to `[..., scale]` responses and acts on every value alone, so that it serves LanczosNet
(on Ritz values, Eqs. 4 to 8) and, through `matrix_function`, AdaLanczosNet (on T or S itself) alike.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from lanczosnet.filters.scales import Scales
from lanczosnet.krylov import Powers

# How far from one a Ritz value may round and still count as one in the limit of infinitely many steps.
AT_ONE = {torch.float32: 1e-5, torch.float64: 1e-10}


def powers(values: Tensor, scales: Iterable[float]) -> Tensor:
    """(r^s for s in scales), `[...]` -> `[..., scale]`; r^inf is one where |r| = 1 and zero below."""
    return torch.stack([_power(values, scale) for scale in scales], -1)


def _power(values: Tensor, scale: float) -> Tensor:
    if scale == math.inf:
        tolerance = AT_ONE.get(values.dtype, 1e-2)
        return (values.abs() >= 1.0 - tolerance).to(values.dtype)
    return values ** int(scale)


class PowerFilter(nn.Module):
    """r -> r^s, nothing to learn (Eq. 4)."""

    def __init__(self, scales: Sequence[float]) -> None:
        super().__init__()
        self.scales = Scales(scales, allow_infinity=True)

    def reset_parameters(self) -> None:
        pass

    def forward(self, values: Tensor) -> Tensor:
        return powers(values, self.scales)

    def divided_differences(self, values: Tensor) -> Tensor:
        """Exact, for `matrix_function`; the equilibrium has slope zero."""
        finite = Powers(self.scales.finite).divided_differences(values)
        if len(self.scales.finite) == len(self.scales):
            return finite
        table = dict(zip(self.scales.finite, finite.unbind(-3), strict=True))
        zero = torch.zeros_like(values.unsqueeze(-1) * values.unsqueeze(-2))
        return torch.stack([table.get(scale, zero) for scale in self.scales], -3)  # type: ignore[call-overload]


class LearnedFilter(nn.Module, ABC):
    """An MLP on the powers of a Ritz value, and what a filter makes of it.

    Args:
        scales: the long scales.
        hidden_channels: sizes of its hidden layers.
        positive: pass the output through ReLU, so that the filter is positive semi-definite.
    """

    def __init__(
        self, scales: Sequence[float], hidden_channels: Sequence[int] = (128,), *, positive: bool = False
    ) -> None:
        super().__init__()
        self.scales = Scales(scales, allow_infinity=True)
        self.positive = positive
        self.layers = multilayer_perceptron(len(self.scales), hidden_channels, len(self.scales))

    def reset_parameters(self) -> None:
        reset_layers(self.layers)

    def forward(self, values: Tensor) -> Tensor:
        response = self.response(powers(values, self.scales))
        return response.relu() if self.positive else response

    @abstractmethod
    def response(self, power: Tensor) -> Tensor:
        """(r^s1, ..., r^sE) -> one number per scale, `[..., scale]` -> `[..., scale]`."""


class MLPFilter(LearnedFilter):
    """r -> f(r^s1, ..., r^sE), an MLP with biases, exactly as published (Eqs. 5, 6 and 8)."""

    def response(self, power: Tensor) -> Tensor:
        return self.layers(power)


class AnchoredFilter(LearnedFilter):
    """r -> r^s (1 + tanh f(r^s1, ..., r^sE)): learned, and zero where the Ritz value is. The default.

    An MLP with biases is not zero at r = 0, and lets the Ritz directions that carry nothing through as noise; on the
    citation networks the published form then memorises its few labels. It starts near the plain powers.
    """

    def response(self, power: Tensor) -> Tensor:
        return power * (1.0 + torch.tanh(self.layers(power)))


def multilayer_perceptron(in_channels: int, hidden_channels: Sequence[int], out_channels: int) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for size in hidden_channels:
        layers += [nn.Linear(in_channels, size), nn.ReLU()]
        in_channels = size
    return nn.Sequential(*layers, nn.Linear(in_channels, out_channels))


def reset_layers(layers: nn.Sequential) -> None:
    for layer in layers:
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()


LEARNED_FILTERS: dict[str, type[LearnedFilter]] = {"mlp": MLPFilter, "anchored": AnchoredFilter}
SPECTRAL_FILTERS = ("power", *LEARNED_FILTERS)


def spectral_filter(
    name: str, scales: Sequence[float], hidden_channels: Sequence[int] = (128,), *, positive: bool = False
) -> nn.Module:
    """A spectral filter by name."""
    if name == "power":
        return PowerFilter(scales)
    if name not in LEARNED_FILTERS:
        raise ValueError(f"unknown spectral filter {name!r}: choose one of {', '.join(SPECTRAL_FILTERS)}")
    return LEARNED_FILTERS[name](scales, hidden_channels, positive=positive)
