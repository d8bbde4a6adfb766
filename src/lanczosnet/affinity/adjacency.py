"""The door into the package: any graph becomes an adjacency operator A, checked once."""

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from lanczosnet.affinity.coalesce import coalesced, with_transpose
from lanczosnet.affinity.operator import DenseOperator, Operator, largest_magnitude
from lanczosnet.affinity.sparse_operator import SparseOperator
from lanczosnet.affinity.stored_rows import adjacency_of_rows, check_rows
from lanczosnet.backends import conditions


def adjacency(
    graph: Any,
    edge_weight: Tensor | None = None,
    *,
    num_nodes: int | None = None,
    batch: Tensor | None = None,
    num_graphs: int | None = None,
    mask: Tensor | None = None,
    directed: bool = False,
    dtype: torch.dtype | None = None,
    validate: bool = True,
) -> Operator:
    """The adjacency operator A of a graph, with duplicate edges added up.

    Args:
        graph: PyG's `edge_index` `[2, edge]`, a PyG `Data`/`Batch`, the graph of a folder, a SciPy or `torch.sparse`
            matrix, or a dense tensor or array `[node, node]` or `[graph, node, node]` (padded with zero rows).
        edge_weight: `[edge]`, one where absent; gradients flow into it, and into the entries of a tensor.
        num_nodes: needed where the last nodes have no edge.
        batch: which graph each node belongs to, `[node]`; edges stay inside their graph.
        num_graphs: needed where the last graphs of the batch are empty.
        mask: which rows of a dense batch are nodes, `[graph, node]`; all where absent.
        directed: admit an asymmetric matrix (for `random_walk` and `arnoldi`).
        dtype: floating type of the entries; that of the weights where absent.
        validate: check symmetry, range and finiteness; turn it off for inputs that were checked before.
    """
    if getattr(graph, "row_pointer", None) is not None and hasattr(graph, "column"):  # of a graph folder
        return _stored_adjacency(graph, dtype, validate)
    if hasattr(graph, "edge_index"):  # a PyG Data or Batch
        batch = getattr(graph, "batch", None) if batch is None else batch
        if num_graphs is None and batch is not None:
            num_graphs = getattr(graph, "num_graphs", None)
        edge_weight = getattr(graph, "edge_weight", None) if edge_weight is None else edge_weight
        num_nodes = graph.num_nodes if num_nodes is None else num_nodes
        graph = graph.edge_index
    if scipy.sparse.issparse(graph) or _is_sparse(graph):
        if edge_weight is not None:
            raise ValueError("a sparse matrix carries its own weights: drop edge_weight")
        graph, edge_weight, num_nodes = _edges_of_matrix(graph, num_nodes)
    if isinstance(graph, np.ndarray):
        graph = torch.as_tensor(graph)
    if isinstance(edge_weight, np.ndarray):
        edge_weight = torch.as_tensor(edge_weight)
    if any(isinstance(part, Tensor) and part.is_complex() for part in (graph, edge_weight)):
        raise ValueError("the weights are complex: pass real ones, for example their absolute values")
    if not isinstance(graph, Tensor):
        raise ValueError(
            "a graph is an edge_index, a PyG Data, a SciPy or torch.sparse matrix or a dense tensor, not a "
            f"{type(graph).__name__}; convert it first, for example with torch_geometric.utils.from_networkx"
        )
    if graph.is_floating_point():
        if any(given is not None for given in (edge_weight, batch, num_nodes, num_graphs)):
            raise ValueError(
                "a dense matrix carries its own weights, nodes and graphs: "
                "drop edge_weight, batch, num_nodes and num_graphs"
            )
        return _dense_adjacency(graph, mask, directed, dtype, validate)
    if mask is not None:
        raise ValueError("mask belongs to dense batches; with edge_index, say which graph a node is in with batch")
    return _sparse_adjacency(graph, edge_weight, num_nodes, batch, num_graphs, directed, dtype, validate)


def adjacency_by_type(
    edge_index: Tensor, edge_type: Tensor, num_types: int, edge_weight: Tensor | None = None, **options: Any
) -> list[Operator]:
    """One adjacency per edge type; `options` are those of `adjacency`.

    Args:
        edge_index: `[2, edge]`.
        edge_type: `[edge]` integers below `num_types`, or `[edge, num_types]` flags where an edge has several types.
        num_types: how many operators to return, also for types that no edge has.
        edge_weight: `[edge]`, one where absent.
    """
    edge_type = type_flags(edge_type, num_types, edge_index.shape[1])
    if options.get("num_nodes") is None and options.get("batch") is None:  # no single type shows all nodes
        options["num_nodes"] = int(edge_index.max()) + 1 if edge_index.numel() else 0
    operators = []
    for flags in edge_type.T:
        weight = None if edge_weight is None else edge_weight[flags]
        operators.append(adjacency(edge_index[:, flags], weight, **options))
    return operators


