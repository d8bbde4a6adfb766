"""Which form a Lanczos network gets where the user names none."""

import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.experiments.tables import qm8_grid
from lanczosnet.graphs import pack, split
from lanczosnet.training import JobSpec, TrainingError
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.form import form_for
from lanczosnet.training.job import job_of, run_jobs
from lanczosnet.training.tasks import task_of
from training_builders import communities, packed_molecules


def sparse_communities():
    """Each block is a ring: two neighbours a node."""
    data = communities()
    node = torch.arange(90)
    after = node - node % 30 + (node + 1) % 30
    data.edge_index = torch.cat([torch.stack([node, after]), torch.stack([after, node])], 1)
    return data


def form(data, kind: str = "5-per-class", recipe: str = "modern", model: str = "lanczosnet"):
    train = split(data, kind, seed=0).train
    return form_for(data, train, task_of(data, train), recipe, model)


@pytest.mark.parametrize("model", ["lanczosnet", "AdaLanczosNet"])
def test_residual_blocks_are_the_default(model):
    assert form(communities(), model=model).block == "residual"


def graphs_of_a_user():
    """Real features, two classes, and a weight on every edge, as somebody's list of PyG graphs has them."""
    made = []
    for number in range(40):
        ring = torch.arange(4 + number % 6)
        edges = torch.stack([ring, ring.roll(1)])
        x = torch.randn(len(ring), 5, generator=torch.Generator().manual_seed(number))
        edge_index = torch.cat([edges, edges.flip(0)], 1)
        weight = torch.ones(2 * len(ring))
        made.append(Data(x=x, edge_index=edge_index, edge_weight=weight, y=torch.tensor([number % 2])))
    return pack(made, "rings")


def test_nodes_without_features_are_an_error():
    data = communities()
    data.num_nodes, data.x, data.name = len(data.x), None, "bare"
    with pytest.raises(TrainingError, match="bare has no node features: give every node an x"):
        job_of(JobSpec("some", split="5-per-class"), data)


@pytest.mark.parametrize("graphs", [packed_molecules, graphs_of_a_user])
@pytest.mark.parametrize("model", ["lanczosnet", "adalanczosnet"])
def test_graph_tasks_have_residual_blocks(graphs, model):
    assert form(graphs(), "random", model=model).block == "residual"
    assert form(graphs(), "random", recipe="paper", model=model).block == "plain"
    job = job_of(JobSpec("some", model=model, settings={"epochs": 2, "num_layers": 2}, split="random"), graphs())
    chosen = job.architecture.options
    assert (chosen["block"], chosen["readout"], chosen["head_channels"], chosen["num_layers"]) == (
        "residual", "sum", 96, 2
    )  # fmt: skip
    (outcome,) = run_jobs([job], fabric_for("cpu"))
    assert outcome.result().epochs == 2


@pytest.mark.parametrize("recipe", ["paper", "modern"])
def test_the_tables_of_the_paper_keep_the_published_form_unless_an_option_says_otherwise(recipe):
    grid = qm8_grid(recipe, models=["lanczosnet", "adalanczosnet"])
    assert {run.spec().settings["block"] for run in grid.runs} == {"plain"}
    changed = grid.with_options({"block": "residual"}, {})
    assert {run.spec().settings["block"] for run in changed.runs} == {"residual"}


def test_a_residual_gcn_on_graphs_has_the_sizes_that_it_knows():
    job = job_of(JobSpec("some", model="gcn", settings={"block": "residual"}, split="random"), packed_molecules())
    assert job.architecture.options["num_layers"] == 3
    assert "head_channels" not in job.architecture.options
    job.architecture.build()


def test_few_labels_on_a_graph_of_few_edges_keep_the_published_form():
    found = form(sparse_communities())
    assert found.block == "plain"
    assert "5 training nodes of a class and 2 neighbours of a node" in str(found)


def test_the_recipe_of_the_paper_has_the_published_form():
    assert form(communities(), recipe="paper").block == "plain"


def test_networks_of_one_form_are_left_alone():
    assert form(communities(), model="gcn") is None


def prepared(data, **settings):
    return job_of(JobSpec("some", settings=settings, split="5-per-class"), data)


def test_a_job_names_the_form_and_gives_its_reason():
    job = prepared(sparse_communities())
    assert job.architecture.options["block"] == "plain"
    assert job.architecture.options["num_layers"] == 2
    assert job.notes == [str(job.form)]
    assert prepared(communities()).architecture.options["block"] == "residual"


def test_a_form_that_is_given_stays_and_brings_its_sizes():
    job = prepared(sparse_communities(), block="residual")
    assert job.architecture.options["num_layers"] == 3
    assert job.form is None


def test_a_run_of_the_published_form_is_that_of_earlier_versions():
    assert "block" not in prepared(communities(), block="plain").identity()["architecture"]["options"]
    assert prepared(communities()).identity()["architecture"]["options"]["block"] == "residual"
