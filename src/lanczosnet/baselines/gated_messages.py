"""States that a GRU changes by the messages they receive, step after step with the same weights."""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from lanczosnet.backends import operation
from lanczosnet.baselines.edge_types import EdgeList, NodeMessages, PairMessages
from lanczosnet.baselines.endpoint_messages import PackedNodes
from lanczosnet.batching.formed import FormedOperators, Padding
from lanczosnet.layers.tied_linear import ALIGNED_TO, TiedLinear, gru_cell

Step = Callable[[Tensor], Tensor]  # states [node, channels] -> the next ones


class GatedMessages:
    """h' = GRU(messages, h), made once per forward pass, which has at most `num_steps` of them.

    In padded blocks all channels share a product wherever they can, and with the gates of the state. Biases are rows of
    the weights: beside what a node receives in a channel stand how much of a bias arrives with it, and a one.
    """

    def __init__(self, messages: NodeMessages | PairMessages, cell: nn.GRUCell, num_steps: int) -> None:
        self.num_steps = num_steps
        self.messages = messages
        self.cell = cell
        self.layers = list(zip(*(function.lins for function in messages.functions), strict=True))
        self.num_channels = len(messages.functions)
        self.fused_steps: Any = None  # what a backend keeps for all steps of a forward pass

    def along(self, channels: Sequence[EdgeList] | FormedOperators | PackedNodes) -> Step:
        """What a step does on these graphs."""
        if isinstance(channels, FormedOperators):
            return gated_steps(channels.matrix, self, channels.padding)
        if isinstance(channels, PackedNodes):
            return self._through_rows(channels)
        messages = self.messages.along(channels)
        return lambda state: self.cell(messages(state), state)

    def _through_rows(self, rows: PackedNodes) -> Step:
        """Messages of both ends: the first layer is a sum of two products, one for every end, and all others come after
        the sum over neighbours."""
        ends = _by_channel(self._first_layer_of_ends, rows.capacity)
        last = [_by_channel(_weights(self.layers[1]), rows.capacity)] if len(self.layers) > 1 else []
        input_gates = _by_channel(self._gates_by_channel, rows.capacity)
        biases = self._biases_that_arrive(rows.received_weight())

        def step(state: Tensor) -> Tensor:
            with_ones = self.enter.side_by_side(state)  # so that rows need no copy to stand beside ones
            sent = rows.endpoint_messages(ends.product(rows.enter(with_ones)), relu=len(last) > 0)
            for layer in (*last, input_gates):
                sent = layer(sent)
            gates = self.enter.product(with_ones)
            return gru_cell(rows.received(sent) + biases, gates, state.to(gates.dtype))

        return step

    @property
    def _first_layer_of_ends(self) -> Tensor:
        """For a state beside ones as one end and as the other, `[channel, in + ones, 2 x out]`."""
        of_ends = torch.cat(_weights(self.layers[0]).chunk(2, 1), 2)
        bias = _biases(self.layers[0])
        if len(self.layers) == 1:
            bias = torch.zeros_like(bias)  # it arrives with the messages
        of_ones = torch.nn.functional.pad(bias.unsqueeze(1), (0, bias.shape[1], 0, self.enter.ones_per_row - 1))
        return torch.cat([of_ends, of_ones], 1)

    def _biases_that_arrive(self, arriving: Tensor) -> Tensor:
        """Of messages and of gates, `[node, C]` -> `[node, gates]`."""
        with torch.autocast(arriving.device.type, enabled=False):  # as all products of steps
            of_messages = (_biases(self.layers[-1]).unsqueeze(1) @ self._gates_by_channel).squeeze(1)
            return arriving.to(of_messages.dtype) @ of_messages + self.cell.bias_ih

    def hidden_and_gates(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """The last hidden layers of all channels side by side, the state where there are none; hidden gates."""
        entered = self.enter(state)
        if len(self.layers) == 1:
            return state.to(entered.dtype), entered
        num_gates = len(self.cell.bias_hh)
        hidden, gates = entered.split([entered.shape[1] - num_gates, num_gates], 1)
        hidden = hidden.relu()
        for layer in self._between:
            by_channel = hidden.unflatten(1, (self.num_channels, -1)).movedim(1, 0)
            hidden = layer(by_channel).relu().unflatten(0, by_channel.shape[:2]).movedim(0, 1).flatten(1)
        return hidden, gates

    @cached_property
    def enter(self) -> TiedLinear:
        """The gates of the state; with functions of nodes also their first layers, where others follow."""
        with_first = isinstance(self.messages, NodeMessages) and len(self.layers) > 1
        layers = self.layers[0] if with_first else ()
        weight = torch.cat([*(layer.weight for layer in layers), self.cell.weight_hh])
        bias = torch.cat([*(layer.bias for layer in layers), self.cell.bias_hh])
        return TiedLinear([weight.T.unsqueeze(0)], [bias.unsqueeze(0)])

    @cached_property
    def _between(self) -> list[TiedLinear]:
        return [TiedLinear([_weights(layers)], [_biases(layers)]) for layers in self.layers[1:-1]]

    @cached_property
    def last_layer_and_gates(self) -> TiedLinear:
        """The last layers and the input gates as one matrix, with the biases of both for the columns that `_receiver`
        adds."""
        last = self.layers[-1]
        weight = _weights(last) @ self._gates_by_channel  # [channel, in, gates]
        rows = weight.new_zeros(self.num_channels, _extra_columns(weight.shape[1]), weight.shape[2])
        of_gates = self.cell.bias_ih.expand(self.num_channels, 1, -1) / self.num_channels
        of_messages = rows[:, :1] if last[0].bias is None else _biases(last).unsqueeze(1) @ self._gates_by_channel
        return TiedLinear([torch.cat([weight, of_messages, of_gates, rows[:, 2:]], 1).flatten(0, 1).unsqueeze(0)])

    @cached_property
    def _gates_by_channel(self) -> Tensor:
        return self.cell.weight_ih.T.unflatten(0, (self.num_channels, -1))  # [channel, message, gates]


@operation
def gated_steps(matrix: Tensor, messages: GatedMessages, padding: Padding) -> Step:
    """What a step does in padded blocks, `[channel, graph, node i, node j]`.

    The last hidden layers are aggregated: the rest of the messages is one matrix with the gates.
    """
    width = messages.layers[-1][0].weight.shape[1]
    matrix = matrix.permute(1, 2, 3, 0)  # [graph, node i, node j, channel]
    if len(messages.layers) == 1:
        receive = _receiver(matrix.mT, width, padding)
    elif padding.rows is None:
        receive = _receiver(_side_by_side(matrix), width, padding)
    else:
        receive = _receiver_by_channel(matrix, width, padding)

    def step(state: Tensor) -> Tensor:
        hidden, gates = messages.hidden_and_gates(state)
        sent = padding.pad(hidden).unflatten(-1, (-1, width)).flatten(1, 2)
        return gru_cell(messages.last_layer_and_gates(receive(sent)), gates, state.to(gates.dtype))

    return step


def _receiver(operator: Tensor, width: int, padding: Padding) -> Callable[[Tensor], Tensor]:
    """`[graph, sender, width]` -> `[row, channel x (width + extra)]` for `[graph, node, channel, sender]`.

    The extra columns are the sum of the weights with which messages arrive, and ones.
    """
    columns = _bias_columns(operator.sum(-1), width).flatten(1, 2)
    shape, operator = operator.shape[1:3], operator.flatten(1, 2)

    def receive(sent: Tensor) -> Tensor:
        received = _ProductBeside.apply(operator.to(sent.dtype), sent, columns)
        return padding.unpad(received.unflatten(1, shape).flatten(2))

    return receive


def _receiver_by_channel(matrix: Tensor, width: int, padding: Padding) -> Callable[[Tensor], Tensor]:
    """What `_receiver` does for `_side_by_side`, with more copies and none of the zeros: where arithmetic counts."""
    operator = matrix.permute(0, 3, 1, 2).contiguous()  # [graph, channel, node i, node j]
    columns = _bias_columns(matrix.sum(2), width)

    def receive(sent: Tensor) -> Tensor:
        by_channel = sent.unflatten(1, (padding.width, -1)).transpose(1, 2)
        received = (operator.to(sent.dtype) @ by_channel).transpose(1, 2)
        return padding.unpad(torch.cat([received, columns.to(sent.dtype)], -1).flatten(2))

    return receive


def _bias_columns(arriving: Tensor, width: int) -> Tensor:
    """`[graph, node, channel]` -> `[graph, node, channel, extra]`."""
    ones = arriving.new_ones(1).expand(*arriving.shape, _extra_columns(width) - 1)
    return torch.cat([arriving.unsqueeze(-1), ones], -1)


def _extra_columns(width: int) -> int:
    """At least two, and as many as keep rows aligned."""
    return 2 + (-width - 2) % ALIGNED_TO


class _ProductBeside(torch.autograd.Function):
    """[O X, C] of constant O and C, the product written where it is wanted."""

    @staticmethod
    def forward(ctx: Any, operator: Tensor, x: Tensor, columns: Tensor) -> Tensor:
        ctx.save_for_backward(operator)
        ctx.width = x.shape[-1]
        found = x.new_empty(*columns.shape[:-1], ctx.width + columns.shape[-1])
        torch.bmm(operator, x, out=found[..., : ctx.width])
        found[..., ctx.width :] = columns
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        (operator,) = ctx.saved_tensors
        return None, operator.mT @ grad[..., : ctx.width], None


def _side_by_side(matrix: Tensor) -> Tensor:
    """`[graph, i, j, C]` -> `[graph, i, C, j x C]`: one graph, in which node i of channel c is number i C + c."""
    return torch.diag_embed(matrix, dim1=2, dim2=4).flatten(3)


def _weights(layers: Sequence[Any]) -> Tensor:
    """`[layer, in, out]`."""
    return torch.stack([layer.weight for layer in layers]).mT


def _biases(layers: Sequence[Any]) -> Tensor:
    return torch.stack([layer.bias for layer in layers])


def _by_channel(weight: Tensor, capacity: Sequence[int]) -> TiedLinear:
    """`[channel, in, out]` for rows of all channels: neighbours with as many rows share a product."""
    groups = [list(group) for _, group in groupby(capacity)]
    return TiedLinear(weight.split([len(group) for group in groups]), sizes=[sum(group) for group in groups])
