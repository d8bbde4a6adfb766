"""The scales and the filter of a network whose user names none."""

from collections.abc import Sequence
from typing import NamedTuple

from lanczosnet.layers.residual import Block, is_residual


class Form(NamedTuple):
    """Powers of S that are multiplied out, powers of Ritz values, and what is learned of these."""

    short: Sequence[int]
    long: Sequence[float]
    spectral_filter: str


class Forms(NamedTuple):
    """Of one network. Blocks of the residual form see the node itself (0) beside its neighbours."""

    residual: Form
    plain: Form  # as published

    def chosen(
        self,
        block: Block,
        short: Sequence[int] | None,
        long: Sequence[float] | None,
        spectral_filter: str | None,
    ) -> Form:
        """What is given, or else what the form has."""
        own = self.residual if is_residual(block) else self.plain
        return Form(
            own.short if short is None else short,
            own.long if long is None else long,
            own.spectral_filter if spectral_filter is None else spectral_filter,
        )
