"""Default scales and filter of the two Lanczos networks."""

from collections.abc import Sequence
from typing import NamedTuple

from lanczosnet.layers.residual import Block, is_residual


class FilterDefaults(NamedTuple):
    """Powers of S computed by products, powers of Ritz values, and what is learned of these."""

    short: Sequence[int]
    long: Sequence[float]
    spectral_filter: str


class FilterDefaultsByBlock(NamedTuple):
    """Those of one network. Blocks of the residual form see the node itself (0) beside its neighbours."""

    residual: FilterDefaults
    plain: FilterDefaults  # as published

    def chosen(
        self,
        block: Block,
        short: Sequence[int] | None,
        long: Sequence[float] | None,
        spectral_filter: str | None,
    ) -> FilterDefaults:
        """The arguments that are given, else the defaults of the block."""
        default = self.residual if is_residual(block) else self.plain
        return FilterDefaults(
            default.short if short is None else short,
            default.long if long is None else long,
            default.spectral_filter if spectral_filter is None else spectral_filter,
        )
