"""Graphs as networks see them, in whatever layout."""

from abc import ABC
from collections.abc import Sequence
from typing import Any

from torch import Tensor


class GraphBatch(ABC):
    """One graph or many, prepared for a network.

    The objects that `spectra` hands to the layers answer `convolve`, whether the graphs stay sparse, are padded, or
    have their operators formed. Networks and layers never ask which.
    """

    x: Any  # node features or types
    batch: Tensor  # the graph of every node, [node]
    num_graphs: int
    descriptors: Tensor | None  # that the graphs bring themselves, [graph, descriptor]

    @property
    def nodes(self) -> Tensor:
        """x as an encoder takes it, `[row, ...]`."""
        return self.x

    def pad(self, signal: Tensor) -> Tensor:
        """`[row, channel]` -> as layers take it."""
        return signal

    def unpad(self, signal: Tensor) -> Tensor:
        """As layers give it -> `[row, channel]`."""
        return signal

    def spectra(self, network: Any, features: Tensor) -> Sequence[Any]:
        """What each of a network's convolutions sees of the graphs, from encoded features."""
        raise NotImplementedError

    def inputs(self) -> Any:
        """What the layers of a network of the comparison take; made once per forward pass."""
        return self

    def propagate(self, network: Any, x: Tensor) -> Tensor:
        """What the layers of a network of the comparison make of encoded nodes."""
        return network.propagate(x, self.inputs())

    def readout(self, readout: Any, x: Tensor) -> Tensor:
        """`[row, channel]` -> `[graph, out_channels]`, or the same without a readout."""
        return x if readout is None else readout(x, self.batch, self.num_graphs)
