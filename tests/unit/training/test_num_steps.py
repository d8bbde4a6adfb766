"""How many Ritz pairs a network gets where its options say "auto"."""

import json
import math

import pytest
import torch
from torch_geometric.data import Data

from lanczosnet import load_model
from lanczosnet.files import sha256_of
from lanczosnet.training import JobSpec, TrainingError, run
from lanczosnet.training.job import job_of
from lanczosnet.training.num_steps import find_num_steps
from lanczosnet.transforms import AddRitzPairs
from training_builders import SMALL, communities, packed_molecules

AUTO = {**SMALL, "num_steps": "auto", "epochs": 2}


def job(data, model: str = "lanczosnet", split: str = "5-per-class", **settings):
    return job_of(JobSpec("some", model, "paper", settings, split=split), data)


def long_tree(num_nodes: int) -> Data:
    """Every node hangs on one of the three before it: long ways, and no symmetry."""
    drawn = torch.Generator().manual_seed(0)
    node = torch.arange(1, num_nodes)
    before = (node - 1 - torch.randint(3, (num_nodes - 1,), generator=drawn)).clamp(min=0)
    edge_index = torch.stack([node, before])
    x = torch.randn(num_nodes, 4, generator=drawn)
    return Data(x=x, edge_index=torch.cat([edge_index, edge_index.flip(0)], 1))


def test_a_long_tree_needs_more_pairs_than_a_dense_graph():
    assert find_num_steps(long_tree(90)).num_steps > find_num_steps(communities()).num_steps


def test_the_pairs_that_are_found_carry_the_long_scales():
    found = find_num_steps(long_tree(100))
    assert found.captured > 0.99
    assert found.reason in ("tolerance", "exhausted")


def test_the_longest_finite_scale_decides():
    assert find_num_steps(long_tree(100), (5, 60, math.inf)).scale == 60
    assert find_num_steps(long_tree(100), (90,)).num_steps < find_num_steps(long_tree(100), (3,)).num_steps


def test_the_budget_shrinks_where_vectors_would_not_fit(monkeypatch):
    monkeypatch.setattr("lanczosnet.training.num_steps.MOST_BYTES", 100 * 4 * 25)
    found = find_num_steps(long_tree(100), (5,))
    assert (found.num_steps, found.reason) == (25, "budget")


@pytest.mark.parametrize("model", ["lanczosnet", "adalanczosnet"])
def test_a_job_has_the_number_in_place_of_auto_and_says_it(model):
    prepared = job(communities(), model, **AUTO)
    assert prepared.architecture.options["num_steps"] == prepared.found_steps.num_steps
    assert prepared.notes[0].startswith(f"num_steps=auto: {prepared.found_steps.num_steps} Ritz pairs")


def test_residual_blocks_of_lanczosnet_have_as_many_as_are_found():
    small = {key: value for key, value in SMALL.items() if key != "num_steps"}
    assert job(communities(), **small, block="residual").found_steps is not None
    assert job(communities(), **small, block="residual", long_scales=()).found_steps is None
    assert job(communities(), **small, block="plain").found_steps is None
    assert job(communities(), "adalanczosnet", **small, block="residual").found_steps is None


def test_on_a_very_large_graph_the_search_has_to_be_asked_for(monkeypatch):
    monkeypatch.setattr("lanczosnet.training.num_steps.MOST_BYTES", 4 * 400 * 89)  # of 90 nodes
    small = {key: value for key, value in SMALL.items() if key != "num_steps"}
    assert job(communities(), **small, block="residual").found_steps is None
    assert job(communities(), **small, block="residual", num_steps="auto").found_steps is not None


def test_pairs_that_the_data_carry_are_used_as_they_are():
    small = {key: value for key, value in SMALL.items() if key != "num_steps"}
    prepared = job(AddRitzPairs(7)(communities()), **small, block="residual")
    assert prepared.architecture.options["num_steps"] == 7
    assert prepared.found_steps is None


def test_a_number_is_left_as_it_is():
    assert job(communities(), **{**AUTO, "num_steps": 7}).notes == []


def test_many_graphs_are_looked_at_together():
    prepared = job(packed_molecules(), split="random", **AUTO)
    assert 1 <= prepared.architecture.options["num_steps"] <= 20


def test_a_network_without_pairs_has_no_such_option():
    with pytest.raises(TrainingError, match="there is no setting 'num_steps'"):
        job(communities(), "gcn", num_steps="auto")


def test_without_a_finite_long_scale_nothing_can_be_measured():
    with pytest.raises(TrainingError, match="needs a finite long scale"):
        job(communities(), **AUTO, long_scales=())


def test_the_model_keeps_what_was_chosen_and_why(tmp_path):
    prepared = job(communities(), **AUTO)
    run(prepared, tmp_path / "model")
    trained = load_model(tmp_path / "model")
    assert trained.network.num_steps == prepared.found_steps.num_steps
    assert trained.config.training.found_steps.document() == prepared.found_steps.record()


def test_a_model_of_an_earlier_version_has_no_such_record(tmp_path):
    folder = tmp_path / "model"
    run(job(communities(), **{**AUTO, "num_steps": 5}), folder)
    config = json.loads((folder / "config.json").read_text())
    assert "found_steps" not in config["training"]
    assert config["weights"] == sha256_of(folder / "model.safetensors")
    assert load_model(folder).config.training.found_steps is None
