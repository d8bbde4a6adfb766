"""The scales of a network whose user names none."""

from collections.abc import Sequence
from typing import NamedTuple

from lanczosnet.layers.residual import Block, is_residual


class ScalesOfForms(NamedTuple):
    """Powers of S that are multiplied out, and powers of Ritz values, of one network in its two forms.

    Blocks of the residual form see the node itself (0) beside its neighbours. The plain form has what is published.
    """

    residual: tuple[tuple[int, ...], tuple[float, ...]]
    plain: tuple[tuple[int, ...], tuple[float, ...]]

    def chosen(
        self, block: Block, short: Sequence[int] | None, long: Sequence[float] | None
    ) -> tuple[Sequence[int], Sequence[float]]:
        """What is given, or else what the form has."""
        own_short, own_long = self.residual if is_residual(block) else self.plain
        return own_short if short is None else short, own_long if long is None else long
