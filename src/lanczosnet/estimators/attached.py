"""New rows beside a training graph: they see it, and it does not see them, nor do they see one another.

What is predicted for a row then depends on nothing but the row and the training data. With B the edges of new rows,
D their self-loops and S of the training graph, the operator is [[S, 0], [B, D]], and powers of it leave S as it is.
A long scale V f(R) V^T X is extended to a new row as the mean over its neighbours.
"""

from copy import copy
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor, nn
from torch_geometric.data import Data

from lanczosnet.affinity import SparseOperator, adjacency, connected_components, normalized
from lanczosnet.batching.graph_spectrum import GraphSpectrum
from lanczosnet.batching.sparse import SparseBatch
from lanczosnet.filters import SpectralBasis, spectral_basis
from lanczosnet.krylov import RitzPairs, component_ritz_pairs


@dataclass(frozen=True)
class TrainingGraph:
    """S of the training rows in float64, and the Ritz pairs of its components."""

    x: Tensor  # [row, feature]
    S: SparseOperator
    pairs: RitzPairs
    n_neighbors: int

    @classmethod
    def of(cls, data: Data, num_steps: int, n_neighbors: int) -> "TrainingGraph":
        S = cast(SparseOperator, normalized(adjacency(data.edge_index, num_nodes=data.num_nodes, dtype=torch.float64)))
        pairs = component_ritz_pairs(S, num_steps, components=connected_components(S))
        return cls(data.x.double(), S, pairs, n_neighbors)

    @torch.no_grad()
    def outputs(self, network: nn.Module, x: Tensor) -> Tensor:
        """What a network of float64 gives for new rows, `[row, channel]`."""
        neighbors = self._neighbors(x)
        degree = self._degree()[neighbors]
        own = neighbors.shape[1] + 1  # the degree of a new row, itself counted
        basis = _ExtendedBasis(spectral_basis(self.pairs), len(self.x), neighbors, (own / degree).sqrt() / (own - 1))
        operator = self._extended(neighbors, (own * degree).rsqrt(), 1.0 / own)
        return network(_batch(torch.cat([self.x, x.double()]), operator, basis))[len(self.x) :]

    def _extended(self, neighbors: Tensor, weights: Tensor, loop: float) -> SparseOperator:
        """[[S, 0], [B, D]], with `weights` at the neighbours of new rows."""
        size, (count, width) = len(self.x), neighbors.shape
        rows = torch.arange(size, size + count)
        known = torch.stack([self.S.row.long(), self.S.column.long()])
        new = torch.stack([rows.repeat_interleave(width), neighbors.flatten()])
        edges = torch.cat([known, new, rows.expand(2, -1)], 1)
        values = torch.cat([self.S.values, weights.flatten(), self.S.values.new_full((count,), loop)])
        extended = adjacency(edges, values, num_nodes=size + count, directed=True, validate=False)
        return cast(SparseOperator, extended)

    def _degree(self) -> Tensor:
        """Of every training row, itself counted: 1 / S_ii."""
        return self.S.values[self.S.diagonal_position].reciprocal()

    def _neighbors(self, x: Tensor) -> Tensor:
        """The nearest training rows, `[row, neighbour]`."""
        search = NearestNeighbors(n_neighbors=min(self.n_neighbors, len(self.x))).fit(self.x.numpy())
        found = search.kneighbors(x.double().numpy(), return_distance=False)
        return torch.from_numpy(found.astype(np.int64))


@torch.no_grad()
def all_outputs(network: nn.Module, data: Data) -> Tensor:
    """What a network of float64 gives for every node of its training graph."""
    graph = copy(data)
    graph.x = data.x.double() if data.x.is_floating_point() else data.x
    return network(graph)


class _ExtendedBasis(SpectralBasis):
    """V of the training rows, and below it the mean of each new row's neighbours, corrected for degrees."""

    def __init__(self, trained: SpectralBasis, size: int, neighbors: Tensor, weights: Tensor) -> None:
        self.trained, self.size, self.neighbors, self.weights = trained, size, neighbors, weights
        self.values = trained.values

    def project(self, signal: Tensor) -> Tensor:
        return self.trained.project(signal[: self.size])

    def lift(self, coefficients: Tensor) -> Tensor:
        lifted = self.trained.lift(coefficients)
        return torch.cat([lifted, (self.weights.unsqueeze(-1) * lifted[self.neighbors]).sum(1)])


def _batch(x: Tensor, operator: SparseOperator, basis: SpectralBasis) -> SparseBatch:
    nothing = torch.zeros(len(x), dtype=torch.long)
    return SparseBatch(
        x=x,
        adjacency=operator,
        component=nothing,
        num_components=1,
        padding=None,
        batch=nothing,
        num_graphs=1,
        ritz=None,
        spectrum=GraphSpectrum(operator, basis),
    )
