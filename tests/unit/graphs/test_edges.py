"""Directed and signed graphs, and numbers on edges."""

import pytest
import torch
from torch_geometric.data import Data

from lanczosnet import load_model
from lanczosnet.graphs import DataError, load
from lanczosnet.graphs.edges import with_usable_edges
from lanczosnet.graphs.formats.objects import data_objects
from lanczosnet.training import JobSpec, TrainingError, run
from lanczosnet.training.job import job_of

WEIGHTS = torch.tensor([2.0, -3.0] * 15)


def ring(**edges) -> Data:
    """Thirty nodes, each pointing to the next; its class is whether its number is even."""
    node = torch.arange(30)
    index = torch.stack([node, (node + 1) % 30])
    x = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    return Data(x=x, edge_index=index, y=node % 2, name="ring", **edges)


def both_ways(**edges) -> Data:
    data = ring()
    return Data(x=data.x, edge_index=torch.cat([data.edge_index, data.edge_index.flip(0)], 1), y=data.y, **edges)


def weights(data: Data) -> dict:
    pairs = zip(data.edge_index.T.tolist(), data.edge_weight.tolist(), strict=True)
    return {tuple(edge): weight for edge, weight in pairs}


def test_a_graph_that_is_fine_stays_as_it_is():
    data = both_ways(edge_weight=torch.ones(60))
    assert "notes" not in with_usable_edges(data)
    assert with_usable_edges(data).edge_index is data.edge_index


def test_directed_edges_get_their_reverse_and_it_is_said():
    data = ring()
    found = with_usable_edges(data)
    assert found.is_undirected()
    assert found.num_edges == 60
    assert found.notes == [
        "30 directed edges have no reverse, which was added (LanczosNet with magnetic=0.25 sees directions)"
    ]
    assert data.num_edges == 30  # the caller's own object


def test_weights_of_both_directions_are_averaged():
    found = with_usable_edges(both_ways(edge_weight=torch.cat([torch.full((30,), 1.0), torch.full((30,), 3.0)])))
    assert set(weights(found).values()) == {2.0}
    assert "averaged" in found.notes[0]


def test_the_sign_of_a_weight_becomes_an_edge_type():
    found = with_usable_edges(ring(edge_weight=WEIGHTS))
    assert weights(found)[0, 1] == weights(found)[1, 0] == 2.0
    assert weights(found)[1, 2] == weights(found)[2, 1] == 3.0
    assert torch.equal(found.edge_attr[:, 1] == 1, found.edge_weight == 3.0)
    assert "15 edges have a negative weight" in found.notes[0]


def flows(data: Data, key: str = "edge_flow") -> dict:
    pairs = zip(data.edge_index.T.tolist(), data[key].tolist(), strict=True)
    return {tuple(edge): value for edge, value in pairs}


def test_directions_and_signs_are_kept_for_networks_that_use_them():
    found = with_usable_edges(ring(edge_weight=WEIGHTS))
    assert flows(found)[0, 1] == 1.0
    assert flows(found)[1, 0] == -1.0
    signs = flows(found, "edge_sign")
    assert signs[0, 1] == signs[1, 0] == 1.0
    assert signs[1, 2] == signs[2, 1] == -1.0
    again = with_usable_edges(found)
    assert again.edge_flow is found.edge_flow


def test_a_flow_is_the_difference_of_both_directions_by_their_sum():
    found = with_usable_edges(both_ways(edge_weight=torch.cat([torch.full((30,), 1.0), torch.full((30,), 3.0)])))
    assert flows(found)[0, 1] == -0.5
    assert flows(found)[1, 0] == 0.5


def test_signs_that_differ_between_the_directions_are_averaged():
    found = with_usable_edges(both_ways(edge_weight=torch.cat([torch.full((30,), 1.0), torch.full((30,), -3.0)])))
    assert set(flows(found, "edge_sign").values()) == {-0.5}
    assert set(weights(found).values()) == {2.0}


def test_one_number_per_edge_is_its_weight():
    found = with_usable_edges(ring(edge_attr=torch.linspace(1, 2, 30).view(-1, 1)))
    assert "edge_attr" not in found
    assert weights(found)[29, 0] == 2.0


def test_types_of_directed_edges_are_refused():
    with pytest.raises(DataError, match="types and are directed"):
        with_usable_edges(ring(edge_type=torch.zeros(30, dtype=torch.long)))


def test_a_sign_beside_types_is_refused():
    with pytest.raises(DataError, match="have types of their own"):
        with_usable_edges(ring(edge_weight=WEIGHTS, edge_attr=torch.ones(30, 2)))


def test_several_real_numbers_of_a_directed_edge_are_those_of_its_reverse():
    data = data_objects(ring(edge_attr=torch.rand(30, 3)))
    assert data.edge_attr.shape == (60, 3)
    job = job_of(JobSpec("ring", split="5-per-class"), data)
    assert job.architecture.options["edge_channels"] == 3


@pytest.mark.parametrize("model", ["lanczosnet", "adalanczosnet", "gcn"])
def test_a_directed_signed_graph_is_trained_on(model, tmp_path):
    torch.save(ring(edge_weight=WEIGHTS), tmp_path / "ring.pt")
    settings = {"epochs": 2, "hidden_channels": 8, "block": "residual"}
    job = job_of(JobSpec("ring.pt", model, settings=settings, split="5-per-class"), load(str(tmp_path / "ring.pt")))
    assert job.architecture.options["num_edge_types"] == 2
    assert "30 directed edges" in job.notes[1]
    assert run(job, tmp_path / "model").epochs == 2
    predicted = load_model(tmp_path / "model").predict(ring(edge_weight=WEIGHTS))  # as it came
    assert predicted.values.equal(load_model(tmp_path / "model").predict(job.data).values)


@pytest.mark.parametrize("settings", [{"magnetic": 0.25, "signed": True}, {"signed": True}])
def test_signs_and_directions_reach_s(settings, tmp_path):
    torch.save(ring(edge_weight=WEIGHTS), tmp_path / "ring.pt")
    settings = {"epochs": 2, "hidden_channels": 8, "block": "residual", **settings}
    job = job_of(JobSpec("ring.pt", settings=settings, split="5-per-class"), load(str(tmp_path / "ring.pt")))
    assert job.architecture.options["num_edge_types"] == 0
    run(job, tmp_path / "model")
    model = load_model(tmp_path / "model")
    predicted = model.predict(ring(edge_weight=WEIGHTS)).values  # as it came
    assert predicted.equal(model.predict(job.data).values)


def test_directions_beside_sign_types_are_refused():
    data = data_objects(ring(edge_weight=WEIGHTS))
    with pytest.raises(TrainingError, match="magnetic takes no edge types and no numbers on edges: pass signed=True"):
        job_of(JobSpec("ring", settings={"magnetic": 0.25, "block": "residual"}, split="5-per-class"), data)


def test_magnetic_on_undirected_edges_is_refused():
    with pytest.raises(TrainingError, match="no edge of ring is directed"):
        job_of(JobSpec("ring", settings={"magnetic": 0.25}, split="5-per-class"), data_objects(both_ways(name="ring")))
