"""The model directory: whole, self-contained, and refused where it cannot be trusted."""

import json
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch_geometric.data import Data

import lanczosnet
from lanczosnet.files import sha256_of
from lanczosnet.graphs import DataError, load, select_targets
from lanczosnet.training import JobSpec, TrainingError, prepare, run
from lanczosnet.training import predict as predictions
from lanczosnet.training.evaluation import evaluate, original_data
from lanczosnet.training.measures import Answers, Measures
from lanczosnet.training.serialization import save_halved
from training_builders import packed_molecules

SMALL = {"hidden_channels": 8, "num_layers": 1, "num_steps": 5, "epochs": 3}
SMILES = ["C", "CC", "CCO", "c1ccccc1", "C=O", "C#N", "CCN", "O", "CO", "CN", "CCC", "C1CC1"]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    spec = JobSpec("digits", settings=SMALL | {"epochs": 20}, split="10-per-class")
    run(prepare(spec), folder)
    return folder


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    torch.save(packed_molecules(20)[:], folder / "graphs.pt")
    run(prepare(JobSpec(str(folder / "graphs.pt"), settings=SMALL)), folder)
    return folder


@pytest.fixture(scope="module")
def molecules(tmp_path_factory):
    pytest.importorskip("rdkit")
    folder = tmp_path_factory.mktemp("molecules")
    rows = [f"{text},{len(text)},{'' if i % 4 == 0 else i}" for i, text in enumerate(SMILES)]
    (folder / "table.csv").write_text("smiles,length,number\n" + "\n".join(rows))
    spec = JobSpec(str(folder / "table.csv"), settings=SMALL, data_options={"targets": ["length", "number"]})
    run(prepare(spec, folder / "cache"), folder / "model")
    return folder


