"""Filters on the tridiagonal matrix T itself, for AdaLanczosNet: `[graph, step, step]` -> `[graph, scale, step, step]`.

The authors gave up filtering the eigenvalues of T because the gradient of eigh is unstable, and filter its entries
instead (Eq. 10). `SpectralTridiagonalFilter` filters the eigenvalues after all, with a gradient that is stable.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lanczosnet.filters.scales import Scales
from lanczosnet.filters.spectral import (
    PowerFilter,
    multilayer_perceptron,
    reset_layers,
    responses,
    responses_and_slopes,
)
from lanczosnet.krylov import matrix_function, matrix_powers


class SpectralTridiagonalFilter(nn.Module):
    """f_i(T) = B f_i(R) B^T with the Daleckii-Krein gradient; depends on T through its spectrum alone.

    The same filters and parameters as LanczosNet's, and the only form that can be applied to S instead of T.
    """

    acts_on_spectrum = True

    def __init__(self, response: nn.Module) -> None:
        super().__init__()
        self.response = response

    def reset_parameters(self) -> None:
        self.response.reset_parameters()  # type: ignore[operator]

    def forward(self, matrix: Tensor, eigen: tuple[Tensor, Tensor] | None = None) -> Tensor:
        return matrix_function(matrix, self.response, eigen)


def filtered_by_layer(filters: Sequence[nn.Module], matrix: Tensor, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """What the filters of a network's layers make of the same matrices, `[graph, layer, scale, step, step]`.

    Spectral filters share one decomposition, in `dtype`, and their responses are one product; the others share powers.
    """
    if isinstance(filters[0], PowersFilter):
        stacked = matrix_powers(matrix, filters[0].scales.finite)
        return torch.stack([chosen.of_powers(stacked) for chosen in filters], 1)  # type: ignore[operator]
    parts: list[Any] = [chosen.response for chosen in filters]
    if isinstance(parts[0], PowerFilter):  # nothing learned: all layers have the same
        shared = matrix_function(matrix, parts[0], dtype=dtype)
        return shared.unsqueeze(1).expand(-1, len(filters), -1, -1, -1)
    found = matrix_function(matrix, _LayerResponses(parts), dtype=dtype)
    return found.unflatten(1, (len(parts), len(parts[0].scales)))


class _LayerResponses:
    """The responses of learned filters of one kind and size side by side, `[..., filter x scale]`."""

    def __init__(self, filters: Sequence[Any]) -> None:
        self.filters = filters

    def __call__(self, values: Tensor) -> Tensor:
        return responses(self.filters, self.filters[0].features(values)).flatten(-2)

    def with_slope(self, values: Tensor) -> tuple[Tensor, Tensor]:
        response, slope = responses_and_slopes(self.filters, values)
        return response.flatten(-2), slope.flatten(-2)


class PowersFilter(nn.Module, ABC):
    """A filter on the entries of the powers of T."""

    acts_on_spectrum = False
    scales: Scales
    layers: nn.Sequential

    def reset_parameters(self) -> None:
        reset_layers(self.layers)

    def forward(self, matrix: Tensor) -> Tensor:
        return self.of_powers(matrix_powers(matrix, self.scales.finite))

    @abstractmethod
    def of_powers(self, stacked: Tensor) -> Tensor:
        """The same from the powers, `[..., scale, step, step]`."""


class VectorizedTridiagonalFilter(PowersFilter):
    """g_i = f_i + f_i^T, where an MLP maps all entries of all powers of T to E matrices (Eq. 10, as published).

    Args:
        scales: the long scales, finite.
        num_steps: K; the MLP has E K^2 inputs and outputs.
        hidden_channels: sizes of its hidden layers; (4096, 4096, 4096) on QM8, 50 million parameters a layer.
    """

    def __init__(self, scales: Sequence[float], num_steps: int, hidden_channels: Sequence[int] = (128,)) -> None:
        super().__init__()
        self.scales = Scales(scales)
        size = len(self.scales) * num_steps**2
        self.layers = multilayer_perceptron(size, hidden_channels, size)

    def of_powers(self, stacked: Tensor) -> Tensor:
        mapped = self.layers(stacked.flatten(-3)).view_as(stacked)
        return mapped + mapped.mT


class EntrywiseTridiagonalFilter(PowersFilter):
    """One small MLP shared by all entries: (T^s1, ..., T^sE)_jk -> E numbers; symmetric as T is.

    A few thousand parameters where the published form has millions, whatever K.
    """

    def __init__(self, scales: Sequence[float], hidden_channels: Sequence[int] = (128,)) -> None:
        super().__init__()
        self.scales = Scales(scales)
        self.layers = multilayer_perceptron(len(self.scales), hidden_channels, len(self.scales))

    def of_powers(self, stacked: Tensor) -> Tensor:
        return self.layers(stacked.movedim(-3, -1)).movedim(-1, -3)
