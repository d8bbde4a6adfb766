"""A PyG `Data` or `Batch` is checked and laid out, once: here alone is decided whether a graph stays sparse."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from lanczosnet.affinity import Padding, SparseOperator, adjacency, connected_components, padding_of
from lanczosnet.backends.registry import static_shapes
from lanczosnet.backends.segments import segment_sum
from lanczosnet.batching.chunks import row_ranges
from lanczosnet.batching.edge_features import edge_features
from lanczosnet.batching.graph_spectrum import EdgeTypeOperators
from lanczosnet.batching.host_features import HostFeatures
from lanczosnet.batching.shard import ShardData
from lanczosnet.batching.sparse import SparseBatch, operators_by_type
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.krylov import RitzPairs

# Components of at most this many nodes are multiplied as dense blocks.
DENSE_UP_TO = 64
CHECKED_AT_ONCE = 2**24  # features
AGAIN = "apply AddRitzPairs again after changing a graph"
PAIR_TOLERANCE = 1e-3  # above rounding; one edge more in a very large graph may change its pairs by less


def as_data(
    x: Any,
    edge_index: Tensor | None,
    edge_weight: Tensor | None,
    batch: Tensor | None,
    edge_attr: Tensor | None,
    num_edge_types: int,
    edge_channels: int = 0,
) -> Any:
    """The arguments of a model as one object: a `Data` of tensors, or `x` itself where it is a whole graph."""
    if edge_index is None:
        if isinstance(x, Tensor):
            raise ValueError("edge_index is missing: call model(x, edge_index), or model(data) with a PyG Data")
        if not (edge_weight is None and batch is None and edge_attr is None):
            raise ValueError("a Data brings its own edge_weight, batch and edge_attr: set them there, not as arguments")
        return x
    if edge_attr is not None and num_edge_types == 0 and edge_channels == 0:
        raise ValueError(
            "this model takes no edge_attr: set num_edge_types where it holds flags of types, edge_channels where it "
            "holds numbers, or leave it out"
        )
    return Data(x=x, edge_index=edge_index, edge_weight=edge_weight, batch=batch, edge_attr=edge_attr)


@torch.compiler.disable
def graph_inputs(
    data: Any,
    network: Any,
    *,
    validate: bool = True,
    by_graph: bool = False,
    packed: bool = False,
    dtype: torch.dtype | None = None,
) -> SparseBatch:
    """Read what a network uses of `data`: x, edge_index, edge_weight, edge_type or edge_attr, batch.

    Laid out component by component, or graph by graph where `by_graph` says so. A batch that may be `packed` stays
    sparse on a CPU: there, products with S and V cost as much per node in graphs of every size, and less than with
    blocks. Operators and Ritz pairs are of type `dtype`; where absent, of that of the features but never half
    precision, or with node types of the weights' own.
    """
    if isinstance(data, ShardData):
        return _shard_inputs(data, network, validate)
    x = node_input(data, network.encoder.check_types if validate else None)
    num_nodes = len(x)
    batch, num_graphs = graph_of_node(data)
    weight = getattr(data, "edge_weight", None)
    if dtype is None and x.is_floating_point():
        dtype = torch.promote_types(x.dtype, torch.float32)
    A = adjacency(
        data if isinstance(data, StoredGraph) else data.edge_index,
        weight,
        num_nodes=num_nodes,
        batch=batch,
        num_graphs=None if batch is None else num_graphs,
        dtype=dtype,
        validate=validate,
    )
    assert isinstance(A, SparseOperator)
    component, num_components = _components(data, A, validate)
    padding: Padding | None
    padding = padding_of(data.batch, num_graphs) if by_graph else padding_of(component, num_components)
    is_packed = packed and batch is not None and not static_shapes(x)
    is_large = padding.width > DENSE_UP_TO and not by_graph  # whoever wants it by graph has chosen the graphs
    if is_large or num_nodes == 0 or is_packed:
        padding = None
    graph = SparseBatch(
        x=x,
        adjacency=A,
        component=component,
        num_components=num_components,
        padding=padding,
        batch=batch if batch is not None else torch.zeros(num_nodes, dtype=torch.long, device=x.device),
        num_graphs=num_graphs,
        ritz=_ritz_pairs(data, component, num_components, A.dtype),
        descriptors=getattr(data, "descriptors", None),
    )
    if network.edge_channels:
        graph = replace(graph, edge_features=edge_features(data, network.edge_channels, A, validate=validate))
    if network.num_edge_types == 0:
        return graph
    edge_type = edge_types_of(data, network.num_edge_types)
    by_type = operators_by_type(data.edge_index, weight, edge_type, network.num_edge_types, num_nodes, A.dtype)
    return replace(graph, edge_types=EdgeTypeOperators([graph.operator(S) for S in by_type]))


def _shard_inputs(data: ShardData, network: Any, validate: bool) -> SparseBatch:
    """A process' nodes of a graph that is shared out; they stay sparse."""
    network.check_shareable()
    return SparseBatch(
        x=node_input(data, network.encoder.check_types if validate else None),
        adjacency=data.shard.adjacency,
        component=data.shard.component,
        num_components=data.shard.num_components,
        num_shared=data.shard.num_shared,
        padding=None,
        batch=torch.zeros(len(data.x), dtype=torch.long, device=data.x.device),
        num_graphs=1,
        ritz=None,
    )


