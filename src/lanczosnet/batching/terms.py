"""What stands on one side of Eq. 7: a signal and the weights of its terms."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import torch
from torch import Tensor


def num_matrices(num_scales: int, num_edge_types: int, tied: bool) -> int:
    """How many are learned; edge types always have their own."""
    return (min(1, num_scales) if tied else num_scales) + num_edge_types


@dataclass(frozen=True, eq=False)
class Terms:
    """The signal, and a weight matrix for every short scale, long scale and edge type.

    Args:
        x: `[..., node, in_channels]`.
        weight: what is learned, `[matrix, in_channels, out_channels]`.
        bias: `[out_channels]`, or None.
        short_scales: powers of S.
        num_long_scales: how many spectral filters there are.
        tied: whether the first matrix is that of all scales, whose terms are averaged.
    """

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    short_scales: Sequence[int]
    num_long_scales: int
    tied: bool

    @property
    def num_scales(self) -> int:
        return len(self.short_scales) + self.num_long_scales

    @cached_property
    def by_term(self) -> Tensor:
        """`[short scale, long scale and edge type, in_channels, out_channels]`."""
        if not self.tied or self.num_scales == 0:
            return self.weight
        scales = self.tied_weight.expand(self.num_scales, -1, -1)
        return scales if len(self.weight) == 1 else torch.cat([scales, self.weight[1:]])

    @cached_property
    def weights(self) -> tuple[Tensor, Tensor, Tensor]:
        """Those of the short scales, of the long scales, and of the edge types."""
        sizes = [len(self.short_scales), self.num_long_scales, len(self.by_term) - self.num_scales]
        short, long, typed = self.by_term.split(sizes)
        return short, long, typed

    @cached_property
    def tied_weight(self) -> Tensor:
        """`[1, in_channels, out_channels]`, divided by the number of scales."""
        return self.weight[:1] / self.num_scales

    @cached_property
    def tied_product(self) -> Tensor:
        """X W, which all scales share."""
        return self.x @ self.tied_weight[0]

    @property
    def out_channels(self) -> int:
        return self.weight.shape[-1]

    def of_outputs(self, channels: slice) -> Self:
        """The terms of some output channels."""
        bias = None if self.bias is None else self.bias[channels]
        return replace(self, weight=self.weight[..., channels], bias=bias)

    def untied(self) -> Self:
        """The same with a matrix for every scale."""
        return replace(self, weight=self.by_term, tied=False)
