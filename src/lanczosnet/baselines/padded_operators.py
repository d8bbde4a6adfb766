"""Padded graphs as the networks of the comparison see them: operators known beforehand, or channels kept apart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import Padding
from lanczosnet.batching.formed import FormedOperators
from lanczosnet.batching.from_data import DENSE_UP_TO
from lanczosnet.batching.padded import PaddedBatch


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorBatch(PaddedBatch):
    """Graphs for layers that multiply with operators which are known beforehand, and with one matrix."""

    matrix: Annotated[Tensor, "graph node term node"]

    can_join = True
    can_pair = True

    def propagate(self, network: Any, x: Tensor) -> Tensor:
        return network.stack(x, network.convolutions, FormedOperators(self.matrix, self.padding))


class ChannelInputs(NamedTuple):
    """What the layers of a network take of blocks, where channels are kept apart; made once per forward pass."""

    channels: Any  # FormedOperators, or PackedNodes for messages of both ends of an edge
    clusters: FormedOperators | None = None
    cut: FormedOperators | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelBatch(PaddedBatch):
    """Graphs for layers that do something of their own in every channel."""

    matrix: Annotated[Tensor, "graph channel node node"]

    can_pair = True
    widest_pair = DENSE_UP_TO  # of the Triton kernel that aggregates

    def inputs(self) -> ChannelInputs:
        return ChannelInputs(FormedOperators(self.matrix.transpose(0, 1).contiguous(), self.padding))


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionBatch(ChannelBatch):
    """The same, and the simple graph in two parts."""

    clusters: Annotated[Tensor, "graph node node"]  # edges inside clusters
    cut: Annotated[Tensor, "graph node node"]  # and those between them

    def inputs(self) -> ChannelInputs:
        parts = (FormedOperators(part.unsqueeze(0), self.padding) for part in (self.clusters, self.cut))
        return ChannelInputs(super().inputs().channels, *parts)


def operator_block(linear: Callable[[Tensor], Tensor], padding: Padding, dtype: torch.dtype) -> Tensor:
    """A linear map of signals `[node, channel]` as blocks `[graph, node, node]`: what it makes of every unit vector.

    All graphs at once, so that any of PyG's aggregations serves as the map, as long as it stays inside the graphs.
    """
    places = torch.arange(padding.width, device=padding.place.device)
    return padding.pad(linear((padding.place.unsqueeze(1) == places).to(dtype)))


def identity_block(padding: Padding, dtype: torch.dtype) -> Tensor:
    return torch.diag_embed(padding.mask.to(dtype))


def node_blocks(x: Tensor, padding: Padding, dtype: torch.dtype) -> dict[str, Any]:
    """The fields that all blocks have."""
    return {"x": padding.pad(x), "mask": padding.mask.to(dtype)}


def operator_blocks(x: Tensor, padding: Padding, operators: Sequence[Tensor]) -> OperatorBatch:
    """From one `[graph, node, node]` for every term."""
    return OperatorBatch(**node_blocks(x, padding, operators[0].dtype), matrix=torch.stack(list(operators), 2))
