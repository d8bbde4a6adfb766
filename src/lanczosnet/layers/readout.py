"""From node states to one vector per graph.

A readout is called with the states of ragged graphs, `[node, channel]` and the graph of each node, or through `padded`
with those of padded blocks, `[graph x node, channel]` and a mask `[graph, node]`: ones on nodes, zeros on padding.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.nn import aggr


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

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.gate = nn.Linear(in_channels, 1)
        self.linear = nn.Linear(in_channels, out_channels)
        self.pool = aggr.MeanAggregation()

    def reset_parameters(self) -> None:
        self.gate.reset_parameters()
        self.linear.reset_parameters()

    def forward(self, x: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        return self.pool(self._gated(x), batch, dim_size=num_graphs)

    def padded(self, x: Tensor, mask: Tensor) -> Tensor:
        return weighted_sum(self._gated(x), _shares(mask))

    def _gated(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.gate(x)) * self.linear(x)


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
    lstm: nn.LSTM = pool.lstm  # type: ignore[assignment]
    nodes = x.unflatten(0, mask.shape)
    padding = mask == 0
    hidden = cell = x.new_zeros(len(mask), lstm.hidden_size)
    found = x.new_zeros(len(mask), lstm.input_size)
    for _ in range(pool.processing_steps):  # type: ignore[arg-type]
        hidden, cell = torch.lstm_cell(found, (hidden, cell), *lstm.all_weights[0])
        energy = (nodes @ hidden.unsqueeze(-1)).squeeze(-1).masked_fill(padding, torch.finfo(x.dtype).min)
        found = torch.cat([hidden, weighted_sum(x, energy.softmax(1) * mask)], dim=1)
    return found


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
