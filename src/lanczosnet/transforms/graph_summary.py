"""What a data set looks like: sizes, components, degrees and the ends of its spectrum."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from lanczosnet.affinity import Operator, SparseOperator, adjacency, connected_components, normalized
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.graphs.packed import PackedGraphs
from lanczosnet.krylov import RitzPairs, lanczos, ritz, start

NUM_STEPS = 20
SAMPLE = 256  # graphs whose spectrum is looked at


def summary(data: Data | PackedGraphs) -> dict[str, Any]:
    """Sizes, components, degrees and Ritz values of S = D^-1/2 (A + I) D^-1/2 after 20 Lanczos steps.

    Edges are counted once, not once per direction, self-loops and weights aside. Of many graphs, up to 256 evenly
    spaced ones give the Ritz values.
    """
    return _summary_of_many(data) if isinstance(data, PackedGraphs) else _summary_of_one(data)


def _summary_of_one(data: Data) -> dict[str, Any]:
    edges = data if isinstance(data, StoredGraph) else data.edge_index
    A = adjacency(edges, num_nodes=data.num_nodes)
    assert isinstance(A, SparseOperator)
    pairs, degrees = _ritz_pairs(normalized(A)), degree(data.edge_index[0], data.num_nodes)
    facts = {"nodes": data.num_nodes, "edges": data.num_edges // 2, "features": data.num_node_features}
    if "y" in data and not data.y.is_floating_point():
        facts["classes"] = len(data.y[data.y >= 0].unique())
    return {
        **facts,
        "components": connected_components(A)[1],
        "degree": _range(degrees),
        "isolated_nodes": int((degrees == 0).sum()),
        "ritz_values": [round(value, 6) for value in pairs.values[: int(pairs.rank)].tolist()],
    }


def _summary_of_many(data: PackedGraphs) -> dict[str, Any]:
    everything = data.batch(torch.arange(len(data)))
    counts = data.node_ptr.diff()
    chosen = torch.linspace(0, len(data) - 1, min(SAMPLE, len(data))).long().unique()
    sample = data.batch(chosen)
    pairs = _ritz_pairs(normalized(adjacency(sample)))
    smallest = pairs.values.gather(1, pairs.rank.view(-1, 1) - 1)
    return {
        "graphs": len(data),
        "nodes": _range(counts.float()),
        "edges": _range(data.edge_ptr.diff().float() / 2),
        "targets": len(data.about.get("targets", ())) or None,
        "components": _num_components(everything.edge_index, everything.num_nodes),
        "degree": _range(degree(everything.edge_index[0], everything.num_nodes)),
        "sampled_graphs": len(chosen),
        "distinct_ritz_values": _range(pairs.rank.float()),
        "second_ritz_value": _range(pairs.values[:, 1]),
        "smallest_ritz_value": _range(smallest),
    }


def _num_components(edge_index: Tensor, num_nodes: int) -> int:
    A = adjacency(edge_index, num_nodes=num_nodes)
    assert isinstance(A, SparseOperator)
    return connected_components(A)[1]


def _ritz_pairs(S: Operator) -> RitzPairs:
    """From a random start: on a regular graph ones is an eigenvector, and the iteration would end at once."""
    return ritz(lanczos(S, start.random(S, torch.Generator().manual_seed(0)), NUM_STEPS))


def _range(values: Tensor) -> dict[str, float]:
    return {"min": float(values.min()), "mean": round(float(values.mean()), 4), "max": float(values.max())}
