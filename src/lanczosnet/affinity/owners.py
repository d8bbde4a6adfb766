"""Which process has a node of a graph that is shared out."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class Owners(ABC):
    """Every node of the whole graph belongs to one process."""

    @abstractmethod
    def of(self, node: Tensor) -> Tensor:
        """The process of every node."""

    @abstractmethod
    def nodes(self, process: int) -> Tensor:
        """Those of a process, rising."""


class RangeOwners(Owners):
    """Ranges of nodes; `bounds` are where they begin, and the end, `[process + 1]`."""

    def __init__(self, bounds: Tensor) -> None:
        self.bounds = bounds

    def of(self, node: Tensor) -> Tensor:
        return torch.searchsorted(self.bounds, node, right=True) - 1

    def nodes(self, process: int) -> Tensor:
        return torch.arange(int(self.bounds[process]), int(self.bounds[process + 1]))


class GivenOwners(Owners):
    """A given partition, `[node]`."""

    def __init__(self, process: Tensor) -> None:
        self.process = process

    def of(self, node: Tensor) -> Tensor:
        return self.process[node].long()

    def nodes(self, process: int) -> Tensor:
        return (self.process == process).nonzero().squeeze(1)


def is_range(nodes: Tensor) -> bool:
    """Whether rising numbers leave none out."""
    return len(nodes) > 0 and int(nodes[-1]) - int(nodes[0]) + 1 == len(nodes)


def places_in(nodes: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """The place of each wanted number among rising ones, and whether it is there; any place where it is not."""
    if not len(nodes):
        return torch.zeros_like(wanted), torch.zeros_like(wanted, dtype=torch.bool)
    if is_range(nodes):
        return wanted - nodes[0], (wanted >= nodes[0]) & (wanted <= nodes[-1])
    place = torch.searchsorted(nodes, wanted).clamp_(max=len(nodes) - 1)
    return place, nodes[place] == wanted
