"""One weight matrix or message function per edge type, on lists of edges as PyG has them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.nn import MLP, SimpleConv

from lanczosnet.batching.formed import FormedOperators, formed_convolution

Aggregation = Literal["sum", "mean"]
Messages = Callable[[Tensor], Tensor]  # states [node, channels] -> messages received, side by side


class EdgeList(NamedTuple):
    """A graph, or one channel of it, as a list of edges."""

    edge_index: Tensor  # source and target, [2, edge]
    edge_weight: Tensor | None = None  # [edge]; one where absent


def side_by_side(channels: Sequence[EdgeList]) -> EdgeList:
    """All C channels as one graph without edges between them, in which node i of channel c is number i C + c."""
    index = torch.cat([edges.edge_index * len(channels) + place for place, edges in enumerate(channels)], dim=1)
    if any(edges.edge_weight is None for edges in channels):
        return EdgeList(index)
    return EdgeList(index, torch.cat([edges.edge_weight for edges in channels if edges.edge_weight is not None]))


class EdgeTypeConv(nn.Module):
    """One hop per edge type, sum_t A_t X W_t, in one product and one aggregation.

    Args:
        in_channels: size of each input.
        out_channels: size of each output.
        num_types: T.
        aggregation: "sum", or "mean" over the neighbours of each type.

    Shapes:
        `[node, in_channels]` and one `EdgeList` per type -> `[node, out_channels]`.
    """

    def __init__(self, in_channels: int, out_channels: int, num_types: int, aggregation: Aggregation = "sum") -> None:
        super().__init__()
        self.num_types = num_types
        self.weight = nn.Parameter(torch.empty(in_channels, num_types * out_channels))
        self.aggregate = SimpleConv(aggregation)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for weight in self.weight.chunk(self.num_types, dim=1):
            nn.init.xavier_uniform_(weight)

    def forward(self, x: Tensor, channels: Sequence[EdgeList]) -> Tensor:
        mixed = (x @ self.weight).unflatten(1, (self.num_types, -1))
        return self.aggregate(mixed.flatten(0, 1), *side_by_side(channels)).unflatten(0, mixed.shape[:2]).sum(1)


class WithEdgeTypes(nn.Module):
    """A convolution of the simple graph plus one hop per edge type; without types, the convolution alone.

    All weights start as one Glorot matrix of the concatenation of their inputs: as many separate ones, added up, would
    let the states grow from layer to layer.

    Args:
        convolution: of the simple graph, one of PyG's.
        in_channels: size of each input.
        out_channels: size of each output.
        num_types: T.
        num_terms: how many products with a weight matrix the convolution adds up.
        aggregation: over the neighbours of each type.
        gain: of the initial weights.
    """

    def __init__(
        self,
        convolution: nn.Module,
        in_channels: int,
        out_channels: int,
        num_types: int,
        *,
        num_terms: int = 1,
        aggregation: Aggregation = "sum",
        gain: float = 1.0,
    ) -> None:
        super().__init__()
        self.simple = convolution
        self.typed = EdgeTypeConv(in_channels, out_channels, num_types, aggregation) if num_types else None
        self.bound = gain * math.sqrt(6 / ((num_terms + num_types) * in_channels + out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.simple.reset_parameters()  # type: ignore[operator]
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.uniform_(parameter, -self.bound, self.bound)

    def forward(self, x: Tensor, simple: Sequence[Any] | FormedOperators, types: Sequence[EdgeList] = ()) -> Tensor:
        """`simple` is what the convolution takes besides x; in padded blocks, the operators of all terms and types."""
        if isinstance(simple, FormedOperators):
            return formed_convolution(x, simple, *self._as_one_matrix())
        y = self.simple(x, *simple)
        return y if self.typed is None else y + self.typed(x, types)

    def _as_one_matrix(self) -> tuple[Tensor, Tensor]:
        """The weights of all terms, one below the other, and the bias."""
        weights = [weight for weight in self.simple.parameters() if weight.dim() == 2]
        (bias,) = (bias for bias in self.simple.parameters() if bias.dim() == 1)
        typed = None if self.typed is None else self.typed.weight
        return _OneMatrix.apply(typed, *weights), bias


class _OneMatrix(torch.autograd.Function):
    """`[out, in]` turned, then the blocks of `[in, type x out]`, one below the other.

    Gradients are turned back all at once; autograd would copy every one for itself.
    """

    @staticmethod
    def forward(ctx: Any, typed: Tensor | None, *weights: Tensor) -> Tensor:
        out_channels = weights[0].shape[0]
        ctx.num_weights, ctx.shape = len(weights), weights[0].shape
        blocks = () if typed is None else typed.split(out_channels, 1)
        return torch.cat([*(weight.T for weight in weights), *blocks])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        out_channels, in_channels = ctx.shape
        blocks = grads[0].view(-1, in_channels, out_channels)
        of_weights = blocks[: ctx.num_weights].mT.contiguous().unbind()
        of_typed = blocks[ctx.num_weights :].transpose(0, 1).flatten(1) if ctx.needs_input_grad[0] else None
        return of_typed, *of_weights


class MessageFunctions(nn.Module, ABC):
    """One function f_c per channel, whose messages are aggregated over the channel's edges, side by side.

    Shapes:
        `[node, channels]` and C `EdgeList` -> `[node, C * channels]`; weights of edges are not looked at.
    """

    def __init__(self, functions: Iterable[MLP], aggregation: Aggregation) -> None:
        super().__init__()
        self.functions = nn.ModuleList(functions)
        self.aggregation = checked_aggregation(aggregation)

    def reset_parameters(self) -> None:
        for function in self.functions:
            function.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, channels: Sequence[EdgeList]) -> Tensor:
        return self.along(channels)(x)

    @abstractmethod
    def along(self, channels: Sequence[EdgeList]) -> Messages:
        """From states to messages, for steps that repeat on the same graphs."""


class NodeMessages(MessageFunctions):
    """Messages f_c(x_j).

    Args:
        channels: size of the states and of the messages.
        num_channels: C, the simple graph and one per edge type.
        message_channels: hidden sizes of the f_c; none for a matrix.
        aggregation: "sum" or "mean".
    """

    def __init__(
        self, channels: int, num_channels: int, message_channels: Sequence[int] = (), aggregation: Aggregation = "sum"
    ) -> None:
        sizes = [channels, *message_channels, channels]
        bias = len(message_channels) > 0
        super().__init__((MLP(sizes, norm=None, bias=bias) for _ in range(num_channels)), aggregation)
        self.aggregate = SimpleConv(self.aggregation)

    def along(self, channels: Sequence[EdgeList]) -> Messages:
        index = side_by_side(channels).edge_index

        def messages(x: Tensor) -> Tensor:
            sent = torch.stack([function(x) for function in self.functions], dim=1)
            return self.aggregate(sent.flatten(0, 1), index).unflatten(0, sent.shape[:2]).flatten(1)

        return messages


class PairMessages(MessageFunctions):
    """Messages f_c([x_i, x_j]) of both ends of an edge; arguments as in `NodeMessages`."""

    def __init__(
        self, channels: int, num_channels: int, message_channels: Sequence[int] = (), aggregation: Aggregation = "sum"
    ) -> None:
        sizes = [2 * channels, *message_channels, channels]
        super().__init__((MLP(sizes, norm=None) for _ in range(num_channels)), aggregation)
        self.aggregate = SimpleConv(self.aggregation).aggr_module

    def along(self, channels: Sequence[EdgeList]) -> Messages:
        def messages(x: Tensor) -> Tensor:
            received = []
            for function, edges in zip(self.functions, channels, strict=True):
                source, target = edges.edge_index
                sent = function(torch.cat([x[target], x[source]], dim=-1))
                received.append(self.aggregate(sent, target, dim_size=len(x)))
            return torch.cat(received, dim=-1)

        return messages


def checked_aggregation(aggregation: Aggregation) -> Aggregation:
    if aggregation not in ("sum", "mean"):
        raise ValueError(f"aggregation must be 'sum' or 'mean', not {aggregation!r}")
    return aggregation
