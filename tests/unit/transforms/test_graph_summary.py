import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.graphs import load, pack
from lanczosnet.transforms import summary


def test_a_graph_is_summarised_by_sizes_components_degrees_and_spectrum():
    facts = summary(load("karate"))
    assert (facts["nodes"], facts["edges"], facts["features"], facts["classes"]) == (34, 78, 34, 4)
    assert facts["components"] == 1
    assert facts["degree"] == {"min": 1.0, "mean": 4.5882, "max": 17.0}
    assert facts["isolated_nodes"] == 0


def test_the_ritz_values_of_a_small_graph_are_its_eigenvalues():
    """S of a ring has the eigenvalues (1 + 2 cos(2 pi j / n)) / 3; the 5 distinct ones of n = 8 are all found."""
    ring = load("ring", n=8)
    expected = ((1 + ring.adjacency_eigenvalues) / 3).unique().flip(0)
    distinct = torch.tensor(sorted({round(float(value), 6) for value in expected}, reverse=True))
    assert torch.allclose(torch.tensor(summary(ring)["ritz_values"]), distinct, atol=1e-5)


def test_isolated_nodes_and_components_are_counted():
    data = Data(x=torch.ones(5, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), name="toy")
    facts = summary(data)
    assert (facts["components"], facts["isolated_nodes"]) == (4, 3)


def test_many_graphs_are_summarised_over_all_and_over_a_sample():
    rings = [Data(x=r.x, edge_index=r.edge_index) for r in (load("ring", n=n) for n in (3, 4, 5))]
    facts = summary(pack(rings))
    assert facts["graphs"] == 3
    assert facts["nodes"] == {"min": 3.0, "mean": 4.0, "max": 5.0}
    assert facts["edges"] == {"min": 3.0, "mean": 4.0, "max": 5.0}
    assert facts["components"] == 3
    assert facts["degree"]["max"] == 2.0
    assert facts["distinct_ritz_values"] == {"min": 2.0, "mean": pytest.approx(2.6667), "max": 3.0}