def test_a_directory_holds_all_that_is_known(digits):
    assert sorted(path.name for path in digits.iterdir()) == ["config.json", "metrics.jsonl", "model.safetensors"]
    config = json.loads((digits / "config.json").read_text())
    assert config["architecture"]["name"] == "lanczosnet"
    assert config["split"]["hash"] == prepare(JobSpec("digits", split="10-per-class")).split.hash
    assert config["data"]["neighbours"] == 10
    assert config["training"]["settings"]["epochs"] == 20
    assert set(config["versions"]) == {"lanczosnet", "torch", "python"}
    lines = [json.loads(line) for line in (digits / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(1, 21))
    assert max(line["val_accuracy"] for line in lines) == config["result"]["metrics"]["val"]["accuracy"]


def test_the_saved_model_predicts_what_was_measured(digits):
    model = lanczosnet.load_model(digits)
    data = load("digits")
    test = prepare(JobSpec("digits", split="10-per-class")).split.test
    predictions = model.predict(data)
    accuracy = float((predictions.values[test, 0] == data.y[test]).double().mean())
    assert accuracy == pytest.approx(model.config["result"]["metrics"]["test"]["accuracy"])
    assert predictions.rows()[0].keys() == {"y", "y_probability", "error"}


def test_predictions_have_one_order_of_additions(digits, monkeypatch):
    entered = []
    monkeypatch.setattr(
        predictions, "deterministic_algorithms", lambda device: nullcontext(entered.append(device.type))
    )
    lanczosnet.load_model(digits).predict(load("digits"))
    assert len(entered) == 1


def test_a_table_of_features_is_joined_to_neighbours_and_bad_rows_keep_their_place(digits):
    model = lanczosnet.load_model(digits)
    x = load("digits").x.numpy()[:50].copy()
    whole = model.predict(x)
    x[7, 3] = np.nan
    holed = model.predict(x)
    assert len(holed) == 50
    assert [i for i, error in enumerate(holed.errors) if error] == [7]
    assert holed.values[7].tolist() == [-1]
    assert holed.rows()[7]["y"] is None
    agree = [i for i in range(50) if i != 7 and holed.values[i] == whole.values[i]]
    assert len(agree) > 45
    assert len(model.predict(x[:1])) == 1
    with pytest.raises(ValueError, match="64"):
        model.predict(x[:, :10])
    with pytest.raises(TrainingError, match="not on SMILES"):
        model.predict(["CCO"])


def test_a_row_that_is_far_too_large_leaves_the_others_alone(digits):
    model = lanczosnet.load_model(digits)
    x = load("digits").x.numpy()[:50].astype(np.float64)
    others = [i for i in range(50) if i != 7]
    whole = model.predict(x[others])
    for value in (1e38, -1e300, np.inf):
        x[7, 3] = value
        holed = model.predict(x)
        assert [i for i, error in enumerate(holed.errors) if error] == [7]
        torch.testing.assert_close(holed.values[others], whole.values)


@pytest.mark.parametrize("name", ["digits", "graphs"])
def test_an_answer_that_is_no_number_is_an_error_of_its_row(name, request, monkeypatch):
    model = lanczosnet.load_model(request.getfixturevalue(name))
    items = load("digits").x.numpy()[:9] if name == "digits" else packed_molecules(9)
    output = predictions._output

    def broken(network, data):
        result = output(network, data)
        result[4, 0] = float("nan")
        return result

    good = model.predict(items)
    monkeypatch.setattr(predictions, "_output", broken)
    found = model.predict(items)
    assert [i for i, error in enumerate(found.errors) if error] == [4]
    assert "not a number" in found.errors[4]
    assert {value for key, value in found.rows()[4].items() if key != "error"} == {None}
    others = [i for i in range(9) if i != 4]
    torch.testing.assert_close(found.values[others], good.values[others])


def test_a_target_named_error_loses_nothing(graphs):
    model = lanczosnet.load_model(graphs)
    task = replace(model.task, targets=("error",))
    values = torch.tensor([[1.5], [float("nan")]])
    rows = predictions.Predictions(task, values, (), ("", "no")).rows(prefix="predicted_")
    assert rows == [{"predicted_error": 1.5, "error": ""}, {"predicted_error": None, "error": "no"}]
    assert predictions.Predictions(task, values, (), ("", "no")).rows()[0] == {"error": 1.5, "error#2": ""}


def test_columns_of_a_table_are_found_by_name(tmp_path):
    chance = np.random.default_rng(0)
    table = pd.DataFrame(chance.normal(size=(60, 3)), columns=["a", "b", "c"])
    table["price"] = table.a * 10 + 3
    table.to_csv(tmp_path / "t.csv", index=False)
    options = {"label": "price", "task": "regression", "k": 3}
    run(prepare(JobSpec(str(tmp_path / "t.csv"), settings=SMALL, data_options=options)), tmp_path / "m")
    model = lanczosnet.load_model(tmp_path / "m")
    expected = model.predict(table[["a", "b", "c"]].to_numpy()).values
    torch.testing.assert_close(model.predict(table[["c", "price", "a", "b"]]).values, expected)
    assert model.predict(table).rows()[0].keys() == {"price", "error"}
    with pytest.raises(DataError, match="no column 'b'"):
        model.predict(table[["a", "c"]])
    other = load(str(tmp_path / "t.csv"), **options | {"features": ["a", "c"]})
    with pytest.raises(DataError, match=r"^t: the features are a, c\. The model needs a, b, c$"):
        model.predict(other)


def test_lists_of_graphs_and_packed_graphs_give_the_same_in_order(graphs):
    model = lanczosnet.load_model(graphs)
    packed = packed_molecules(9)
    together = model.predict(packed)
    torch.testing.assert_close(model.predict([packed[i] for i in range(9)], batch_size=2).values, together.values)
    torch.testing.assert_close(model.predict(packed[4]).values, together.values[4:5])
    assert not together.values.isnan().any()
    assert len(model.predict([])) == 0


def test_a_graph_that_does_not_fit_is_refused_with_its_reason(graphs):
    model = lanczosnet.load_model(graphs)
    edges = torch.tensor([[0, 1], [1, 0]])
    attributes = {"edge_index": edges, "edge_attr": torch.ones(2, 3), "edge_weight": torch.ones(2)}
    with pytest.raises(ValueError, match="knows the node types 0 to"):
        model.predict(Data(x=torch.tensor([1, 99]), **attributes))
    with pytest.raises(ValueError, match="node types"):
        model.predict(Data(x=torch.randn(2, 4), **attributes))


def test_molecules_of_unknown_elements_are_errors_also_as_graphs(molecules):
    model = lanczosnet.load_model(molecules / "model")
    (molecules / "more.csv").write_text("smiles,length\nCCO,1\nCCF,2\nCC,3\n")
    packed = load(molecules / "more.csv", data_dir=molecules / "cache")
    found = model.predict(packed)
    assert [bool(error) for error in found.errors] == [False, True, False]
    assert "atomic number 9" in found.errors[1]
    torch.testing.assert_close(found.values, model.predict(["CCO", "CCF", "CC"]).values, equal_nan=True)


def test_a_smiles_with_white_space_in_it_is_no_smiles(molecules):
    predictions = lanczosnet.load_model(molecules / "model").predict(["CC\nO", "CC ethane", " CC ", "C" * 5001])
    assert ["white space" in error for error in predictions.errors] == [True, True, False, False]
    assert "LANCZOSNET_MAX_SMILES" in predictions.errors[3]
    assert not predictions.errors[2]


def test_a_bad_smiles_in_the_middle_keeps_its_place(molecules):
    model = lanczosnet.load_model(molecules / "model")
    predictions = model.predict(["CCO", "C1CC", "CC", "[Au]", ""])
    assert [bool(error) for error in predictions.errors] == [False, True, False, True, True]
    assert "atomic number 79" in predictions.errors[3]
    assert predictions.values.isnan().all(1).tolist() == [False, True, False, True, True]
    alone = model.predict("CC")
    torch.testing.assert_close(alone.values[0], predictions.values[2])
    assert predictions.rows()[1]["length"] is None


WITHOUT_RDKIT = """
import sys
sys.modules["rdkit"] = None
import torch, lanczosnet
from torch_geometric.data import Data
model = lanczosnet.load_model(sys.argv[1])
edge = torch.tensor([[0, 1], [1, 0]])
data = Data(x=torch.zeros(2, 85), edge_index=edge, edge_attr=torch.eye(4)[[1, 1]], edge_weight=torch.ones(2))
print(model.predict(data).values.shape)
print("lightning" in sys.modules)
try:
    model.predict("CCO")
except ImportError as error:
    print(error)
"""


def test_loading_needs_neither_training_data_nor_rdkit_nor_what_trains(molecules):
    (molecules / "table.csv").rename(molecules / "moved.csv")
    command = [sys.executable, "-c", WITHOUT_RDKIT, str(molecules / "model")]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "torch.Size([1, 2])\nFalse\n" in output
    assert "RDKit is needed to read SMILES" in output


def copied(folder, target):
    target.mkdir()
    for name in ("config.json", "model.safetensors"):
        (target / name).write_bytes((folder / name).read_bytes())
    return target


def changed(folder, **changes):
    """As by somebody who knows what they do, and removes the checksum."""
    config = json.loads((folder / "config.json").read_text())
    del config["checksum"]
    (folder / "config.json").write_text(json.dumps(config | changes))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"hidden_channels": 8', '"hidden_channels": 9'),
        ('"seed": 0', '"seed": 1'),
        ('"name": "digits"', '"name": "digit5"'),
        ('"0",', '"O",'),
    ],
)
def test_a_changed_configuration_is_refused_though_it_describes_a_model(digits, tmp_path, old, new):
    changed = copied(digits, tmp_path / "changed")
    text = (changed / "config.json").read_text()
    assert old in text
    (changed / "config.json").write_text(text.replace(old, new, 1))
    with pytest.raises(TrainingError, match=r"config\.json: the document was changed after it was written.*remove"):
        lanczosnet.load_model(changed)


