"""Signals on the nodes of graphs as K coordinates per graph, and back."""

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lanczosnet.affinity import BlockLayout
from lanczosnet.affinity.segments import segment_sum


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


class LanczosCoordinates(ABC):
    """Lanczos vectors: weights before or after Q^T X, whichever leaves it fewer channels."""

    def weighted(self, signal: Tensor, weights: Tensor) -> Tensor:
        if _is_wide(weights):
            return _by_scale(self._transformed(_all_products(signal, weights)), len(weights))
        return self._transformed(signal).unsqueeze(-3) @ weights

    @abstractmethod
    def _transformed(self, signal: Tensor) -> Tensor:
        """Q^T X, `[..., step, channel]`."""


class BasisCoordinates(LanczosCoordinates):
    """Those of one graph or of a dense batch."""

    def __init__(self, basis: Tensor) -> None:
        self.basis = basis

    def _transformed(self, signal: Tensor) -> Tensor:
        return self.basis.mT @ signal

    def inverse(self, coefficients: Tensor) -> Tensor:
        return self.basis @ coefficients


class Places(NamedTuple):
    """Nodes in blocks that are padded to the largest."""

    layout: BlockLayout
    node: Tensor  # at every place of every block, any node where that is padding, [block x place]
    place: Tensor  # of every node among all blocks', any place for nodes outside, [node]
    inside: Tensor | None  # zero on nodes outside the blocks, [node, 1]; None if there are none


def places_of(layout: BlockLayout) -> Places:
    # Every padding has a node of its own as far as there are enough: their gradients are added up one after the other.
    num_places = len(layout.size) * layout.width
    node = torch.arange(num_places, device=layout.node.device) % max(layout.num_nodes, 1)
    place_of_member = layout.block * layout.width + layout.place
    node[place_of_member] = layout.node
    place = torch.zeros(layout.num_nodes, dtype=torch.long, device=node.device)
    place[layout.node] = place_of_member
    if len(layout.node) == layout.num_nodes:
        return Places(layout, node, place, None)
    inside = torch.zeros(layout.num_nodes, 1, device=node.device)
    inside[layout.node] = 1.0
    return Places(layout, node, place, inside)


class PaddedCoordinates(LanczosCoordinates):
    """Those of several components of about one size, as dense blocks."""

    def __init__(self, basis: Tensor, places: Places) -> None:
        self.places = places
        self.vectors = places.layout.pad(basis)  # [block, place, step]; zero on padding

    def _transformed(self, signal: Tensor) -> Tensor:
        blocks = signal.index_select(0, self.places.node).unflatten(0, self.vectors.shape[:2])
        return self.vectors.mT @ blocks

    def inverse(self, coefficients: Tensor) -> Tensor:
        signal = (self.vectors @ coefficients).flatten(0, 1).index_select(0, self.places.place)
        return signal if self.places.inside is None else signal * self.places.inside.to(signal.dtype)


class RaggedCoordinates(LanczosCoordinates):
    """Those of components of any sizes side by side, one step at a time and without padding."""

    def __init__(self, basis: Tensor, segment: Tensor, num_segments: int) -> None:
        self.vectors = basis.unsqueeze(-1).unbind(-2)
        self.segment = segment
        self.num_segments = num_segments

    def _transformed(self, signal: Tensor) -> Tensor:
        parts = (vector * signal for vector in self.vectors)
        return torch.stack([segment_sum(part, self.segment, self.num_segments) for part in parts], 1)

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