def type_flags(edge_type: Tensor, num_types: int, num_edges: int) -> Tensor:
    """Which types each edge has, `[edge, type]` booleans, from integers `[edge]` or flags `[edge, type]`."""
    if edge_type.dim() == 1:
        if edge_type.numel() and not 0 <= int(edge_type.min()) <= int(edge_type.max()) < num_types:
            raise ValueError(
                f"edge types must lie in 0..{num_types - 1}, but range over {int(edge_type.min())}.."
                f"{int(edge_type.max())}: raise num_types or renumber the types"
            )
        edge_type = torch.nn.functional.one_hot(edge_type.long(), num_types)
    if edge_type.shape != (num_edges, num_types):
        raise ValueError(
            f"edge_type must have shape [edge] or [edge, num_types] = [{num_edges}, {num_types}], "
            f"but has {tuple(edge_type.shape)}"
        )
    return edge_type.bool()


def _is_sparse(graph: Any) -> bool:
    """Whether it is a `torch.sparse` tensor, of whatever layout."""
    return isinstance(graph, Tensor) and graph.layout != torch.strided


def _edges_of_matrix(matrix: Any, num_nodes: int | None) -> tuple[Tensor, Tensor, int]:
    """`edge_index`, weights and the number of nodes of a sparse matrix."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"an adjacency matrix is square, but this one has shape {tuple(matrix.shape)}")
    if num_nodes not in (None, matrix.shape[0]):
        raise ValueError(f"the matrix has {matrix.shape[0]} nodes, but num_nodes is {num_nodes}: drop num_nodes")
    edge_index, weight = _entries_of_tensor(matrix) if isinstance(matrix, Tensor) else _entries_of_scipy(matrix)
    if not (weight.is_floating_point() or weight.is_complex()):
        weight = weight.to(torch.get_default_dtype())
    return edge_index, weight, matrix.shape[0]


def _entries_of_scipy(matrix: Any) -> tuple[Tensor, Tensor]:
    coo = matrix.tocoo()
    return torch.as_tensor(np.stack([coo.row, coo.col])).long(), torch.as_tensor(coo.data)


def _entries_of_tensor(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Differentiable with respect to the stored entries."""
    if matrix.dense_dim():
        raise ValueError("the torch.sparse matrix has a vector at every entry: an adjacency has one number there")
    coo = (matrix if matrix.layout == torch.sparse_coo else matrix.to_sparse_coo()).coalesce()
    return coo.indices(), coo.values()


def _dense_adjacency(
    matrix: Tensor, mask: Tensor | None, directed: bool, dtype: torch.dtype | None, validate: bool
) -> DenseOperator:
    if matrix.dim() not in (2, 3) or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(
            "a dense adjacency has shape [node, node] or [graph, node, node], but this one has "
            f"{tuple(matrix.shape)}; an edge_index must be of an integer type"
        )
    if mask is not None and mask.shape != matrix.shape[:-1]:
        raise ValueError(f"mask must have shape {tuple(matrix.shape[:-1])}, but has {tuple(mask.shape)}")
    matrix = matrix if dtype is None else matrix.to(dtype)
    if validate:
        _check_finite(matrix)
        if mask is not None and bool((matrix.masked_fill(mask.unsqueeze(-1) & mask.unsqueeze(-2), 0) != 0).any()):
            raise ValueError("the rows and columns of padding nodes must be zero: multiply the matrix with its mask")
        if not directed:
            _check_symmetric(matrix, matrix.mT, largest_magnitude(matrix.detach().flatten()))
    return DenseOperator(matrix, mask=mask, symmetric=not directed)


def _stored_adjacency(graph: Any, dtype: torch.dtype | None, validate: bool) -> Operator:
    rows = graph.row_pointer, graph.column, getattr(graph, "edge_weight", None)
    if validate:
        check_rows(*rows, getattr(graph, "folder", ""))
    return adjacency_of_rows(*rows, dtype)


def _sparse_adjacency(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    num_nodes: int | None,
    batch: Tensor | None,
    num_graphs: int | None,
    directed: bool,
    dtype: torch.dtype | None,
    validate: bool,
) -> SparseOperator:
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise ValueError(
            f"edge_index has shape [2, edge], but this one has {tuple(edge_index.shape)}; "
            "a dense adjacency must be of a floating type"
        )
    if num_nodes is None:
        num_nodes = len(batch) if batch is not None else int(edge_index.max()) + 1 if edge_index.numel() else 0
    is_plain = edge_weight is None and batch is None and not directed
    drops_values = is_plain and conditions.drops_values(edge_index.shape[1] + num_nodes)
    if edge_weight is None:
        edge_weight = torch.ones((), dtype=dtype, device=edge_index.device).expand(edge_index.shape[1])
    edge_weight = edge_weight if dtype is None else edge_weight.to(dtype)
    if batch is not None and num_graphs is None:
        num_graphs = int(batch.max()) + 1 if batch.numel() else 0
    if validate:
        check_edges(edge_index, edge_weight, num_nodes)
        if batch is not None and num_graphs is not None:
            check_batch(batch, edge_index, num_nodes, num_graphs)
    graphs: Any = {"batch": batch, "num_graphs": num_graphs, "drops_values": drops_values}
    operator = coalesced(edge_index, edge_weight, num_nodes, symmetric=not directed, **graphs)
    if validate and not directed:
        _check_symmetric_rows(operator)
    return operator


