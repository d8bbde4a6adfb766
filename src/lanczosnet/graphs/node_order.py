"""The nodes of one large graph in an order that products read faster, and the way back.

A product reads a row of the signal for every neighbour. Where neighbours have close numbers, these rows are in the
cache already.
"""

from copy import copy
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor
from torch_geometric.data import Data

from lanczosnet._extras import MissingExtraError
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.graphs.splits.record import Split

PART = 2**14  # nodes of a part of METIS
KEY = "node_order"
OF_ROWS = ("row_pointer", "column", "edge_weight")
OF_COMPONENTS = ("component_index", "ritz_values")


def check_node_order(order: str) -> None:
    if order not in ORDERS:
        raise ValueError(f"there is no node order {order!r}: choose {', '.join(ORDERS)}")
    if order == "metis" and find_spec("pymetis") is None:
        raise MissingExtraError(
            "the node order 'metis' needs pymetis, which is not installed: run `pip install pymetis`", name="pymetis"
        )


def node_order(data: Data, order: str) -> Tensor:
    """The nodes in the order rcm (reverse Cuthill-McKee), degree (falling) or metis (part by part), `[node]`."""
    check_node_order(order)
    if not isinstance(data, Data):
        raise ValueError(f"a node order is one of a Data, not of a {type(data).__name__}")
    if not isinstance(data, StoredGraph) and data.edge_index is None:
        raise ValueError("the data has no edge_index, which a node order is found from")
    if not data.num_nodes:
        return torch.zeros(0, dtype=torch.long)
    if data.get("batch") is not None:
        raise ValueError("a node order is one of a single graph, but the data is a batch: order each graph on its own")
    return torch.from_numpy(np.ascontiguousarray(ORDERS[order](_pattern(data)))).long()


def renumbered(data: Data, nodes: Tensor) -> Data:
    """The graph with node `nodes[i]` as its node i; `node_order` on it says which node each was to begin with."""
    found, rank = copy(data), rank_of(nodes)
    found[KEY] = data[KEY][nodes] if KEY in data else nodes
    if isinstance(data, StoredGraph):
        found.update(_rows(data, rank))
    elif data.edge_index is not None:
        found.edge_index = rank.to(data.edge_index.device)[data.edge_index]
    if "component_index" in data:
        found.update(_components(data, nodes, rank))
    for key in data.keys():  # noqa: SIM118 a Data is not a mapping
        if _is_of_nodes(data, key):
            found[key] = data[key][nodes.to(data[key].device)]
    return found


def restored(data: Data) -> Data:
    """The graph in the order that it had before `renumbered`, with whatever has been added since."""
    if KEY not in data:
        raise ValueError("the data has no node_order: it has not been renumbered")
    found = renumbered(data, rank_of(data[KEY]))
    del found[KEY]
    return found


def renumbered_split(split: Split, nodes: Tensor) -> Split:
    rank = rank_of(nodes)
    train, val, test = (rank[part].sort().values for part in (split.train, split.val, split.test))
    return replace(split, train=train, val=val, test=test)


def rank_of(nodes: Tensor) -> Tensor:
    """Where each node stands in an order."""
    return torch.empty_like(nodes).index_copy_(0, nodes, torch.arange(len(nodes), device=nodes.device))


def _is_of_nodes(data: Data, key: str) -> bool:
    value = data[key]
    if not isinstance(value, Tensor) or "edge" in key or key in (*OF_ROWS, *OF_COMPONENTS, KEY):
        return False
    return value.dim() > 0 and len(value) == data.num_nodes


def _pattern(data: Data) -> scipy.sparse.csr_matrix:
    """Which nodes are neighbours, in both directions."""
    shape = (data.num_nodes, data.num_nodes)
    if isinstance(data, StoredGraph):
        column, pointer = data.column.cpu().numpy(), data.row_pointer.cpu().numpy()
        stored = scipy.sparse.csr_matrix((np.ones(len(column), dtype=np.int8), column, pointer), shape=shape)
        stored.check_format()  # of a damaged folder, whose pointers and columns would lead anywhere
        return stored
    row, column = data.edge_index.cpu().numpy()
    one_way = scipy.sparse.csr_matrix((np.ones(len(row), dtype=bool), (row, column)), shape=shape)
    return one_way + one_way.T


def _rows(data: StoredGraph, rank: Tensor) -> dict[str, Tensor]:
    """The arrays of a graph folder whose rows are in another order, columns rising in every row."""
    pointer, num_nodes = data.row_pointer, len(rank)
    row = rank.repeat_interleave(pointer.diff(), output_size=len(data.column))
    key, order = (row * num_nodes + rank[data.column.long()]).sort()
    count = torch.empty_like(pointer[1:]).index_copy_(0, rank, pointer.diff())
    found = {
        "row_pointer": torch.cat([pointer[:1], count.cumsum(0)]),
        "column": (key % max(num_nodes, 1)).to(data.column.dtype),
    }
    return found | ({"edge_weight": data.edge_weight[order]} if "edge_weight" in data else {})


def _components(data: Data, nodes: Tensor, rank: Tensor) -> dict[str, Tensor]:
    """Components are numbered by their first nodes, which are others now; a row of Ritz values moves with its own."""
    first_before = data.component_index
    is_first = first_before == torch.arange(len(nodes), device=nodes.device)
    component = (is_first.cumsum(0) - 1)[first_before]
    first = torch.full_like(first_before[is_first], len(nodes)).scatter_reduce(0, component, rank, "amin")
    found = {"component_index": first[component][nodes]}
    return found | ({"ritz_values": data.ritz_values[first.argsort()]} if "ritz_values" in data else {})


def _reverse_cuthill_mckee(pattern: scipy.sparse.csr_matrix) -> np.ndarray:
    if pattern.indices.dtype != np.int32 or pattern.indptr.dtype != np.int32:
        if max(pattern.nnz, pattern.shape[0]) > np.iinfo(np.int32).max:
            raise ValueError("SciPy's reverse Cuthill-McKee takes at most 2^31 entries: choose degree")
        parts = pattern.data, pattern.indices.astype(np.int32), pattern.indptr.astype(np.int32)
        pattern = scipy.sparse.csr_matrix(parts, shape=pattern.shape)
    return reverse_cuthill_mckee(pattern, symmetric_mode=True)


def _falling_degree(pattern: scipy.sparse.csr_matrix) -> np.ndarray:
    return np.argsort(-np.diff(pattern.indptr), kind="stable")


def _parts(pattern: scipy.sparse.csr_matrix) -> np.ndarray:
    """The nodes of every part that METIS finds, one after another."""
    pymetis = import_module("pymetis")
    without_loops = scipy.sparse.csr_matrix(pattern - scipy.sparse.diags(pattern.diagonal(), dtype=pattern.dtype))
    without_loops.eliminate_zeros()
    count = max(1, -(-pattern.shape[0] // PART))
    _, part = pymetis.part_graph(count, xadj=without_loops.indptr, adjncy=without_loops.indices)
    return np.argsort(np.asarray(part), kind="stable")


ORDERS = {"rcm": _reverse_cuthill_mckee, "degree": _falling_degree, "metis": _parts}
