"""What the two multi-scale convolutions share: weights, their reset, and Eq. 7."""

from collections.abc import Sequence
from typing import Any, TypedDict

import torch
from torch import Tensor, nn

from lanczosnet.batching.terms import Terms, num_matrices
from lanczosnet.filters import Scales


class WeightOptions(TypedDict, total=False):
    """What both convolutions take by keyword; `LanczosConv` documents it."""

    tied_scales: bool
    num_edge_types: int
    bias: bool
    gain: float


def in_autocast_type(y: Tensor) -> Tensor:
    """S keeps all bits; what follows the convolution, and is stored for its gradient, need not."""
    kind = y.device.type
    return y.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else y


class MultiScaleConv(nn.Module):
    """One weight matrix per short scale, long scale and edge type; the scales share one where they are tied."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        short_scales: Sequence[int],
        num_long_scales: int,
        filter: nn.Module | None,  # noqa: A002
        *,
        tied_scales: bool = False,
        num_edge_types: int = 0,
        bias: bool = True,
        gain: float = 1.0,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.short_scales = Scales(short_scales).finite
        self.num_long_scales = 0 if filter is None else num_long_scales
        self.num_scales = len(self.short_scales) + self.num_long_scales
        self.num_edge_types = num_edge_types
        if self.num_scales + num_edge_types == 0:
            raise ValueError("a convolution needs at least one short scale, long scale or edge type")
        self.filter = filter
        self.tied_scales = tied_scales
        self.gain = gain
        self.weight = nn.Parameter(
            torch.empty(num_matrices(self.num_scales, num_edge_types, tied_scales), in_channels, out_channels)
        )
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot for the concatenation's one weight matrix, zero for the bias."""
        nn.init.xavier_uniform_(self.weight.view(-1, self.out_channels), self.gain)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.filter is not None:
            self.filter.reset_parameters()  # type: ignore[operator]

    @property
    def multiplies_first(self) -> bool:
        """Whether features meet nothing but weights, which they outnumber: then they may be `SparseFeatures`."""
        factor = 1 if self.tied_scales else max(1, self.num_long_scales)
        return self.in_channels > factor * self.out_channels and self.num_edge_types == 0

    def convolve(self, x: Tensor, spectrum: Any) -> Tensor:
        """Eq. 7 for `[..., node, in_channels]` and what a layer needs of a graph, a `GraphSpectrum` or the like."""
        if x.shape[-1] != self.in_channels:
            raise ValueError(f"this layer takes {self.in_channels} channels, but got {x.shape[-1]}")
        return in_autocast_type(spectrum.convolve(self._terms(x), self.filter))

    def _terms(self, x: Tensor) -> Terms:
        return Terms(x, self.weight, self.bias, self.short_scales, self.num_long_scales, self.tied_scales)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, short_scales={list(self.short_scales)}"
