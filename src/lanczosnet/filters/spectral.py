"""Spectral filters: functions of a Ritz value, one per long scale.

Each maps `[...]` Ritz values to `[..., scale]` responses and acts on every value alone, so that it serves LanczosNet
(on Ritz values, Eqs. 4 to 8) and, through `matrix_function`, AdaLanczosNet (on T or S itself) alike.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from lanczosnet.filters.heat import HeatFilter, heat_responses, heat_responses_and_slopes
from lanczosnet.filters.scales import Scales
from lanczosnet.krylov import Powers

# How far from one a Ritz value may round and still count as one in the limit of infinitely many steps.
AT_ONE = {torch.float32: 1e-5, torch.float64: 1e-10}


def powers(values: Tensor, scales: Iterable[float]) -> Tensor:
    """(r^s for s in scales), `[...]` -> `[..., scale]`; r^inf is one where |r| = 1 and zero below."""
    return torch.stack([_power(values, scale) for scale in scales], -1)


def powers_and_slopes(values: Tensor, scales: Iterable[float]) -> tuple[Tensor, Tensor]:
    """The same and their derivatives, in few operations and without a gradient; r^inf has slope zero."""
    scales = tuple(scales)
    finite = tuple(0.0 if scale == math.inf else scale for scale in scales)
    lowered = tuple(max(scale - 1.0, 0.0) for scale in finite)
    exponents, one_less = (_constant(numbers, values.dtype, values.device) for numbers in (finite, lowered))
    base = values.detach().unsqueeze(-1)
    found = powers(values.detach(), scales) if math.inf in scales else base**exponents
    return found, exponents * base**one_less


@cache  # a captured step knows only their address
def _constant(numbers: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Copied to the device once: a copy in every step would make the host wait."""
    return torch.tensor(numbers, dtype=dtype, device=device)


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

    def features(self, values: Tensor) -> Tensor:
        """What `responses` takes of Ritz values."""
        return powers(values, self.scales)

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

    has_biases = True  # its MLP

    def __init__(
        self, scales: Sequence[float], hidden_channels: Sequence[int] = (128,), *, positive: bool = False
    ) -> None:
        super().__init__()
        self.scales = Scales(scales, allow_infinity=True)
        self.positive = positive
        self.layers = multilayer_perceptron(len(self.scales), hidden_channels, len(self.scales), bias=self.has_biases)

    def reset_parameters(self) -> None:
        reset_layers(self.layers)

    def features(self, values: Tensor) -> Tensor:
        """What `responses` takes of Ritz values: (r^s1, ..., r^sE)."""
        return powers(values, self.scales)

    def forward(self, values: Tensor) -> Tensor:
        power = self.features(values)
        return self.finished(power, self.layers(power))

    def with_slope(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """f(r) and f'(r), `[..., scale]`; the slope without a gradient."""
        response, slope = responses_and_slopes([self], values)
        return response.squeeze(-2), slope.squeeze(-2)

    def finished(self, power: Tensor, mapped: Tensor) -> Tensor:
        """The response from (r^s1, ..., r^sE) and what the MLP makes of it, `[..., scale]` all."""
        response = self.response(power, mapped)
        return response.relu() if self.positive else response

    def finished_with_slope(
        self, power: Tensor, power_slope: Tensor, mapped: Tensor, mapped_slope: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The same and its derivative by that of the powers and of what the MLP makes of them."""
        response = self.response(power, mapped)
        with torch.no_grad():
            slope = self.slope(power, power_slope, mapped, mapped_slope)
            slope = slope * (response > 0) if self.positive else slope
        return response.relu() if self.positive else response, slope

    @abstractmethod
    def response(self, power: Tensor, mapped: Tensor) -> Tensor:
        """The same, before it is made positive."""

    @abstractmethod
    def slope(self, power: Tensor, power_slope: Tensor, mapped: Tensor, mapped_slope: Tensor) -> Tensor:
        """The derivative of `response`."""


class MLPFilter(LearnedFilter):
    """r -> f(r^s1, ..., r^sE), an MLP with biases, exactly as published (Eqs. 5, 6 and 8)."""

    def response(self, power: Tensor, mapped: Tensor) -> Tensor:
        return mapped

    def slope(self, power: Tensor, power_slope: Tensor, mapped: Tensor, mapped_slope: Tensor) -> Tensor:
        return mapped_slope


class UnbiasedFilter(MLPFilter):
    """The published MLP without its biases: zero where the Ritz value is (unless 0 is among the scales)."""

    has_biases = False


class AnchoredFilter(LearnedFilter):
    """r -> r^s (1 + tanh f(r^s1, ..., r^sE)): learned, and zero where the Ritz value is. The default.

    An MLP with biases is not zero at r = 0, and lets the Ritz directions that carry nothing through as noise; where few
    pairs have converged the published form may memorise few labels. It starts near the plain powers.
    """

    def response(self, power: Tensor, mapped: Tensor) -> Tensor:
        return power * (1.0 + torch.tanh(mapped))

    def slope(self, power: Tensor, power_slope: Tensor, mapped: Tensor, mapped_slope: Tensor) -> Tensor:
        share = torch.tanh(mapped)
        return power_slope * (1.0 + share) + power * (1.0 - share.square()) * mapped_slope


def responses(filters: Sequence[nn.Module], power: Tensor) -> Tensor:
    """What filters of one kind and size, such as those of a network's layers, make of their `features` in one go:
    `[..., scale]` -> `[..., filter, scale]`."""
    if isinstance(filters[0], HeatFilter):
        return heat_responses(filters, power)  # type: ignore[arg-type]
    shared = power.unsqueeze(-2)
    if not isinstance(filters[0], LearnedFilter):
        return shared.expand(*power.shape[:-1], len(filters), power.shape[-1])
    mapped = stacked_perceptrons([chosen.layers for chosen in filters], power.flatten(0, -2))  # type: ignore[misc]
    return filters[0].finished(shared, mapped.movedim(0, -2).unflatten(0, power.shape[:-1]))


def responses_and_slopes(filters: Sequence[Any], values: Tensor) -> tuple[Tensor, Tensor]:
    """The responses of such filters to Ritz values, `[...]` -> `[..., filter, scale]`, and their derivatives."""
    if isinstance(filters[0], HeatFilter):
        return heat_responses_and_slopes(filters, values)
    power, slope = powers_and_slopes(values, filters[0].scales)
    rows = (part.flatten(0, -2) for part in (power, slope))
    mapped = perceptrons_and_slopes([chosen.layers for chosen in filters], *rows)
    by_value = (part.movedim(0, -2).unflatten(0, values.shape) for part in mapped)
    return filters[0].finished_with_slope(power.unsqueeze(-2), slope.unsqueeze(-2), *by_value)


def multilayer_perceptron(
    in_channels: int, hidden_channels: Sequence[int], out_channels: int, *, bias: bool = True
) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for size in hidden_channels:
        layers += [nn.Linear(in_channels, size, bias), nn.ReLU()]
        in_channels = size
    return nn.Sequential(*layers, nn.Linear(in_channels, out_channels, bias))


def stacked_perceptrons(perceptrons: Sequence[Sequence[nn.Module]], x: Tensor) -> Tensor:
    """Several perceptrons of the same sizes at once: `[row, in]`, the same for all, -> `[perceptron, row, out]`."""
    x = x.expand(len(perceptrons), *x.shape)
    for layers in zip(*perceptrons, strict=True):
        x = StackedLinear(layers)(x) if isinstance(layers[0], nn.Linear) else layers[0](x)
    return x


def perceptrons_and_slopes(
    perceptrons: Sequence[Sequence[nn.Module]], x: Tensor, slope: Tensor
) -> tuple[Tensor, Tensor]:
    """The same with ReLU between the layers, and their derivatives along `slope`, which have no gradient."""
    x, slope = (part.expand(len(perceptrons), *part.shape) for part in (x, slope))
    for layers in zip(*perceptrons, strict=True):
        if isinstance(layers[0], nn.Linear):
            linear = StackedLinear(layers)
            x = linear(x)
            slope = slope @ linear.weight.detach()
        else:
            assert isinstance(layers[0], nn.ReLU)
            slope = slope * (x.detach() > 0)
            x = layers[0](x)
    return x, slope


class StackedLinear:
    """Linear layers of one size, one for each `[row, in]` of `[layer, row, in]`, as one product."""

    def __init__(self, layers: Sequence[Any]) -> None:
        self.weight = _Transposed.apply(torch.stack([layer.weight for layer in layers]))
        has_bias = layers[0].bias is not None
        self.bias = torch.stack([layer.bias for layer in layers]).unsqueeze(1) if has_bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x @ self.weight if self.bias is None else torch.baddbmm(self.bias, x, self.weight)


class _Transposed(torch.autograd.Function):
    """The gradient of a stack is turned back as a whole; autograd would do so with a copy for every layer."""

    @staticmethod
    def forward(ctx: Any, stack: Tensor) -> Tensor:
        return stack.mT

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0].mT.contiguous()


def reset_layers(layers: nn.Sequential) -> None:
    for layer in layers:
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()


LEARNED_FILTERS: dict[str, type[LearnedFilter]] = {
    "mlp": MLPFilter,
    "unbiased": UnbiasedFilter,
    "anchored": AnchoredFilter,
}
SPECTRAL_FILTERS = ("power", "heat", *LEARNED_FILTERS)


def spectral_filter(
    name: str, scales: Sequence[float], hidden_channels: Sequence[int] = (128,), *, positive: bool = False
) -> nn.Module:
    """A spectral filter by name."""
    if name == "power":
        return PowerFilter(scales)
    if name == "heat":
        return HeatFilter(scales)
    if name not in LEARNED_FILTERS:
        raise ValueError(f"unknown spectral filter {name!r}: choose one of {', '.join(SPECTRAL_FILTERS)}")
    return LEARNED_FILTERS[name](scales, hidden_channels, positive=positive)
