"""Connected components are numbered by their first node."""

import torch

from graph_builders import both_ways, path_edges, random_edges
from lanczosnet.affinity import adjacency, connected_components, normalized


def test_components_are_numbered_by_their_first_node(device):
    edges = both_ways(torch.tensor([[5, 1], [0, 3]])).to(device)
    label, count = connected_components(adjacency(edges, num_nodes=7))
    assert count == 5
    assert label.tolist() == [0, 1, 2, 1, 3, 0, 4]
    assert label.device.type == device.type


def test_a_connected_graph_is_one_component():
    label, count = connected_components(normalized(adjacency(random_edges(30))))
    assert count == 1
    assert not label.any()


def test_an_edge_of_weight_zero_joins_nothing():
    operator = adjacency(path_edges(4), torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0]))
    columns = operator.column.clone()
    label, count = connected_components(operator)
    assert count == 2
    assert label.tolist() == [0, 0, 1, 1]
    assert torch.equal(operator.column, columns)  # the operator was only looked at


def test_an_arrow_connects_both_its_ends():
    label, _ = connected_components(adjacency(torch.tensor([[2], [0]]), directed=True))
    assert label.tolist() == [0, 1, 0]


def test_the_empty_graph_has_no_component():
    label, count = connected_components(adjacency(torch.zeros(2, 0, dtype=torch.long)))
    assert count == 0
    assert label.shape == (0,)
