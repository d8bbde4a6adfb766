"""What a convolution needs to know of a graph, worked out once and shared by all layers."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import DenseOperator, Operator
from lanczosnet.filters import SpectralBasis


class EdgeTypeOperators:
    """One operator per edge type, applied together: sum_t S_t X W_t."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self.operators = list(operators)
        self._wide: Tensor | None = None
        if all(isinstance(operator, DenseOperator) for operator in self.operators):
            # [S_1 ... S_T] side by side, so that all types are one product.
            self._wide = torch.cat([operator.dense() for operator in self.operators], dim=-1)

    def __len__(self) -> int:
        return len(self.operators)

    def stacked(self) -> Tensor:
        """The operators of a dense batch as `[graph, node, type, node]`."""
        assert self._wide is not None
        return self._wide.unflatten(-1, (len(self), -1))

    def terms(self, signal: Tensor) -> list[Tensor]:
        """[S_t X for every type t]."""
        return [operator @ signal for operator in self.operators]

    def convolve(self, signal: Tensor, weights: Tensor) -> Tensor:
        """`[..., node, in_channels]`, weights `[type, in_channels, out_channels]` -> `[..., node, out_channels]`."""
        mixed = (signal.unsqueeze(-3) @ weights).movedim(-3, 0)  # [type, ..., node, out_channels]
        if self._wide is None:
            terms = (operator @ part for operator, part in zip(self.operators, mixed, strict=True))
            return sum(terms, start=torch.zeros((), dtype=weights.dtype, device=weights.device))
        with torch.autocast(signal.device.type, enabled=False):
            return self._wide @ mixed.movedim(0, -3).flatten(-3, -2).to(self._wide.dtype)


class GraphSpectrum(NamedTuple):
    """A graph as LanczosConv sees it: S, its Ritz pairs where long scales are used, and S per edge type."""

    operator: Operator
    basis: SpectralBasis | None = None
    edge_types: EdgeTypeOperators | None = None
