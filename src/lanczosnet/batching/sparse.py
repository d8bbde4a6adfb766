"""Graphs as they come: ragged, or in padded blocks of their components."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from lanczosnet.affinity import Operator, Padding, SparseOperator, adjacency_by_type, dense_blocks, normalized
from lanczosnet.batching.edge_features import EdgeFeatures
from lanczosnet.batching.graph_batch import GraphBatch
from lanczosnet.batching.graph_spectrum import EdgeTypeOperators
from lanczosnet.batching.sparse_features import sparse_where_it_pays


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseBatch(GraphBatch):
    """A graph, or a batch of them, as the Lanczos models see it.

    Many small graphs are multiplied as a padded dense batch `[component, node, channel]`; a large one stays sparse
    `[node, channel]`. The convolution never crosses components, so components are the unit of the dense layout.
    """

    x: Any  # node features or types, [node, ...]; see `with_sparse_features`
    adjacency: Any  # a `SparseOperator`, or a `ShardedOperator`
    component: Tensor  # [node]
    num_components: int
    num_shared: int = 0  # of the components, those that lie in several processes, which come first
    padding: Padding | None  # of the dense batch; None where the graph stays sparse
    batch: Tensor  # [node]
    num_graphs: int
    ritz: tuple[Tensor, Tensor] | None  # values [component, step] and vectors [node, step], where the data brings them
    edge_types: EdgeTypeOperators | None = None
    plan: Any = None  # the `ComponentPlan` of a graph that stays sparse, for AdaLanczosNet
    start: Tensor | None = None  # its Lanczos start vector, in the layout; ones where absent
    spectrum: Any = None  # where nothing of it is learned
    descriptors: Tensor | None = None  # [graph, descriptor]
    edge_features: EdgeFeatures | None = None

    def with_sparse_features(self) -> Self:
        """Features without their zeros, for a first layer that does nothing but multiply them, where that is faster."""
        return replace(self, x=sparse_where_it_pays(self.x)) if self.padding is None else self

    def operator(self, operator: Any) -> Operator:
        """The operator in the layout that was chosen."""
        return operator if self.padding is None else dense_blocks(operator, self.padding)

    def with_gates(self, spectra: Sequence[Any], gates: Callable[[Tensor], Tensor]) -> list[Any]:
        """What convolutions see, with an edge type for every weight that `gates` makes of an edge's numbers."""
        assert self.edge_features is not None
        gated = self.edge_features.gated(gates(self.edge_features.values).to(self.adjacency.dtype))
        held = [] if self.edge_types is None else self.edge_types.operators
        types = EdgeTypeOperators([*held, *(self.operator(operator) for operator in gated)])
        return [replace(spectrum, edge_types=types) for spectrum in spectra]

    def pad(self, signal: Tensor) -> Tensor:
        return signal if self.padding is None else self.padding.pad(signal)

    def unpad(self, signal: Tensor) -> Tensor:
        return signal if self.padding is None else self.padding.unpad(signal)

    def spectra(self, network: Any, features: Tensor) -> Sequence[Any]:
        spectrum = network.spectrum(self, features) if self.spectrum is None else self.spectrum
        return [spectrum] * len(network.convolutions)

    @property
    def mask(self) -> Tensor:
        """Ones on the nodes of the dense layout, zeros on padding."""
        assert self.padding is not None
        return self.padding.mask.to(self.adjacency.dtype)

    def typed_blocks(self) -> Tensor:
        """S of every edge type in padded blocks, `[graph, node, type, node]`."""
        if self.edge_types is None:
            mask = self.mask
            return mask.new_zeros(*mask.shape, 0, mask.shape[1])
        return self.edge_types.stacked()


def operators_by_type(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    edge_type: Tensor,
    num_types: int,
    num_nodes: int,
    dtype: torch.dtype,
) -> list[SparseOperator]:
    """S of every edge type."""
    if edge_weight is not None:  # an edge of weight zero is none, of whatever type: it may lie between components
        exists = edge_weight.detach() != 0
        edge_index, edge_type = edge_index[:, exists], edge_type[exists]
    by_type = adjacency_by_type(edge_index, edge_type, num_types, num_nodes=num_nodes, dtype=dtype)
    return [normalized(A, validate=False) for A in by_type if isinstance(A, SparseOperator)]
