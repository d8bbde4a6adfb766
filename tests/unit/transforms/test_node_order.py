"""Nodes in another order for locality: the same graph, and everything comes back in the order it was given in."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData

from graph_builders import generator, path_edges, random_edges, random_weights
from lanczosnet import LanczosNet
from lanczosnet._extras import MissingExtraError
from lanczosnet.graphs import Split
from lanczosnet.graphs.formats.stored_graph import store_graph, stored_graph
from lanczosnet.graphs.node_order import node_order, renumbered, renumbered_split
from lanczosnet.training import JobSpec, prepare, run
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.job import job_of
from lanczosnet.transforms import AddRitzPairs, ReorderNodes
from training_builders import packed_molecules


def graph(num_nodes: int = 60) -> Data:
    """A shuffled path beside a random graph and three nodes alone; all nodes and edges can be told apart."""
    shuffled = torch.randperm(num_nodes, generator=generator(0))
    edges = torch.cat([path_edges(20), random_edges(37, seed=1) + 20], 1)
    edges = shuffled[edges[:, edges[0] != edges[1]]]
    return Data(
        x=torch.randn(num_nodes, 3, generator=generator(1)),
        y=torch.arange(num_nodes) % 4,
        train_mask=torch.arange(num_nodes) % 3 == 0,
        edge_index=edges,
        edge_weight=random_weights(edges).float(),
        edge_attr=torch.arange(edges.shape[1]),
        name="a graph",
        num_nodes=num_nodes,
    )


def bandwidth(data: Data) -> int:
    return int((data.edge_index[0] - data.edge_index[1]).abs().max())


def matrix(data: Data) -> torch.Tensor:
    return torch.zeros(60, 60).index_put(tuple(data.edge_index), _weight(data), accumulate=True)


@pytest.fixture(params=["rcm", "degree", "metis"])
def order(request, monkeypatch) -> str:
    if request.param == "metis":  # two interleaved parts
        fake = SimpleNamespace(part_graph=lambda count, xadj, adjncy: (0, [i % 2 for i in range(len(xadj) - 1)]))
        fake.__spec__ = SimpleNamespace()
        monkeypatch.setitem(sys.modules, "pymetis", fake)
    return request.param


def test_nodes_and_edges_move_together(order):
    data = graph()
    found = ReorderNodes(order)(data)
    nodes = found.node_order
    assert sorted(nodes.tolist()) == list(range(60))
    assert not torch.equal(nodes, torch.arange(60))
    for name in ("x", "y", "train_mask"):
        assert torch.equal(found[name], data[name][nodes])
    assert torch.equal(matrix(found), matrix(data)[nodes][:, nodes])
    assert torch.equal(found.edge_attr, data.edge_attr)
    assert found.name == "a graph"
    assert torch.equal(data.x, graph().x)  # the given one stays


def test_the_order_is_undone(order):
    data = graph()
    found = ReorderNodes.restored(ReorderNodes(order)(data))
    assert sorted(found.keys()) == sorted(data.keys())
    for name in data.keys():  # noqa: SIM118 a Data is not a mapping
        same = torch.equal(found[name], data[name]) if torch.is_tensor(data[name]) else found[name] == data[name]
        assert same, name


def test_an_order_of_an_order_is_undone_at_once():
    data = graph()
    twice = ReorderNodes("degree")(ReorderNodes("rcm")(data))
    assert torch.equal(twice.x, data.x[twice.node_order])
    assert torch.equal(ReorderNodes.restored(twice).edge_index, data.edge_index)


def test_reverse_cuthill_mckee_makes_the_band_narrow():
    edges = torch.randperm(200, generator=generator(3))[path_edges(200)]
    data = Data(edge_index=edges, num_nodes=200)
    assert bandwidth(data) > 100
    assert bandwidth(ReorderNodes("rcm")(data)) == 1


def test_degrees_fall():
    found = ReorderNodes("degree")(graph())
    degree = torch.bincount(found.edge_index[0], minlength=60)
    assert torch.equal(degree, degree.sort(descending=True).values)


def test_parts_of_metis_come_one_after_another(monkeypatch):
    asked = []

    def part_graph(count, xadj, adjncy):
        asked.append((count, len(xadj) - 1, len(adjncy)))
        return 0, np.array([1, 0, 1, 0])

    fake = SimpleNamespace(part_graph=part_graph, __spec__=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "pymetis", fake)
    monkeypatch.setattr("lanczosnet.graphs.node_order.PART", 2)
    loop = torch.tensor([[1], [1]])
    nodes = node_order(Data(edge_index=torch.cat([path_edges(4), loop], 1), num_nodes=4), "metis")
    assert nodes.tolist() == [1, 3, 0, 2]
    assert asked == [(2, 4, 6)]  # METIS takes no self-loops


def test_metis_without_its_package_says_which(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    monkeypatch.setattr("lanczosnet.graphs.node_order.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="needs pymetis, which is not installed: run `pip install pymetis`"):
        ReorderNodes("metis")


def test_wrong_orders_and_graphs_are_refused():
    with pytest.raises(ValueError, match="there is no node order 'random': choose rcm, degree, metis"):
        ReorderNodes("random")
    with pytest.raises(ValueError, match="the data is a batch"):
        ReorderNodes()(Batch.from_data_list([graph(), graph()]))
    with pytest.raises(ValueError, match="not of a HeteroData"):
        ReorderNodes()(HeteroData())
    with pytest.raises(ValueError, match="has no edge_index"):
        ReorderNodes()(Data(x=torch.ones(3, 1)))
    with pytest.raises(ValueError, match="has not been renumbered"):
        ReorderNodes.restored(graph())


def test_a_graph_without_nodes_has_an_order(order):
    empty = Data(x=torch.ones(0, 2), edge_index=torch.zeros(2, 0, dtype=torch.long))
    assert ReorderNodes(order)(empty).node_order.tolist() == []


def test_ritz_pairs_of_the_other_order_come_back_in_the_given_one(order):
    data = graph()
    del data.edge_weight
    expected = AddRitzPairs(6)(data.clone())
    found = ReorderNodes.restored(AddRitzPairs(6)(ReorderNodes(order)(data)))
    assert torch.equal(found.component_index, expected.component_index)
    torch.testing.assert_close(found.ritz_values, expected.ritz_values, atol=1e-5, rtol=0)
    S = [each.ritz_vectors * each.ritz_values[_component(each)] @ each.ritz_vectors.mT for each in (found, expected)]
    torch.testing.assert_close(*S, atol=1e-4, rtol=0)


def _component(data: Data) -> torch.Tensor:
    return data.component_index.unique(return_inverse=True)[1]


def test_ritz_pairs_that_are_there_move_along(order):
    data = AddRitzPairs(6)(graph())
    found = ReorderNodes(order)(data)
    anew = AddRitzPairs(6)(ReorderNodes(order)(graph()))
    assert torch.equal(found.component_index, anew.component_index)
    torch.testing.assert_close(found.ritz_values, anew.ritz_values, atol=1e-5, rtol=0)
    back = ReorderNodes.restored(found)
    assert torch.equal(back.ritz_values, data.ritz_values)
    assert torch.equal(back.ritz_vectors, data.ritz_vectors)


def test_predictions_and_embeddings_come_back_in_the_given_order(order):
    torch.manual_seed(0)
    network = LanczosNet(3, 8, 4, num_steps=6).double().eval()
    data = graph()
    data.x = data.x.double()
    ordered = ReorderNodes(order)(data)
    torch.testing.assert_close(ReorderNodes.in_given_order(network(ordered), ordered), network(data))


@pytest.mark.parametrize("weighted", [True, False])
def test_the_graph_of_a_folder_has_its_rows_reordered(tmp_path, weighted, order):
    data = graph()
    if not weighted:
        del data.edge_weight
    store_graph(data, tmp_path / "graph")
    stored = stored_graph(tmp_path / "graph")
    found = ReorderNodes(order)(stored)
    assert type(found) is type(stored)
    back = ReorderNodes.restored(found)
    assert torch.equal(back.edge_index, stored.edge_index)
    assert torch.equal(_weight(back), _weight(stored))
    nodes = found.node_order
    assert torch.equal(matrix(found), matrix(stored)[nodes][:, nodes])
    assert torch.equal(found.x, stored.x[nodes])
    row = found.edge_index[0] * 60 + found.edge_index[1]
    assert bool((row.diff() > 0).all())


def _weight(data: Data) -> torch.Tensor:
    return data.edge_weight if "edge_weight" in data else torch.ones(data.edge_index.shape[1])


def test_a_split_is_renumbered():
    split = Split("toy", "column", None, None, torch.tensor([0, 3]), torch.tensor([1]), torch.tensor([2]))
    nodes = torch.tensor([3, 1, 0, 2])
    found = renumbered_split(split, nodes)
    assert [found.train.tolist(), found.val.tolist(), found.test.tolist()] == [[0, 2], [1], [3]]
    data = renumbered(Data(y=torch.arange(4), num_nodes=4, edge_index=path_edges(4)), nodes)
    assert sorted(data.y[found.train].tolist()) == [0, 3]


def test_many_graphs_have_no_node_order():
    with pytest.raises(TrainingError, match="not of many: leave node_order out"):
        job_of(JobSpec("toy", node_order="rcm"), packed_molecules(20))


SETTINGS = {"hidden_channels": 8, "num_layers": 1, "num_steps": 5, "dropout": 0.0, "epochs": 6}


def test_a_network_that_is_trained_in_another_order_is_the_same_to_rounding(tmp_path, order, monkeypatch):
    seen = []
    original = LanczosNet.prepare
    monkeypatch.setattr(
        LanczosNet, "prepare", lambda self, data, **how: seen.append(data) or original(self, data, **how)
    )
    results = {}
    for chosen in (None, order):
        job = prepare(JobSpec("karate", settings=SETTINGS, split="40/30/30", node_order=chosen))
        results[chosen] = run(job, tmp_path / str(chosen)).metrics
    assert ["node_order" in data for data in (seen[0], seen[-1])] == [False, True]
    assert results[order]["test"] == pytest.approx(results[None]["test"], abs=1e-3)
