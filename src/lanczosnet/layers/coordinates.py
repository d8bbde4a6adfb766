"""Signals on the nodes of graphs as K coordinates per graph, and back."""

from typing import Protocol

import torch
from torch import Tensor

from lanczosnet.affinity import BlockLayout


class Coordinates(Protocol):
    """How a signal on the nodes becomes one of K coordinates per graph, and back."""

    def weighted(self, signal: Tensor, weights: Tensor) -> Tensor:
        """Q^T X W_i for all i: `[..., node, in]`, `[scale, in, out]` -> `[..., scale, step, out]`."""

    def inverse(self, coefficients: Tensor) -> Tensor:
        """Q Y: `[..., step, channel]` -> `[..., node, channel]`, zero on nodes outside this part of the graph."""


class NodeCoordinates:
    """Q = I: a dense batch of small graphs, as it is."""

    def weighted(self, signal: Tensor, weights: Tensor) -> Tensor:
        return signal.unsqueeze(-3) @ weights

    def inverse(self, coefficients: Tensor) -> Tensor:
        return coefficients


class BlockCoordinates:
    """Q = I on the small components of a sparse graph, gathered into a dense batch."""

    def __init__(self, layout: BlockLayout) -> None:
        self.layout = layout

    def weighted(self, signal: Tensor, weights: Tensor) -> Tensor:
        # Weights before padding: features are often many, outputs few.
        return _by_scale(self.layout.pad(_all_products(signal, weights)), len(weights))

    def inverse(self, coefficients: Tensor) -> Tensor:
        return self.layout.unpad(coefficients)


class BasisCoordinates:
    """Lanczos vectors of one graph or of a dense batch."""

    def __init__(self, basis: Tensor) -> None:
        self.basis = basis

    def weighted(self, signal: Tensor, weights: Tensor) -> Tensor:
        if _is_wide(weights):
            return _by_scale(self.basis.mT @ _all_products(signal, weights), len(weights))
        return (self.basis.mT @ signal).unsqueeze(-3) @ weights

    def inverse(self, coefficients: Tensor) -> Tensor:
        return self.basis @ coefficients


class RaggedCoordinates:
    """Lanczos vectors of several components side by side, one step at a time to stay at node x channel memory."""

    def __init__(self, basis: Tensor, segment: Tensor, num_segments: int) -> None:
        self.vectors = basis.unsqueeze(-1).unbind(-2)
        self.segment = segment
        self.num_segments = num_segments

    def weighted(self, signal: Tensor, weights: Tensor) -> Tensor:
        if _is_wide(weights):
            return _by_scale(self._transformed(_all_products(signal, weights)), len(weights))
        return self._transformed(signal).unsqueeze(-3) @ weights

    def _transformed(self, signal: Tensor) -> Tensor:
        zeros = signal.new_zeros(self.num_segments, signal.shape[-1])
        return torch.stack([zeros.index_add(0, self.segment, vector * signal) for vector in self.vectors], 1)

    def inverse(self, coefficients: Tensor) -> Tensor:
        steps = zip(self.vectors, coefficients.unbind(1), strict=True)
        parts = [vector * coefficient.index_select(0, self.segment) for vector, coefficient in steps]
        return sum(parts[1:], start=parts[0])


class SubsetCoordinates:
    """Some graphs of a dense batch."""

    def __init__(self, inner: Coordinates, graphs: Tensor, num_graphs: int) -> None:
        self.inner = inner
        self.graphs = graphs
        self.num_graphs = num_graphs

    def weighted(self, signal: Tensor, weights: Tensor) -> Tensor:
        return self.inner.weighted(signal[self.graphs], weights)

    def inverse(self, coefficients: Tensor) -> Tensor:
        signal = self.inner.inverse(coefficients)
        return signal.new_zeros(self.num_graphs, *signal.shape[1:]).index_put((self.graphs,), signal)


def _is_wide(weights: Tensor) -> bool:
    """Whether the products with all weights have fewer channels than the signal."""
    num_scales, in_channels, out_channels = weights.shape
    return in_channels > num_scales * out_channels


def _all_products(signal: Tensor, weights: Tensor) -> Tensor:
    """X W_i side by side, `[..., node, scale x out]`."""
    return signal @ weights.movedim(0, 1).flatten(1)


def _by_scale(products: Tensor, num_scales: int) -> Tensor:
    """`[..., step, scale x out]` -> `[..., scale, step, out]`."""
    return products.unflatten(-1, (num_scales, -1)).movedim(-2, -3)