def test_a_configuration_in_another_order_is_refused_and_another_layout_is_not(digits, tmp_path):
    same = copied(digits, tmp_path / "same")
    document = json.loads((same / "config.json").read_text())
    (same / "config.json").write_text(json.dumps(dict(reversed(document.items()))))
    lanczosnet.load_model(same)
    document["task"]["classes"][0].reverse()
    (same / "config.json").write_text(json.dumps(document))
    with pytest.raises(TrainingError, match="its checksum is another"):
        lanczosnet.load_model(same)


def test_a_halved_model_has_a_checksum_of_its_own(digits, tmp_path):
    save_halved(digits, tmp_path)
    assert lanczosnet.load_model(tmp_path).config.checksum != lanczosnet.load_model(digits).config.checksum


def test_what_cannot_be_trusted_is_refused_with_a_clear_message(digits, tmp_path):
    newer = copied(digits, tmp_path / "newer")
    changed(newer, format=99)
    with pytest.raises(TrainingError, match=r"format 99.*update lanczosnet"):
        lanczosnet.load_model(newer)
    torn = copied(digits, tmp_path / "torn")
    (torn / "model.safetensors").write_bytes((torn / "model.safetensors").read_bytes()[:100])
    with pytest.raises(TrainingError, match="missing, torn or changed"):
        lanczosnet.load_model(torn)
    wrong = copied(digits, tmp_path / "wrong")
    weights = load_file(wrong / "model.safetensors")
    name = max(weights, key=lambda key: weights[key].numel())
    save_file(weights | {name: torch.zeros(3)}, wrong / "model.safetensors")
    changed(wrong, weights=sha256_of(wrong / "model.safetensors"))
    with pytest.raises(TrainingError, match=r"does not fit its architecture.*\(3,\)"):
        lanczosnet.load_model(wrong)
    other = copied(digits, tmp_path / "other")
    changed(other, architecture={"name": "transformer", "options": {}})
    with pytest.raises(TrainingError, match="unknown model 'transformer'"):
        lanczosnet.load_model(other)
    (other / "config.json").write_text("{")
    with pytest.raises(TrainingError, match=r"config.json: not a JSON document"):
        lanczosnet.load_model(other)
    with pytest.raises(TrainingError, match="not a model directory"):
        lanczosnet.load_model(tmp_path)


