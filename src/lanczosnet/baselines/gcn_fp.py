"""GCN-FP, convolutions for molecular fingerprints (Duvenaud et al., NIPS 2015)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import torch
from torch import nn
from torch_geometric.nn import GCNConv, MFConv
from torch_geometric.utils import add_remaining_self_loops

from lanczosnet.affinity import Padding
from lanczosnet.baselines.base import BaselineNetwork, CommonOptions, EdgeBatch
from lanczosnet.baselines.edge_types import EdgeList
from lanczosnet.batching.padded import PaddedBatch

# About one over the number of states that a sum in a molecule adds up: with Glorot's weights as they are, the states
# grow threefold per layer, and over seven layers the gate of the readout saturates before anything is learned.
INITIAL_GAIN = 1 / 3


class GCNFP(BaselineNetwork):
    """X' = relu(sum_c (A_c + I) X W_c): neighbours and the node itself are added up, unweighted.

    The comparison used one weight for all degrees, where the cited work has one per degree: `max_degree` gives that,
    by PyG's MFConv, which moreover tells the node itself from its neighbours.

    Args:
        max_degree: weights per degree in the simple graph, up to this one, which larger ones share; 0 for none.
        *sizes, **common: as in `BaselineNetwork`.
    """

    def __init__(
        self,
        *sizes: int,
        max_degree: int = 0,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(*sizes, **common)
        if max_degree < 0:
            raise ValueError(f"max_degree must be 0 (one weight for all degrees) or more, but is {max_degree}")
        self.max_degree = max_degree

        def convolution(inside: int, outside: int) -> nn.Module:
            return MFConv(inside, outside, max_degree) if max_degree else GCNConv(inside, outside, normalize=False)

        self.convolutions = self.typed_convolutions(convolution, num_terms=2 if max_degree else 1, gain=INITIAL_GAIN)

    def prepare(self, data: Any, *, validate: bool = True) -> EdgeBatch:
        inputs = super().prepare(data, validate=validate)
        looped = inputs.with_channels(lambda edges: _with_self_loops(edges, len(inputs.x)))
        return replace(looped, channels=[inputs.channels[0], *looped.channels[1:]]) if self.max_degree else looped

    def blocks(self, inputs: EdgeBatch, padding: Padding) -> PaddedBatch | None:
        return None if self.max_degree else super().blocks(inputs, padding)

    def arguments(self, simple: EdgeList) -> Sequence[Any]:
        return simple[:1] if self.max_degree else simple


def _with_self_loops(edges: EdgeList, num_nodes: int) -> EdgeList:
    """A + I with all weights one."""
    assert edges.edge_weight is not None
    index, _ = add_remaining_self_loops(edges.edge_index, num_nodes=num_nodes)
    return EdgeList(index, torch.ones(index.shape[1], dtype=edges.edge_weight.dtype, device=index.device))
