"""The convolution of AdaLanczosNet: filters on T, or on S itself where it is small, with gradients into S."""

from collections.abc import Sequence
from typing import Unpack

from torch import Tensor, nn

from lanczosnet.batching.graph_spectrum import AdaptiveSpectrum
from lanczosnet.layers.conv_base import MultiScaleConv, WeightOptions


class AdaLanczosConv(MultiScaleConv):
    r"""Multi-scale graph convolution of AdaLanczosNet (Eqs. 7 and 10): :math:`\hat L_i = Q\, g_i(T)\, Q^\top`.

    Args:
        in_channels: size of each input.
        out_channels: size of each output.
        filter: maps T to one matrix per long scale (see `lanczosnet.filters.tridiagonal`); None without long scales.
        short_scales: powers of S that are multiplied out.
        num_long_scales: how many matrices the filter gives.
        **options: `tied_scales`, `num_edge_types`, `bias` and `gain` as in `LanczosConv`.

    Shapes:
        - **input:** `[..., node, in_channels]` and the graph's `AdaptiveSpectrum`
        - **output:** `[..., node, out_channels]`
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        filter: nn.Module | None,  # noqa: A002
        short_scales: Sequence[int] = (1, 2, 5),
        num_long_scales: int = 2,
        **options: Unpack[WeightOptions],
    ) -> None:
        super().__init__(in_channels, out_channels, short_scales, num_long_scales, filter, **options)

    def forward(self, x: Tensor, spectrum: AdaptiveSpectrum) -> Tensor:
        """The spectrum is that of `adaptive_spectrum`."""
        return self.convolve(x, spectrum)
