"""The door of the Lanczos models: a PyG `Data` or `Batch` is checked and laid out, once.

Many small graphs become a padded dense batch `[component, node, channel]`; a large one stays sparse `[node, channel]`.
The convolution never crosses components, so components, not graphs, are the unit of the dense layout.
"""

from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lanczosnet.affinity import (
    BlockLayout,
    Operator,
    SparseOperator,
    adjacency,
    adjacency_by_type,
    block_layout,
    connected_components,
    dense_blocks,
    normalized,
)
from lanczosnet.affinity.segments import segment_sum
from lanczosnet.krylov import RitzPairs
from lanczosnet.layers import EdgeTypeOperators, GraphSpectrum, NodeEncoder
from lanczosnet.layers.ada_lanczos_conv import AdaptiveSpectrum, ComponentPlan
from lanczosnet.layers.sparse_features import sparse_where_it_pays

# Components of at most this many nodes are multiplied as dense blocks.
DENSE_UP_TO = 64
AGAIN = "apply AddRitzPairs again after changing a graph"
PAIR_TOLERANCE = 1e-3  # above rounding; one edge more in a very large graph may change its pairs by less


class GraphInputs(NamedTuple):
    """A graph, or a batch of them, as the Lanczos models see it."""

    x: Tensor  # node features or types, [node, ...]; see `with_sparse_features`
    adjacency: SparseOperator
    component: Tensor  # [node]
    num_components: int
    layout: BlockLayout | None  # of the dense batch; None where the graph stays sparse
    edge_types: EdgeTypeOperators | None
    batch: Tensor  # [node]
    num_graphs: int
    ritz: tuple[Tensor, Tensor] | None  # values [component, step] and vectors [node, step], where the data brings them
    plan: ComponentPlan | None = None  # of a graph that stays sparse, for AdaLanczosNet
    start: Tensor | None = None  # its Lanczos start vector, in the layout; ones where absent
    spectrum: GraphSpectrum | AdaptiveSpectrum | None = None  # where nothing of it is learned

    def with_sparse_features(self) -> Self:
        """Features without their zeros, for a first layer that does nothing but multiply them, where that is faster."""
        return self._replace(x=sparse_where_it_pays(self.x)) if self.layout is None else self  # type: ignore[arg-type]

    def arranged(self, operator: SparseOperator) -> Operator:
        """The operator in the layout that was chosen."""
        return operator if self.layout is None else dense_blocks(operator, self.layout)

    def enter(self, signal: Tensor) -> Tensor:
        """`[node, channel]` -> the layout's."""
        return signal if self.layout is None else self.layout.pad(signal)

    def leave(self, signal: Tensor) -> Tensor:
        """The layout's -> `[node, channel]`."""
        return signal if self.layout is None else self.layout.unpad(signal)

    @property
    def mask(self) -> Tensor:
        """Ones on the nodes of the dense layout, zeros on padding."""
        assert self.layout is not None
        return self.layout.mask.to(self.adjacency.dtype)

    def typed_blocks(self) -> Tensor:
        """S of every edge type in padded blocks, `[graph, node, type, node]`."""
        if self.edge_types is None:
            mask = self.mask
            return mask.new_zeros(*mask.shape, 0, mask.shape[1])
        return self.edge_types.stacked()


def as_data(
    x: Any,
    edge_index: Tensor | None,
    edge_weight: Tensor | None,
    batch: Tensor | None,
    edge_attr: Tensor | None,
    num_edge_types: int,
) -> Any:
    """The arguments of a model as one object: a `Data` of tensors, or `x` itself where it is a whole graph."""
    if edge_index is None:
        if isinstance(x, Tensor):
            raise ValueError("edge_index is missing: call model(x, edge_index), or model(data) with a PyG Data")
        if not (edge_weight is None and batch is None and edge_attr is None):
            raise ValueError("a Data brings its own edge_weight, batch and edge_attr: set them there, not as arguments")
        return x
    if edge_attr is not None and num_edge_types == 0:
        raise ValueError("edge_attr holds edge types here, and the model has none: set num_edge_types, or leave it out")
    return Data(x=x, edge_index=edge_index, edge_weight=edge_weight, batch=batch, edge_attr=edge_attr)


@torch.compiler.disable
def type_of(network: nn.Module) -> torch.dtype:
    """What a network computes in, and its operators and Ritz pairs with it."""
    return next(network.parameters()).dtype


@torch.compiler.disable
def graph_inputs(
    data: Any,
    encoder: NodeEncoder,
    num_edge_types: int = 0,
    *,
    validate: bool = True,
    by_graph: bool = False,
    dtype: torch.dtype | None = None,
) -> GraphInputs:
    """Read what the Lanczos models use of `data`: x, edge_index, edge_weight, edge_type or edge_attr, batch.

    Laid out component by component, or graph by graph where `by_graph` says so. Operators and Ritz pairs are of type
    `dtype`; where absent, of that of the features but never half precision, or with node types of the weights' own.
    """
    x = node_input(data, encoder, validate=validate)
    num_nodes = len(x)
    batch, num_graphs = graph_of_node(data)
    weight = getattr(data, "edge_weight", None)
    if dtype is None and x.is_floating_point():
        dtype = torch.promote_types(x.dtype, torch.float32)
    A = adjacency(
        data.edge_index,
        weight,
        num_nodes=num_nodes,
        batch=batch,
        num_graphs=None if batch is None else num_graphs,
        dtype=dtype,
        validate=validate,
    )
    assert isinstance(A, SparseOperator)
    component, num_components = _components(data, A, validate)
    layout: BlockLayout | None
    layout = block_layout(data.batch, num_graphs) if by_graph else block_layout(component, num_components)
    if layout.width > DENSE_UP_TO or num_nodes == 0:
        layout = None
    inputs = GraphInputs(
        x=x,
        adjacency=A,
        component=component,
        num_components=num_components,
        layout=layout,
        edge_types=None,
        batch=batch if batch is not None else torch.zeros(num_nodes, dtype=torch.long, device=x.device),
        num_graphs=num_graphs,
        ritz=_ritz_pairs(data, num_nodes, num_components, A.dtype),
    )
    return inputs._replace(edge_types=_edge_types(data, num_edge_types, inputs))


