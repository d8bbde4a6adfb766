"""ChebyNet (Defferrard et al., NIPS 2016)."""

from dataclasses import replace
from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch_geometric.nn import ChebConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import remove_self_loops

from lanczosnet.affinity import DenseOperator, Padding
from lanczosnet.baselines.base import BaselineNetwork, CommonOptions, EdgeBatch, aggregation_block
from lanczosnet.baselines.edge_types import EdgeList
from lanczosnet.baselines.gcn import symmetric_normalized
from lanczosnet.baselines.padded_operators import identity_block, operator_blocks
from lanczosnet.batching.padded import PaddedBatch
from lanczosnet.filters import chebyshev_sum, chebyshev_terms


class ChebyNet(BaselineNetwork):
    """X' = relu(sum_k T_k(L - I) X W_k + sum_t S_t X W_t): Chebyshev polynomials of the simple graph's Laplacian
    L = I - D^-1/2 A D^-1/2 (its largest eigenvalue bounded by 2), and one hop per edge type t.

    Args:
        polynomial_order: the highest k (PyG's `K` counts the terms, one more).
        self_loops: L of A + I instead of A, as in the Lanczos networks' S.
        initial_gain: of the first weights, relative to Glorot's.
        *sizes, **common: as in `BaselineNetwork`.
    """

    def __init__(
        self,
        *sizes: int,
        polynomial_order: int = 5,
        self_loops: bool = False,
        initial_gain: float = 1.0,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(*sizes, **common)
        if polynomial_order < 0:
            raise ValueError(f"polynomial_order must be 0 or more, but is {polynomial_order}")
        self.self_loops = self_loops
        num_terms = self.num_terms = polynomial_order + 1
        self.convolutions = self.typed_convolutions(
            lambda *width: ScaledChebConv(*width, K=num_terms), num_terms=num_terms, gain=initial_gain
        )

    def prepare(self, data: Any, *, validate: bool = True) -> EdgeBatch:
        inputs = super().prepare(data, validate=validate)
        simple, *types = inputs.channels
        num_nodes = len(inputs.x)
        typed = [symmetric_normalized(edges, num_nodes) for edges in types]
        return replace(inputs, channels=[_scaled_laplacian(simple, num_nodes, self.self_loops), *typed])

    @property
    def num_operators(self) -> int:
        return self.num_terms + self.num_edge_types

    def blocks(self, inputs: EdgeBatch, padding: Padding) -> PaddedBatch | None:
        scaled, *hops = (aggregation_block(edges, inputs, padding) for edges in inputs.channels)
        identity = identity_block(padding, scaled.dtype)
        terms = chebyshev_terms(DenseOperator(scaled + identity), identity, self.num_terms)
        return operator_blocks(inputs.x, padding, [*terms, *hops])


class ScaledChebConv(ChebConv):
    """PyG's layer on weights of edges that are L - I already, which it would work out in every call.

    Where it has fewer outputs than inputs the weights come first, and outputs are sent along the edges: PyG sends all
    inputs, thousands of words on the citation networks.
    """

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, *_: Any, **__: Any) -> Tensor:
        if self.in_channels <= self.out_channels:
            return super().forward(x, edge_index, edge_weight)
        weights = torch.cat([linear.weight for linear in self.lins])
        signals = nn.functional.linear(x, weights).chunk(len(self.lins), -1)
        y = chebyshev_sum(lambda signal: self.propagate(edge_index, x=signal, norm=edge_weight), signals)
        return y if self.bias is None else y + self.bias

    def __norm__(self, edge_index: Tensor, num_nodes: int | None, edge_weight: Tensor, *_: Any, **__: Any) -> EdgeList:
        return EdgeList(edge_index, edge_weight)


def _scaled_laplacian(edges: EdgeList, num_nodes: int, self_loops: bool) -> EdgeList:
    """L - I = -D^-1/2 A D^-1/2, or of A + I. Two bounds L, so that no graph's filter depends on its batch."""
    index, weight = remove_self_loops(*edges)
    assert weight is not None
    index, weight = gcn_norm(index, weight, num_nodes, add_self_loops=self_loops, dtype=weight.dtype)
    return EdgeList(index, -weight)
