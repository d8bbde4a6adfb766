"""The edges of many graphs as rows of one table, without a slot for every edge that a graph might have."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lanczosnet.kernels import kernels_serve
from lanczosnet.layers.blocks import Padding


@dataclass(frozen=True)
class Slots:
    """Sums of rows of a table: each has as many slots, in which the row `nothing` stands for none."""

    index: Tensor  # [sum, slot]
    nothing: int
    weight: Tensor | None = None  # [sum, slot]; one where absent

    @cached_property
    def begins(self) -> Tensor:
        return torch.arange(0, self.index.numel(), self.index.shape[1], device=self.index.device)

    def add_up(self, table: Tensor) -> Tensor:
        """`[row, channel]` -> `[sum, channel]`, always in the same order and without a copy of the rows."""
        if kernels_serve(table) and table.dtype == torch.float32:
            from lanczosnet.layers.packed_kernel import add_up

            return add_up(self.index, self.nothing, self.weight, table)
        weight = None if self.weight is None else self.weight.flatten().to(table.dtype)
        return torch.nn.functional.embedding_bag(
            self.index.flatten(), table, self.begins, mode="sum", per_sample_weights=weight, padding_idx=self.nothing
        )


@dataclass(frozen=True)
class PackedEdges:
    """The edges of padded graphs, those of a channel one after the other and padded to its capacity.

    Nodes are places in padded blocks. What is gathered along edges in one direction is added up in the other, and both
    are written down: scattered additions, which autograd would use, depend on the order in which a GPU does them.
    """

    ends: Tensor  # the nodes where a row's edge ends (0) and begins (1), [row, 2]
    touching: Slots  # the numbers in `ends`, read row by row, that are a node's, [node, slot]
    arrival: Tensor  # where a row's message arrives, node x C + channel, [row]
    arriving: Slots  # the rows that arrive there, with their weights, [node x C, slot]
    weight: Tensor  # of a row's message where it arrives, [row]; zero on padding
    capacity: tuple[int, ...]  # rows of each channel
    padding: Padding

    def pairs(self, state: Tensor) -> Tensor:
        """The states of both ends, `[node, channel]` -> `[row, 2 x channel]`."""
        return _BothEnds.apply(self.padding.pad(state).flatten(0, 1), self.ends, self.touching)

    def received(self, sent: Tensor) -> Tensor:
        """What arrives of messages, `[row, channel]` -> `[graph, node, C, channel]`."""
        return self._by_node(_Received.apply(sent, self.arriving, self.arrival, self.weight))

    def received_weight(self) -> Tensor:
        """The sum of the weights with which messages arrive, `[graph, node, C]`."""
        assert self.arriving.weight is not None
        return self._by_node(self.arriving.weight.sum(1))

    def _by_node(self, sums: Tensor) -> Tensor:
        return sums.unflatten(0, (self.padding.num_graphs, self.padding.width, len(self.capacity)))


class _BothEnds(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, state: Tensor, ends: Tensor, touching: Slots) -> Tensor:
        ctx.touching = touching
        return state.index_select(0, ends.flatten()).view(len(ends), -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.touching.add_up(grad.reshape(2 * len(grad), -1)), None, None


class _Received(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sent: Tensor, arriving: Slots, arrival: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(arrival, weight)
        return arriving.add_up(sent)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        arrival, weight = ctx.saved_tensors
        return grad.index_select(0, arrival) * weight.to(grad.dtype).unsqueeze(1), None, None, None
