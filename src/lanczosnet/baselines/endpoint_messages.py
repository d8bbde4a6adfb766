"""The nodes of many graphs as rows of one table, once for every channel in which they have neighbours."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from lanczosnet.backends import operation
from lanczosnet.backends.autograd import first_order
from lanczosnet.batching.formed import Padding


@dataclass(frozen=True)
class Slots:
    """Rows of a table that belong together: as many slots for each, in which the row `nothing` stands for none."""

    index: Tensor  # [sum, slot]
    nothing: int
    weight: Tensor | None = None  # [sum, slot], zero where there is nothing; not looked at where rows are just added up

    @cached_property
    def begins(self) -> Tensor:
        return torch.arange(0, self.index.numel(), self.index.shape[1], device=self.index.device)

    def add_up(self, table: Tensor) -> Tensor:
        """`[row, channel]` -> `[sum, channel]`, always in the same order and without a copy of the rows."""
        return sum_slots(table, self)


@operation
def sum_slots(table: Tensor, slots: Slots) -> Tensor:
    """The rows of a table in every slot, added up: `[row, channel]` -> `[sum, channel]`."""
    index, nothing = slots.index.flatten(), slots.nothing
    return torch.nn.functional.embedding_bag(index, table, slots.begins, mode="sum", padding_idx=nothing)


@dataclass(frozen=True)
class PackedNodes:
    """Padded graphs for messages f_c(x_i, x_j) of which all that is done to one end is done once for each node.

    The rows of a channel stand one after the other and are padded to its capacity. What is gathered in one direction is
    added up in the other, and both are written down: scattered additions, which autograd would use, depend on the order
    in which a GPU does them.
    """

    node: Tensor  # a row's place in padded blocks, [row]
    own: Slots  # a node's row in every channel, [node, C]
    senders: Slots  # from which rows they come, with their weights, [row, slot]
    receivers: Slots  # and to which a row's own go, [row, slot]
    capacity: tuple[int, ...]  # rows of each channel
    padding: Padding

    def enter(self, state: Tensor) -> Tensor:
        """`[node, channel]` -> `[row, channel]`."""
        return _Entered.apply(self.padding.pad(state).flatten(0, 1), self.node, self.own)

    def endpoint_messages(self, ends: Tensor, *, relu: bool) -> Tensor:
        """sum_j w_ij relu(a_i + b_j) over the senders j of row i, of `[a, b]`; `relu=False` leaves the ReLU out.

        `[row, 2 x channel]` -> `[row, channel]`, zero on padding.
        """
        return _EndpointMessages.apply(ends, self.senders, self.receivers, relu)

    def received(self, sent: Tensor) -> Tensor:
        """The sum over channels, `[row, channel]`, zero on padding -> `[node, channel]`."""
        return self._unpadded(_Received.apply(sent, self.node, self.own))

    def received_weight(self) -> Tensor:
        """The sum of the weights with which messages arrive, `[node, C]`."""
        assert self.senders.weight is not None
        return self._unpadded(
            self.senders.weight.sum(1).index_select(0, self.own.index.flatten()).view_as(self.own.index)
        )

    def _unpadded(self, of_nodes: Tensor) -> Tensor:
        return self.padding.unpad(of_nodes.unflatten(0, (self.padding.num_blocks, self.padding.width)))


class _Entered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, state: Tensor, node: Tensor, own: Slots) -> Tensor:
        ctx.own = own
        return state.index_select(0, node)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.own.add_up(grad), None, None


class _Received(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sent: Tensor, node: Tensor, own: Slots) -> Tensor:
        ctx.save_for_backward(node)
        return own.add_up(sent)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        # Rows of padding get what is another's. It goes no further: they are zero, and have neither end of a message.
        (node,) = ctx.saved_tensors
        return grad.index_select(0, node), None, None


class _EndpointMessages(torch.autograd.Function):
    """What ends make of each other is made again backwards: there are more messages than ends."""

    @staticmethod
    def forward(ctx: Any, ends: Tensor, senders: Slots, receivers: Slots, relu: bool) -> Tensor:
        ctx.save_for_backward(ends)
        ctx.senders, ctx.receivers, ctx.relu = senders, receivers, relu
        return endpoint_messages(ends, senders, relu)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (ends,) = ctx.saved_tensors
        return endpoint_messages_backward(ends, grad, ctx.senders, ctx.receivers, ctx.relu), None, None, None


@operation
def endpoint_messages(ends: Tensor, senders: Slots, relu: bool) -> Tensor:
    mine, theirs = ends.chunk(2, -1)
    messages = mine.unsqueeze(1) + _in_slots(theirs, senders)
    return _weighted_sum(messages.relu() if relu else messages, senders)


@operation
def endpoint_messages_backward(ends: Tensor, grad: Tensor, senders: Slots, receivers: Slots, relu: bool) -> Tensor:
    mine, theirs = ends.chunk(2, -1)
    of_mine, of_theirs = grad.unsqueeze(1).expand(*senders.index.shape, -1), _in_slots(grad, receivers)
    if relu:
        of_mine = of_mine * (mine.unsqueeze(1) + _in_slots(theirs, senders) > 0)
        of_theirs = of_theirs * (_in_slots(mine, receivers) + theirs.unsqueeze(1) > 0)
    return torch.cat([_weighted_sum(of_mine, senders), _weighted_sum(of_theirs, receivers)], -1)


def _in_slots(rows: Tensor, slots: Slots) -> Tensor:
    """`[row, channel]` -> `[sum, slot, channel]`."""
    return rows.index_select(0, slots.index.flatten()).unflatten(0, slots.index.shape)


def _weighted_sum(values: Tensor, slots: Slots) -> Tensor:
    """`[sum, slot, channel]` -> `[sum, channel]`, in the precision of the values, as the kernels have it."""
    assert slots.weight is not None
    with torch.autocast(values.device.type, enabled=False):
        return (slots.weight.to(values.dtype).unsqueeze(1) @ values).squeeze(1)