def node_input(data: Any, encoder: NodeEncoder, *, validate: bool = True) -> Tensor:
    """The node features or types, checked for what will encode them."""
    x = data.x
    if x is None:
        raise ValueError("the data has no x: give every node features (floating) or a type (integer)")
    if validate and x.is_floating_point() and not bool(torch.isfinite(x).all()):
        node = (~torch.isfinite(x)).nonzero()[0].tolist()
        raise ValueError(f"node features must be finite, but x{node} is {x[tuple(node)].item()}: impute or drop it")
    if validate:
        encoder.check_types(x)
    return x


def graph_of_node(data: Any) -> tuple[Tensor | None, int]:
    """Which graph each node belongs to, None for one graph, and how many graphs there are."""
    batch = getattr(data, "batch", None)
    return batch, 1 if batch is None else int(getattr(data, "num_graphs", 0)) or int(batch.max()) + 1


def edge_types_of(data: Any, num_edge_types: int) -> Tensor:
    """The data's edge_type `[edge]` or edge_attr `[edge, type]`."""
    edge_type = getattr(data, "edge_type", None)
    edge_type = getattr(data, "edge_attr", None) if edge_type is None else edge_type
    if edge_type is None:
        raise ValueError(
            f"this model has {num_edge_types} edge types, but the data has neither edge_type [edge] nor "
            f"edge_attr [edge, {num_edge_types}]"
        )
    return edge_type


def _components(data: Any, A: SparseOperator, validate: bool) -> tuple[Tensor, int]:
    """The component of every node: from the data, where `AddRitzPairs` left it, or worked out."""
    first_node = getattr(data, "component_index", None)
    if first_node is None:
        return connected_components(A)
    if validate and not _are_components(first_node, A):
        raise ValueError(f"the components that the data carries are not those of its graph: {AGAIN}")
    is_first = first_node == torch.arange(len(first_node), device=first_node.device)
    return (is_first.cumsum(0) - 1)[first_node], int(is_first.sum())


def _are_components(first_node: Tensor, A: SparseOperator) -> bool:
    """Whether every node names one of its own component, and no edge leads from one to another."""
    num_nodes = A.num_nodes
    if len(first_node) != num_nodes or (num_nodes and int(first_node.max()) >= num_nodes):
        return False
    is_edge = A.values.detach() != 0
    leads_out = (first_node[A.row.long()] != first_node[A.column.long()]) & is_edge
    return torch.equal(first_node[first_node], first_node) and not bool(leads_out.any())


def check_pairs(pairs: RitzPairs, S: SparseOperator) -> None:
    """Those that the data carries must be of its graph: a Ritz value is v^T S v."""
    assert pairs.segment is not None
    quotient = segment_sum(pairs.vectors * (S @ pairs.vectors), pairs.segment, len(pairs.values))
    if not torch.allclose(quotient, pairs.values, rtol=0.0, atol=PAIR_TOLERANCE):
        raise ValueError(f"the Ritz pairs that the data carries are not those of its graph: {AGAIN}")


def _ritz_pairs(data: Any, num_nodes: int, num_components: int, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
    values, vectors = getattr(data, "ritz_values", None), getattr(data, "ritz_vectors", None)
    if values is None or vectors is None:
        return None
    if len(vectors) != num_nodes or len(values) != num_components:
        raise ValueError(
            f"the data carries Ritz pairs of {len(vectors)} nodes and {len(values)} components, but has "
            f"{num_nodes} and {num_components}: {AGAIN}"
        )
    return values.to(dtype), vectors.to(dtype)


def rank_of(vectors: Tensor, component: Tensor, num_components: int) -> Tensor:
    """How many Ritz pairs each component has: the columns in which any of its nodes is not zero."""
    return (segment_sum(vectors.abs(), component, num_components) > 0).sum(1)


def _edge_types(data: Any, num_edge_types: int, inputs: GraphInputs) -> EdgeTypeOperators | None:
    if num_edge_types == 0:
        return None
    edge_index, edge_type = data.edge_index, edge_types_of(data, num_edge_types)
    weight = getattr(data, "edge_weight", None)
    if weight is not None:  # an edge of weight zero is none, of whatever type: it may lie between components
        exists = weight.detach() != 0
        edge_index, edge_type = edge_index[:, exists], edge_type[exists]
    by_type = adjacency_by_type(
        edge_index, edge_type, num_edge_types, num_nodes=len(inputs.x), dtype=inputs.adjacency.dtype
    )
    operators = [normalized(A, validate=False) for A in by_type if isinstance(A, SparseOperator)]
    return EdgeTypeOperators([inputs.arranged(S) for S in operators])
