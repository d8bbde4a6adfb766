"""From node states to one vector per graph."""

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
        return self.pool(torch.sigmoid(self.gate(x)) * self.linear(x), batch, dim_size=num_graphs)


def _set2set(in_channels: int, out_channels: int) -> nn.Module:
    return PooledReadout(in_channels, out_channels, aggr.Set2Set(in_channels, processing_steps=10), 2 * in_channels)


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
