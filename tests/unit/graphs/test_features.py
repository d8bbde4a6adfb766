"""Features are scaled by a rule, and the same way wherever a model is used."""

import json

import pytest
import torch
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from lanczosnet import load_model
from lanczosnet.graphs import DataError, pack
from lanczosnet.graphs.features import feature_scaling
from lanczosnet.training import JobSpec, prepare, run
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.evaluation import evaluate, original_data
from lanczosnet.training.serialization import CONFIG

ALL = torch.arange(6)
COUNTS = torch.tensor([[0, 0, 3, 1], [0, 2, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]]).float()
DENSE = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
SIZES = torch.tensor([1.0, 100.0, 0.01])


def graph(x) -> Data:
    ring = torch.stack([torch.arange(6), torch.arange(1, 7) % 6])
    return Data(x=x, edge_index=ring, y=torch.arange(6) % 2, name="toy")


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (COUNTS, "row"),
        (COUNTS.clamp(max=1), None),  # words that are there or not
        (COUNTS / 7, None),  # not counts any more
        (DENSE, None),
        (DENSE * SIZES, "standardise"),
        (DENSE + 100, "standardise"),
        (torch.ones(6, 2), None),
        (torch.arange(6), None),  # types of nodes
    ],
)
def test_the_rule_chooses_by_the_features(x, kind):
    found = feature_scaling(graph(x), "auto", ALL)
    assert (found and found.kind) == kind
    assert feature_scaling(graph(x), "none", ALL) is None


def test_rows_sum_to_one_and_columns_are_as_scikit_learn_standardises_them():
    rows = feature_scaling(graph(COUNTS), "row", ALL).apply(graph(COUNTS)).x
    assert rows.sum(1).tolist() == [1, 1, 0, 1, 1, 1]
    x = torch.cat([DENSE * SIZES, torch.full((6, 1), 4.0)], 1)
    columns = feature_scaling(graph(x), "standardise", ALL).apply(graph(x)).x
    assert columns.numpy() == pytest.approx(StandardScaler().fit_transform(x.numpy()), abs=1e-5)


def test_many_graphs_are_scaled_by_those_of_the_training():
    two = [Data(x=x, edge_index=graph(x).edge_index) for x in (DENSE * SIZES, DENSE * 1000)]
    graphs = pack(two, name="two")
    found = feature_scaling(graphs, "standardise", torch.tensor([0]))
    assert found == feature_scaling(graph(DENSE * SIZES), "standardise", ALL)
    assert torch.equal(found.apply(graphs)[1].x, found(graphs[1].x))


def test_mistakes_are_told():
    with pytest.raises(DataError, match="auto, none, row, standardise"):
        feature_scaling(graph(DENSE), "rows", ALL)
    with pytest.raises(DataError, match="negative"):
        feature_scaling(graph(DENSE), "row", ALL)


@pytest.mark.parametrize("features", ["auto", "none"])
def test_a_saved_model_scales_what_it_predicts(tmp_path, features):
    torch.manual_seed(0)
    x = torch.randn(40, 3) * SIZES
    rows = "\n".join(f"{','.join(map(str, row))},{i % 2}" for i, row in enumerate(x.tolist()))
    (tmp_path / "nodes.csv").write_text(f"a,b,c,label\n{rows}\n")
    settings = {"epochs": 3, "hidden_channels": 8, "num_steps": 4}
    spec = JobSpec(str(tmp_path / "nodes.csv"), settings=settings, features=features)
    job = prepare(spec)
    result = run(job, tmp_path / "model", fabric=fabric_for("cpu"))
    assert ("scaling" in json.loads((tmp_path / "model" / CONFIG).read_text())["data"]) == (features == "auto")
    assert bool(job.notes) == (features == "auto")
    trained = load_model(tmp_path / "model")
    data, parts = original_data(trained)
    assert evaluate(trained, data, parts.test)["accuracy"] == pytest.approx(result.metrics["test"]["accuracy"])
    table = trained.predict(data.x.numpy()).probabilities[0]
    assert torch.allclose(table, trained.predict(data).probabilities[0], atol=1e-5)
    assert run(job, tmp_path / "model", fabric=fabric_for("cpu"), resume=True) == result
