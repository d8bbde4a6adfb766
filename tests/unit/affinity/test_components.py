"""Connected components are numbered by their first node."""

import pytest
import scipy.sparse.csgraph
import torch

from graph_builders import both_ways, generator, path_edges, random_edges
from lanczosnet.affinity import adjacency, components, connected_components, normalized


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


def numbered_by_scipy(operator):
    matrix = scipy.sparse.csr_matrix(operator.dense().cpu().numpy())
    count, label = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    return label.tolist(), count


@pytest.mark.parametrize("mean_degree", [0.3, 0.9, 1.5, 4.0])
@pytest.mark.parametrize("num_nodes", [1, 2, 7, 60, 400])
def test_random_graphs_are_numbered_as_by_scipy(num_nodes, mean_degree, device):
    for seed in range(5):
        random = generator(seed)
        edges = torch.randint(0, num_nodes, (2, int(num_nodes * mean_degree)), generator=random)
        weights = torch.rand(edges.shape[1], generator=random).round().double()  # half of them join nothing
        for weight, directed in ((None, False), (weights, False), (weights, True)):
            both = edges if directed else both_ways(edges)
            weight = weight if weight is None or directed else weight.repeat(2)
            operator = adjacency(
                both.to(device), None if weight is None else weight.to(device), num_nodes=num_nodes, directed=directed
            )
            label, count = connected_components(operator)
            assert (label.tolist(), count) == numbered_by_scipy(operator)


@pytest.mark.parametrize("seed", range(3))
def test_long_paths_and_stars_take_few_rounds(seed, device, monkeypatch):
    rounds = []
    follow = components._pointed_to_the_end
    monkeypatch.setattr(components, "_pointed_to_the_end", lambda least: rounds.append(1) or follow(least))
    order = torch.randperm(4000, generator=generator(seed))
    hub = torch.stack([torch.full((1999,), 2000), torch.arange(2001, 4000)])
    edges = order[torch.cat([path_edges(2000), both_ways(hub)], 1)].to(device)
    _, count = connected_components(adjacency(edges, num_nodes=4000))
    assert count == 2
    assert len(rounds) < 30


def test_rows_are_looked_at_in_pieces(device, monkeypatch):
    operator = adjacency(both_ways(torch.randint(0, 300, (2, 200), generator=generator(1))).to(device), num_nodes=300)
    expected = connected_components(operator)
    monkeypatch.setattr(components, "ROWS_AT_A_TIME", 7)
    label, count = connected_components(operator)
    assert count == expected[1]
    assert label.equal(expected[0])
