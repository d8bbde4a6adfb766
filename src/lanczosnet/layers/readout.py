"""From node states to one vector per graph.

A readout is called with the states of ragged graphs, `[node, channel]` and the graph of each node, or through `padded`
with those of padded blocks, `[graph x node, channel]` and a mask `[graph, node]`: ones on nodes, zeros on padding.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.nn import aggr

from lanczosnet.layers.tied_linear import ALIGNED_TO, TiedLinear, lstm_cell

FARTHEST = 10.0  # deviations from the mean that a descriptor may have
NOTHING = 1e30  # the deviation of a descriptor that is the same in all training graphs: nothing is known of others


class PooledReadout(nn.Module):
    """Pool the node states, then a linear map; the pooling is one of PyG's aggregations."""

    def __init__(self, in_channels: int, out_channels: int, pool: nn.Module, pooled_channels: int) -> None:
        super().__init__()
        self.pool = pool
        self.linear = nn.Linear(pooled_channels, out_channels)

    def reset_parameters(self) -> None:
        self.pool.reset_parameters()  # type: ignore[operator]
        self.linear.reset_parameters()

    def forward(self, x: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """`[node, in_channels]` -> `[graph, out_channels]`."""
        return self.linear(self.pool(x, batch, dim_size=num_graphs))

    def padded(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.linear(_PADDED[type(self.pool)](self.pool, x, mask))


class GatedMeanReadout(nn.Module):
    """mean over nodes of sigmoid(a(x)) * (W x + b): the readout of the published QM8 models. Empty graphs give zero."""

    nothing: Tensor  # as many rows of zeros as align the others

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.gate = nn.Linear(in_channels, 1)
        self.linear = nn.Linear(in_channels, out_channels)
        self.pool = aggr.MeanAggregation()
        aligned = torch.zeros(-(out_channels + 1) % ALIGNED_TO, in_channels)
        self.register_buffer("nothing", aligned, persistent=False)

    def reset_parameters(self) -> None:
        self.gate.reset_parameters()
        self.linear.reset_parameters()

    def forward(self, x: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        return self.pool(self._gated(x), batch, dim_size=num_graphs)

    def padded(self, x: Tensor, mask: Tensor) -> Tensor:
        return weighted_sum(self._gated(x), _shares(mask))

    def gate_and_values(self, x: Tensor) -> Tensor:
        """Values, gate, and as many zeros as align the rows, by one product; for the fused form of `padded`."""
        weight = torch.cat([self.linear.weight, self.gate.weight, self.nothing])
        bias = torch.cat([self.linear.bias, self.gate.bias, self.nothing[:, 0]])
        return nn.functional.linear(x, weight, bias)

    def _gated(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.gate(x)) * self.linear(x)


class GraphHead(nn.Module):
    """From a graph's vector and its descriptors to outputs: GELU, a hidden layer, and a linear map.

    Descriptors are standardised by the training graphs (`set_scale`), and cut off where they are far outside.

    Args:
        in_channels: of the graph's vector.
        descriptor_channels: of the descriptors; there may be none.
        hidden_channels: of the hidden layer, which is the graph's learned fingerprint.
        out_channels: of the outputs.
        dropout: before both linear maps.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self, in_channels: int, descriptor_channels: int, hidden_channels: int, out_channels: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.hidden = nn.Linear(in_channels + descriptor_channels, hidden_channels)
        self.output = nn.Linear(hidden_channels, out_channels)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mean", torch.zeros(descriptor_channels))
        self.register_buffer("deviation", torch.ones(descriptor_channels))

    def reset_parameters(self) -> None:
        self.hidden.reset_parameters()
        self.output.reset_parameters()

    def set_scale(self, descriptors: Tensor) -> None:
        """Standardise by these descriptors, `[graph, descriptor]`; NaN where unknown.

        Flags (0 and 1) are not made larger, however rare they are, and what is always the same counts for nothing.
        """
        known = ~descriptors.isnan()
        count = known.sum(0).clamp(min=1)
        values = torch.where(known, descriptors.double(), 0.0)
        mean = values.sum(0) / count
        variance = torch.where(known, values - mean, 0.0).square().sum(0) / count
        is_flag = ((values == 0) | (values == 1)).all(0)
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(variance > 0, torch.where(is_flag, 1.0, variance.sqrt()), NOTHING))

    def fingerprint(self, x: Tensor, descriptors: Tensor | None) -> Tensor:
        """`[graph, in_channels]` and `[graph, descriptor]` -> `[graph, hidden_channels]`."""
        x = nn.functional.gelu(x)
        if len(self.mean):
            if descriptors is None or descriptors.shape[1:] != self.mean.shape:
                raise ValueError(f"every graph needs {len(self.mean)} descriptors, [1, {len(self.mean)}]")
            scaled = ((descriptors.to(x.dtype) - self.mean) / self.deviation).nan_to_num(0.0)
            x = torch.cat([x, scaled.clamp(-FARTHEST, FARTHEST)], -1)
        return nn.functional.gelu(self.hidden(self.dropout(x)))

    def forward(self, x: Tensor, descriptors: Tensor | None = None) -> Tensor:
        return self.output(self.dropout(self.fingerprint(x, descriptors)))


def weighted_sum(x: Tensor, weight: Tensor) -> Tensor:
    """`[graph x node, channel]` and `[graph, node]` -> `[graph, channel]`."""
    return (weight.to(x.dtype).unsqueeze(1) @ x.unflatten(0, weight.shape)).squeeze(1)


def _shares(mask: Tensor) -> Tensor:
    """What every node counts in the mean over its graph."""
    return mask / mask.sum(1, keepdim=True).clamp(min=1)


def _set2set(in_channels: int, out_channels: int) -> nn.Module:
    return PooledReadout(in_channels, out_channels, aggr.Set2Set(in_channels, processing_steps=10), 2 * in_channels)


def _padded_set2set(pool: nn.Module, x: Tensor, mask: Tensor) -> Tensor:
    """PyG's `Set2Set` with its weights, one step of its LSTM at a time."""
    gates = _tied_gates(pool.lstm)  # type: ignore[arg-type]
    nodes = (x * mask.flatten().unsqueeze(1).to(x.dtype)).unflatten(0, mask.shape)
    compare, add_up = TiedLinear([nodes.mT]), TiedLinear([nodes])
    is_padding = (mask == 0).to(torch.promote_types(x.dtype, torch.get_default_dtype()))
    penalty = torch.finfo(x.dtype).min * is_padding
    hidden = cell = found = x.new_zeros(len(mask), x.shape[1])
    for _ in range(pool.processing_steps):  # type: ignore[arg-type]
        hidden, cell = lstm_cell(gates(hidden, found), cell)
        found = add_up((compare(hidden) + penalty).softmax(1))
    return torch.cat([hidden, found], dim=1)


def _tied_gates(cell: nn.LSTM) -> TiedLinear:
    """From the hidden state, which an LSTM sees as the first half of its input too, and what was found."""
    of_input, of_hidden, bias, other_bias = cell.all_weights[0]
    weight = of_input + torch.nn.functional.pad(of_hidden, (0, of_input.shape[1] - of_hidden.shape[1]))
    return TiedLinear([weight.T.unsqueeze(0)], [(bias + other_bias).unsqueeze(0)])


_PADDED: dict[type[nn.Module], Callable[[nn.Module, Tensor, Tensor], Tensor]] = {
    aggr.SumAggregation: lambda _, x, mask: weighted_sum(x, mask),
    aggr.MeanAggregation: lambda _, x, mask: weighted_sum(x, _shares(mask)),
    aggr.Set2Set: _padded_set2set,
}

READOUTS: dict[str, Callable[[int, int], nn.Module]] = {
    "mean": lambda channels, out: PooledReadout(channels, out, aggr.MeanAggregation(), channels),
    "sum": lambda channels, out: PooledReadout(channels, out, aggr.SumAggregation(), channels),
    "gated": GatedMeanReadout,
    "set2set": _set2set,
}


def readout(name: str, in_channels: int, out_channels: int) -> nn.Module:
    """A readout by name."""
    if name not in READOUTS:
        raise ValueError(f"unknown readout {name!r}: choose one of {', '.join(READOUTS)}")
    return READOUTS[name](in_channels, out_channels)