def node_input(data: Any, check_types: Callable[[Any], None] | None) -> Any:
    """The node features or types, checked where `check_types` says what is known."""
    x: Any = data.x
    if x is None:
        raise ValueError("the data has no x: give every node features (floating) or a type (integer)")
    if check_types is None:
        return x
    if x.is_floating_point():
        _check_finite(x.rows if isinstance(x, HostFeatures) else x)
    check_types(x)
    return x


def _check_finite(x: Tensor) -> None:
    """In chunks: a mask of all features would take a quarter of their memory."""
    for rows in row_ranges(len(x), CHECKED_AT_ONCE // max(1, x[:1].numel())):
        is_finite = torch.isfinite(x[rows])
        if not bool(is_finite.all()):
            place = (~is_finite).nonzero()[0].tolist()
            node = [place[0] + rows.start, *place[1:]]
            raise ValueError(f"node features must be finite, but x{node} is {x[tuple(node)].item()}: impute or drop it")


def graph_of_node(data: Any) -> tuple[Tensor | None, int]:
    """Which graph each node belongs to, None for one graph, and how many graphs there are."""
    batch = getattr(data, "batch", None)
    return batch, 1 if batch is None else int(getattr(data, "num_graphs", 0)) or int(batch.max()) + 1


def edge_types_of(data: Any, num_edge_types: int) -> Tensor:
    """The data's edge_type `[edge]` or edge_attr `[edge, type]`."""
    edge_type = getattr(data, "edge_type", None)
    edge_type = getattr(data, "edge_attr", None) if edge_type is None else edge_type
    if edge_type is not None and edge_type.shape[1:] == (1,) and not edge_type.is_floating_point():
        edge_type = edge_type.squeeze(1)  # a number of a type
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
    leads_out = first_node[A.row.long()] != first_node[A.column.long()]
    if A.has_values:  # a stored zero is no edge
        leads_out &= A.values.detach() != 0
    return torch.equal(first_node[first_node], first_node) and not bool(leads_out.any())


def check_pairs(pairs: RitzPairs, S: SparseOperator) -> None:
    """Those that the data carries must be of its graph: a Ritz value is v^T S v."""
    assert pairs.segment is not None
    quotient = segment_sum(pairs.vectors * (S @ pairs.vectors), pairs.segment, len(pairs.values))
    if not torch.allclose(quotient, pairs.values, rtol=0.0, atol=PAIR_TOLERANCE):
        raise ValueError(f"the Ritz pairs that the data carries are not those of its graph: {AGAIN}")


def _ritz_pairs(data: Any, component: Tensor, num_components: int, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
    """Values `[component, step]` and vectors `[node, step]`; data of many graphs may have values on every node."""
    num_nodes = len(component)
    values, vectors = getattr(data, "ritz_values", None), getattr(data, "ritz_vectors", None)
    if values is None or vectors is None:
        return None
    if len(values) == num_nodes != num_components:
        values = values[_first_nodes(component, num_components)]
    if len(vectors) != num_nodes or len(values) != num_components:
        raise ValueError(
            f"the data carries Ritz pairs of {len(vectors)} nodes and {len(values)} components, but has "
            f"{num_nodes} and {num_components}: {AGAIN}"
        )
    return values.to(dtype), vectors.to(dtype)


def _first_nodes(component: Tensor, num_components: int) -> Tensor:
    """Of every component, which are numbered in this order."""
    nodes = torch.arange(len(component), device=component.device)
    return torch.full_like(nodes[:1], len(nodes)).expand(num_components).scatter_reduce(0, component, nodes, "amin")