def check_edges(edge_index: Tensor, edge_weight: Tensor, num_nodes: int) -> None:
    """Refuse edges outside the nodes, and weights that are not finite or not one per edge."""
    if edge_weight.shape != edge_index.shape[1:]:
        raise ValueError(
            f"edge_weight must have one entry per edge, [{edge_index.shape[1]}], but has {tuple(edge_weight.shape)}"
        )
    if not edge_weight.is_floating_point():
        raise ValueError(f"edge_weight must be of a floating type, not {edge_weight.dtype}: call .float() on it")
    _check_finite(edge_weight)
    lowest, highest = edge_index.aminmax() if edge_index.numel() else (0, -1)
    if lowest < 0 or highest >= num_nodes:
        outside = (edge_index < 0) | (edge_index >= num_nodes)
        place = int(outside.any(0).nonzero()[0])
        pair = tuple(edge_index[:, place].tolist())
        raise ValueError(
            f"edge {place} joins nodes {pair}, but the {num_nodes} nodes are numbered from 0: set num_nodes"
        )


def check_batch(batch: Tensor, edge_index: Tensor, num_nodes: int, num_graphs: int) -> None:
    """Refuse a batch vector that does not fit the nodes, or edges between graphs."""
    if batch.shape != (num_nodes,):
        raise ValueError(f"batch must have one entry per node, [{num_nodes}], but has {tuple(batch.shape)}")
    if batch.numel() and not 0 <= int(batch.min()) <= int(batch.max()) < num_graphs:
        raise ValueError(
            f"batch ranges over {int(batch.min())}..{int(batch.max())}, outside 0..{num_graphs - 1}: fix num_graphs"
        )
    crossing = (batch[edge_index[0]] != batch[edge_index[1]]).nonzero()
    if len(crossing):
        place = int(crossing[0])
        pair = tuple(edge_index[:, place].tolist())
        raise ValueError(f"edge {place} joins nodes {pair} of different graphs: check batch and edge_index")


def _check_finite(values: Tensor) -> None:
    if not values.numel() or bool(torch.isfinite(torch.stack(values.detach().aminmax())).all()):  # NaN is passed on
        return
    place = (~torch.isfinite(values)).nonzero()[0].tolist()
    raise ValueError(
        f"weights must be finite, but the entry at {place} is {values[tuple(place)].item()}: "
        "drop or repair it before building the graph"
    )


def _check_symmetric_rows(operator: SparseOperator) -> None:
    values = operator.values.detach() if operator.has_values else None
    largest = None if values is None else largest_magnitude(values)
    for here, there, entries, transposed in with_transpose(operator):
        if not torch.equal(here, there):
            source, target = _first_difference(here, there, operator.num_nodes)
            raise ValueError(
                f"the graph is not symmetric: of nodes {source} and {target} only one points to the other. "
                "Make it undirected, for example with torch_geometric.utils.to_undirected"
            )
        if values is not None and largest is not None:
            _check_symmetric(values[entries], values[transposed], largest)


def _first_difference(here: Tensor, there: Tensor, num_nodes: int) -> tuple[int, int]:
    """Of two lists of keys that rise, the least that only one has, as a pair of nodes."""
    length = max(len(here), len(there)) + 1
    both = here.new_full((2, length), torch.iinfo(here.dtype).max)
    both[0, : len(here)], both[1, : len(there)] = here, there
    place = int((both[0] != both[1]).nonzero()[0])
    return divmod(int(both[:, place].min()), num_nodes)


def _check_symmetric(values: Tensor, transposed: Tensor, largest: Tensor) -> None:
    values, transposed = values.detach(), transposed.detach()
    if values.numel() == 0:
        return
    # Weights computed once per direction may differ by rounding.
    slack = 64 * torch.finfo(values.dtype).eps * largest.max()
    gap = (values - transposed).abs().max()
    if gap > slack:
        raise ValueError(
            f"the weights are not symmetric: some edge and its reverse differ by {gap.item():.3g}. "
            "Symmetrise them, for example with torch_geometric.utils.to_undirected(edge_index, edge_weight, "
            "reduce='mean'), or a matrix as (A + A.mT) / 2"
        )