def test_a_folder_that_holds_a_model_is_not_overwritten(digits):
    with pytest.raises(TrainingError, match="already holds a model"):
        run(prepare(JobSpec("digits")), digits)
    with pytest.raises(TrainingError, match="another run"):
        run(prepare(JobSpec("digits")), digits, resume=True)


def test_units_and_scaling_are_kept(real_data, tmp_path):
    pytest.importorskip("rdkit")
    lines = (real_data / "qm8" / "qm8.csv").read_text().splitlines()[:41]
    (tmp_path / "part.csv").write_text("\n".join(lines))
    spec = JobSpec(str(tmp_path / "part.csv"), settings=SMALL, data_options={"targets": ["E1-CC2", "f1-CC2"]})
    job = prepare(spec, tmp_path)
    run(job, tmp_path / "model")
    model = lanczosnet.load_model(tmp_path / "model")
    assert model.task == job.task
    assert model.task.targets == ("E1-CC2", "f1-CC2")
    assert select_targets(job.data, ["f1-CC2"]).y.shape[1] == 1


def test_only_the_graphs_of_a_part_are_predicted(graphs, monkeypatch):
    trained = lanczosnet.load_model(graphs)
    data, parts = original_data(trained)
    items = parts.test
    asked = []
    plain = type(trained).predict
    monkeypatch.setattr(type(trained), "predict", lambda self, some: asked.append(len(some)) or plain(self, some))
    found = evaluate(trained, data, items)
    assert asked == [len(items)] != [len(data)]
    values, y = plain(trained, data).values[items], data.y[items]
    expected = Measures(trained.task, Answers(values), y).mean
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-5)
