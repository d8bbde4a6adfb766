"""GraphSAGE (Hamilton et al., NIPS 2017) with the mean aggregator."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import degree

from lanczosnet.affinity import Padding
from lanczosnet.backends.segments import index_within_segment
from lanczosnet.baselines.base import BaselineNetwork, CommonOptions, EdgeBatch, aggregation_block
from lanczosnet.baselines.edge_types import EdgeList
from lanczosnet.baselines.padded_operators import identity_block, operator_blocks
from lanczosnet.batching.padded import PaddedBatch


class GraphSAGE(BaselineNetwork):
    """X' = relu(X W + sum_c mean over sampled neighbours in channel c (X) W_c), rows scaled to length one.

    In training a new sample of at most `num_neighbors` neighbours is drawn per node, channel and forward pass, by
    torch's random numbers as dropout does it; in evaluation all neighbours are used. PyG's own `normalize` would scale
    the rows before the activation, the cited work does so after it; outputs per node are left as they are.

    Args:
        num_neighbors: neighbours sampled per node; all of them where there are fewer.
        normalize: scale hidden rows to length one.
        initial_gain: of the first weights, relative to Glorot's.
        *sizes, **common: as in `BaselineNetwork`.
    """

    def __init__(
        self,
        *sizes: int,
        num_neighbors: int = 500,
        normalize: bool = True,
        initial_gain: float = 1.0,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(*sizes, **common)
        if num_neighbors < 1:
            raise ValueError(f"num_neighbors must be at least 1, but is {num_neighbors}")
        self.num_neighbors = num_neighbors
        self.normalize = normalize
        self.convolutions = self.typed_convolutions(SAGEConv, num_terms=2, aggregation="mean", gain=initial_gain)

    def prepare(self, data: Any, *, validate: bool = True) -> EdgeBatch:
        inputs = super().prepare(data, validate=validate).with_channels(lambda edges: EdgeList(edges.edge_index))
        # The edge types are part of the simple graph, which therefore says whether anything is sampled.
        neighbors = degree(inputs.channels[0].edge_index[1], len(inputs.x), torch.long)
        return replace(inputs, is_crowded=bool((neighbors > self.num_neighbors).any()))

    @property
    def num_operators(self) -> int:
        return 2 + self.num_edge_types

    def blocks(self, inputs: EdgeBatch, padding: Padding) -> PaddedBatch | None:
        if inputs.is_crowded:  # a sample in every step
            return None
        simple, *types = (aggregation_block(edges, inputs, padding, "mean") for edges in inputs.channels)
        return operator_blocks(inputs.x, padding, [simple, identity_block(padding, simple.dtype), *types])

    def propagate(self, x: Tensor, inputs: EdgeBatch) -> Tensor:
        if self.training and inputs.is_crowded:
            inputs = inputs.with_channels(self._sampled)
        return super().propagate(x, inputs)

    def arguments(self, simple: EdgeList) -> Sequence[Any]:
        return simple[:1]

    def activate(self, x: Tensor) -> Tensor:
        x = x.relu()
        return nn.functional.normalize(x, dim=-1) if self.normalize else x

    def _sampled(self, edges: EdgeList) -> EdgeList:
        return EdgeList(edges.edge_index[:, sample_neighbors(edges.edge_index, self.num_neighbors)])


def sample_neighbors(edge_index: Tensor, num_neighbors: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Which edges to keep, `[edge]`: at most `num_neighbors` into every node, drawn without replacement."""
    order = torch.randperm(edge_index.shape[1], generator=generator, device=edge_index.device)
    target = edge_index[1, order]
    place, _ = index_within_segment(target, int(target.max()) + 1 if len(target) else 0)
    keep = torch.empty_like(order, dtype=torch.bool)
    keep[order] = place < num_neighbors
    return keep
