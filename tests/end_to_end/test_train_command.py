"""`train`, `evaluate` and `predict`, in this process and in processes that are killed."""

import csv
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

import lanczosnet
from lanczosnet.cli.app import app, main
from lanczosnet.graphs import load, split
from lanczosnet.training import seeds as training_seeds
from lanczosnet.training.engine import devices

COMMAND = [sys.executable, "-m", "lanczosnet.cli"]
TINY = ["--set", "epochs=4", "--set", "hidden_channels=8", "--set", "num_layers=1", "--set", "num_steps=5"]
SMILES = ["C", "CC", "CCO", "c1ccccc1", "C=O", "C#N", "CCN", "O", "CO", "CN", "CCC", "C1CC1"]


def invoke(*arguments, expect: int = 0, stdin: str | None = None):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == expect, result.output + repr(result.exception)
    return result


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of SMILES with two targets, one of them with gaps."""
    pytest.importorskip("rdkit")
    folder = tmp_path_factory.mktemp("molecules")
    rows = [f"{text},{len(text)},{'' if i % 4 == 0 else i}" for i, text in enumerate(SMILES)]
    (folder / "table.csv").write_text("smiles,length,number\n" + "\n".join(rows) + "\n")
    invoke(
        "train",
        folder / "table.csv",
        *TINY,
        "--target-columns",
        "length,number",
        "--out",
        folder / "model",
        "--data-dir",
        folder / "data",
    )
    return folder / "model"


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_train_evaluate_and_predict_agree(tmp_path):
    out = tmp_path / "model"
    result = invoke("train", "digits", *TINY, "--split", "10-per-class", "--out", out, "--json")
    trained = json.loads(result.stdout)
    evaluated = json.loads(invoke("evaluate", out, "--json").stdout)
    assert evaluated["accuracy"] == pytest.approx(trained["test"]["accuracy"])
    assert evaluated["items"] == 1000
    validated = json.loads(invoke("evaluate", out, "--part", "val", "--json").stdout)
    assert validated["accuracy"] == pytest.approx(trained["val"]["accuracy"])
    assert len(table(invoke("predict", out, "digits").stdout)) == 1797
    assert "accuracy" in invoke("evaluate", out).stdout


def test_training_counts_repeated_molecules_and_unknown_categories(tmp_path):
    pytest.importorskip("rdkit")
    rows = [f"{text},{i}" for i, text in enumerate([*SMILES, "OCC", "C(O)C", "[U]"])]
    (tmp_path / "table.csv").write_text("smiles,y\n" + "\n".join(rows) + "\n")
    told = invoke("train", tmp_path / "table.csv", *TINY, "--out", tmp_path / "model", "--data-dir", tmp_path).stderr
    assert "rows repeat a molecule of another row (by canonical SMILES)" in told
    assert "1 atom of an unknown element" in told


def test_a_graph_is_trained_in_another_order_and_everything_else_keeps_its_own(tmp_path):
    arguments = ("train", "karate", *TINY, "--split", "40/30/30", "--json")
    ordered = ("--node-order", "rcm", "--save-config", tmp_path / "run.toml", "--out", tmp_path / "rcm")
    trained = json.loads(invoke(*arguments, *ordered).stdout)
    assert 'node_order = "rcm"' in (tmp_path / "run.toml").read_text()
    assert json.loads((tmp_path / "rcm" / "config.json").read_text())["training"]["node_order"] == "rcm"
    evaluated = json.loads(invoke("evaluate", tmp_path / "rcm", "--json").stdout)
    assert evaluated["accuracy"] == pytest.approx(trained["test"]["accuracy"])
    weights = (tmp_path / "rcm" / "model.safetensors").read_bytes()
    invoke(*arguments, "--out", tmp_path / "given")
    assert (tmp_path / "given" / "model.safetensors").read_bytes() != weights
    wrong = invoke(*arguments, "--node-order", "random", "--out", tmp_path / "wrong", expect=1)
    assert "there is no node order 'random': choose rcm, degree, metis" in str(wrong.exception)


def test_one_command_trains_on_every_fold(tmp_path):
    arguments = ("train", "karate", *TINY, "--folds", "3", "--out", tmp_path, "--json")
    found = json.loads(invoke(*arguments).stdout)
    assert found["runs"] == ["fold-0", "fold-1", "fold-2"]
    assert found["mean_accuracy"] == pytest.approx(sum(found["test_accuracy"]) / 3)
    for name, accuracy in zip(found["runs"], found["test_accuracy"], strict=True):
        again = json.loads(invoke("evaluate", tmp_path / name, "--json").stdout)
        assert again["accuracy"] == pytest.approx(accuracy)
    assert json.loads(invoke(*arguments, "--resume").stdout) == found
    alone = invoke("train", "karate", *TINY, "--folds", "3", "--fold", "1", "--out", tmp_path / "one", "--json")
    assert json.loads(alone.stdout)["test"]["accuracy"] == found["test_accuracy"][1]


def test_a_split_is_drawn_again_with_a_seed_for_each(tmp_path):
    arguments = ("train", "karate", *TINY, "--split", "40/30/30", "--repeat", "2", "--out", tmp_path)
    text = invoke(*arguments).stdout
    assert "±" in text
    configs = [json.loads((tmp_path / f"split-{i}" / "config.json").read_text()) for i in range(2)]
    assert configs[0]["split"]["hash"] != configs[1]["split"]["hash"]
    assert [config["training"]["seed"] for config in configs] == [0, 1]


def test_a_run_is_a_file_that_the_command_line_changes(tmp_path):
    file, first = tmp_path / "run.toml", tmp_path / "first"
    arguments = ("train", "karate", *TINY, "--split", "40/30/30", "--features", "row", "--save-config", file)
    invoke(*arguments, "--out", first)
    invoke("train", "--config", file, "--out", tmp_path / "same")
    for name in ("metrics.jsonl", "model.safetensors"):
        assert (tmp_path / "same" / name).read_bytes() == (first / name).read_bytes()
    invoke("train", "--config", file, "--out", tmp_path / "other", "--seed", 3, "--set", "epochs=2")
    config = json.loads((tmp_path / "other" / "config.json").read_text())
    assert (config["training"]["seed"], config["training"]["settings"]["epochs"]) == (3, 2)
    assert config["architecture"]["options"]["hidden_channels"] == 8
    assert config["data"]["scaling"] == {"kind": "row"}
    (tmp_path / "wrong.toml").write_text("epoch = 3")
    assert "epoch" in str(invoke("train", "karate", "--config", tmp_path / "wrong.toml", expect=1).exception)


def test_a_file_and_a_column_say_the_split(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i % 5},{i % 3},{i % 2},{('train', 'val', 'test')[i % 3]}" for i in range(20)]
    (tmp_path / "nodes.csv").write_text("a,b,label,part\n" + "\n".join(rows) + "\n")
    (tmp_path / "split.json").write_text('{"train": [0, 1, 2, 3], "val": [4, 5], "test": [6, 7]}')
    invoke("train", "nodes.csv", *TINY, "--data-set", "split_column=part", "--data-set", "k=3", "--out", "column")
    held = json.loads((tmp_path / "column" / "config.json").read_text())
    assert (held["split"]["kind"], held["split"]["train"], held["data"]["features"]) == ("column", 7, ["a", "b"])
    invoke("train", "karate", *TINY, "--split", "split.json", "--out", "file")
    monkeypatch.chdir("/")
    assert json.loads(invoke("evaluate", tmp_path / "file", "--json").stdout)["items"] == 2


@pytest.mark.parametrize(
    "wrong",
    [
        ["--mask", "first"],
        ["--mask", "1", "--folds", "3"],
        ["--mask", "1", "--split", "uniform"],
        ["--folds", "3", "--split", "public"],
        ["--fold", "1"],
        ["--mask", "all", "--repeat", "2"],
    ],
)
def test_options_of_splits_that_do_not_go_together_are_bad_usage(wrong):
    invoke("train", "karate", *wrong, expect=2)


def test_progress_goes_to_standard_error_in_plain_lines(tmp_path):
    result = invoke("train", "karate", *TINY, "--split", "1-per-class", "--out", tmp_path)
    assert "epoch 4/4" in result.stderr
    assert "epoch 4/4" not in result.stdout
    assert "\x1b" not in result.stderr
    assert "test" in result.stdout


def test_a_predicted_table_has_the_rows_of_its_input_in_order(model, tmp_path):
    rows = [("a", "CCO", "3"), ("b", "C1CC", ""), ("c", "CC", "2"), ("d", "", "x"), ("e", "[Au]", "1")]
    path = tmp_path / "input.csv"
    path.write_text("name,smiles,length\n" + "\n".join(",".join(row) for row in rows) + "\n")
    answers = table(invoke("predict", model, path).stdout)
    assert [(row["name"], row["smiles"], row["length"]) for row in answers] == rows
    assert [bool(row["error"]) for row in answers] == [False, True, False, True, True]
    assert [row["predicted_length"] != "" for row in answers] == [True, False, True, False, False]
    assert float(answers[0]["predicted_number"]) == pytest.approx(float(answers[0]["predicted_number"]))
    invoke("predict", model, path, "--out", tmp_path / "answers.csv")
    assert table((tmp_path / "answers.csv").read_text()) == answers
    assert table(invoke("predict", model, "-", stdin=path.read_text()).stdout) == answers


def test_smiles_on_the_command_line(model):
    (nothing,) = json.loads(invoke("predict", model, "", "--json").stdout)
    assert nothing["error"]
    assert nothing["predicted_length"] is None
    rows = json.loads(invoke("predict", model, "CCO", "nonsense", "CC", "--json").stdout)
    assert [row["smiles"] for row in rows] == ["CCO", "nonsense", "CC"]
    assert [bool(row["error"]) for row in rows] == [False, True, False]
    assert rows[1]["predicted_length"] is None


def test_evaluate_takes_other_data(model, tmp_path):
    (tmp_path / "more.csv").write_text("smiles,length,number\nCCO,3,1\nCC,2,\n")
    facts = json.loads(
        invoke("evaluate", model, "--data", tmp_path / "more.csv", "--data-dir", tmp_path, "--json").stdout
    )
    assert facts["items"] == 2
    assert facts["mae"] > 0


def test_evaluate_finds_targets_by_name(model, tmp_path):
    (tmp_path / "same.csv").write_text("smiles,length,number\nCCO,3,1\nCC,2,5\n")
    (tmp_path / "other.csv").write_text("smiles,name,number,length\nCCO,a,1,3\nCC,b,5,2\n")
    (tmp_path / "less.csv").write_text("smiles,number,size\nCCO,1,3\nCC,5,2\n")
    same, other = (
        json.loads(invoke("evaluate", model, "--data", tmp_path / name, "--data-dir", tmp_path, "--json").stdout)
        for name in ("same.csv", "other.csv")
    )
    assert {**same, "data": ""} == {**other, "data": ""}
    missing = invoke("evaluate", model, "--data", tmp_path / "less.csv", "--data-dir", tmp_path, expect=1)
    assert "there is no column 'length'" in str(missing.exception)


def test_evaluate_reads_other_molecules_as_those_of_the_training(tmp_path):
    pytest.importorskip("rdkit")
    text = "text,kind\n" + "".join(f"{text},{i % 2}\n" for i, text in enumerate(SMILES))
    for name in ("t.csv", "u.csv"):
        (tmp_path / name).write_text(text)
    options = ["--data-set", "smiles=text", "--data-set", "task=classification"]
    invoke("train", tmp_path / "t.csv", *TINY, *options, "--out", tmp_path / "m", "--data-dir", tmp_path)
    facts = invoke("evaluate", tmp_path / "m", "--data", tmp_path / "u.csv", "--data-dir", tmp_path, "--json").stdout
    assert json.loads(facts)["items"] == len(SMILES)


def test_evaluate_finds_features_by_name(tmp_path):
    rows = [(i, i % 7, i % 2) for i in range(40)]
    (tmp_path / "t.csv").write_text("a,b,label\n" + "".join(f"{a},{b},{y}\n" for a, b, y in rows))
    (tmp_path / "u.csv").write_text("b,label,a\n" + "".join(f"{b},{y},{a}\n" for a, b, y in rows))
    (tmp_path / "v.csv").write_text("b,label,c\n" + "".join(f"{b},{y},{a}\n" for a, b, y in rows))
    invoke("train", tmp_path / "t.csv", *TINY, "--data-set", "k=3", "--out", tmp_path / "m")
    trained, graphs = lanczosnet.load_model(tmp_path / "m"), [load(tmp_path / name, k=3) for name in ("t.csv", "u.csv")]
    (found,), (again,) = (trained.predict(graph).probabilities for graph in graphs)
    assert not graphs[0].x.equal(graphs[1].x)
    assert found.equal(again)
    other = invoke("evaluate", tmp_path / "m", "--data", tmp_path / "v.csv", expect=1)
    assert "The model needs a, b" in str(other.exception)


def test_a_table_comes_back_whole(model, tmp_path):
    (tmp_path / "t.csv").write_text(",smiles,note\n0,CCO,x\n1,CC\n")
    text = invoke("predict", model, tmp_path / "t.csv").stdout
    added = "predicted_length,predicted_number,nearest_training_similarity,notice,error"
    assert text.splitlines()[0] == f",smiles,note,{added}"
    assert [(row[""], row["note"]) for row in table(text)] == [("0", "x"), ("1", "")]
    assert invoke("predict", model, "-", stdin="\ufeffsmiles\nCCO\n").stdout.startswith("smiles,predicted_length")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smiles,a,a\nCC,1,2\n", "t.csv, row 1: two columns are named 'a'"),
        ("smiles,error\nCC,mine\n", "already has columns named error"),
        ("smiles,a\n\nCC,1,2\n", "row 3 of t.csv has 3 cells, but the header 2"),
        ("smiles\n", "t.csv has no rows"),
        ("", "t.csv has no rows"),
    ],
)
def test_nothing_of_a_table_is_lost_silently(model, text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(text)
    assert message in str(invoke("predict", model, "t.csv", expect=1).exception)


def test_a_file_is_never_read_as_smiles(model, tmp_path):
    (tmp_path / "t.csv").write_text("smiles\nCC\n")
    assert "there is no file 'no.csv'" in str(invoke("predict", model, "no.csv", expect=1).exception)
    assert "one file at a time" in str(invoke("predict", model, tmp_path / "t.csv", "CC", expect=1).exception)


def test_nodes_with_edges_are_predicted_from_their_files(tmp_path):
    (tmp_path / "nodes.csv").write_text("name,a,class\n" + "".join(f"n{i},{i % 5},{'xy'[i % 2]}\n" for i in range(30)))
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"n{i},n{(i + 2) % 30}\n" for i in range(30)))
    options = ["--data-set", f"edges={tmp_path / 'edges.csv'}", "--data-set", "id=name", "--data-set", "label=class"]
    invoke("train", tmp_path / "nodes.csv", *TINY, *options, "--out", tmp_path / "m")
    answers = table(invoke("predict", tmp_path / "m", tmp_path / "nodes.csv", *options).stdout)
    assert [row["name"] for row in answers] == [f"n{i}" for i in range(30)]
    assert {row["predicted_class"] for row in answers} <= {"x", "y"}


def test_json_has_null_where_there_is_no_number(model, tmp_path):
    (tmp_path / "t.csv").write_text("smiles,length,number\nCCO,3,\n")
    text = invoke("evaluate", model, "--data", tmp_path / "t.csv", "--data-dir", tmp_path, "--json").stdout
    assert "NaN" not in text
    assert json.loads(text)["by_target"]["number"] is None


def test_changed_data_is_not_mistaken_for_the_training_data(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,label\n" + "\n".join(f"{i},{i % 7},{i % 2}" for i in range(40)))
    invoke("train", path, *TINY, "--data-set", "k=3", "--out", tmp_path / "m")
    invoke("evaluate", tmp_path / "m")
    path.write_text("a,b,label\n" + "\n".join(f"{i},{i % 7},{i % 3 % 2}" for i in range(40)))
    assert "has changed" in str(invoke("evaluate", tmp_path / "m", expect=1).exception)
    assert json.loads(invoke("evaluate", tmp_path / "m", "--data", path, "--json").stdout)["items"] == 40


def test_changed_molecules_are_not_mistaken_for_those_of_the_training(tmp_path):
    pytest.importorskip("rdkit")
    path = tmp_path / "t.csv"

    def write(texts):
        path.write_text("smiles,number\n" + "".join(f"{text},{i}\n" for i, text in enumerate(texts)))

    write(SMILES)
    arguments = ["train", path, *TINY, "--out", tmp_path / "m", "--data-dir", tmp_path / "data"]
    invoke(*arguments)
    invoke("evaluate", tmp_path / "m", "--data-dir", tmp_path / "data")
    write([*SMILES[1:], SMILES[0]])
    assert "has changed" in str(invoke("evaluate", tmp_path / "m", "--data-dir", tmp_path / "data", expect=1).exception)
    assert "another run" in str(invoke(*arguments, "--resume", expect=1).exception)


def test_validation_items_without_targets_are_an_error(tmp_path):
    pytest.importorskip("rdkit")
    path = tmp_path / "t.csv"
    path.write_text("smiles,number\n" + "".join(f"{text},1\n" for text in SMILES))
    unknown = split(load(path, data_dir=tmp_path), "random", seed=0).val.tolist()
    rows = [f"{text},{'' if i in unknown else i}\n" for i, text in enumerate(SMILES)]
    path.write_text("smiles,number\n" + "".join(rows))
    failed = invoke("train", path, *TINY, "--out", tmp_path / "m", "--data-dir", tmp_path, expect=1)
    assert "no validation item of t has a target" in str(failed.exception)


def test_a_table_of_features_is_predicted_by_its_columns(tmp_path):
    rows = [f"{i},{i % 7},{i % 2}" for i in range(40)]
    (tmp_path / "t.csv").write_text("a,b,label\n" + "\n".join(rows) + "\n")
    invoke("train", tmp_path / "t.csv", *TINY, "--data-set", "k=3", "--out", tmp_path / "m")
    (tmp_path / "new.csv").write_text("b,a\n1,2\n,3\n4,five\n6,7\n")
    answers = table(invoke("predict", tmp_path / "m", tmp_path / "new.csv").stdout)
    assert [row["b"] for row in answers] == ["1", "", "4", "6"]
    assert [bool(row["error"]) for row in answers] == [False, True, True, False]
    assert answers[0]["predicted_label"] in ("0", "1")


def test_the_remedy_for_a_bad_smiles_is_one_that_the_command_takes(tmp_path):
    pytest.importorskip("rdkit")
    rows = [f"{text},{len(text)}" for text in (*SMILES, "nonsense")]
    (tmp_path / "t.csv").write_text("smiles,length\n" + "\n".join(rows) + "\n")
    arguments = ["train", tmp_path / "t.csv", *TINY, "--out", tmp_path / "m", "--data-dir", tmp_path]
    message = str(invoke(*arguments, expect=1).exception)
    assert f"row {len(rows) + 1}: RDKit cannot parse 'nonsense'" in message
    remedy = re.search(r"`(--data-set [^`]*)`", message)[1]
    facts = json.loads(invoke(*arguments, *remedy.split(), "--json").stdout)
    assert facts["epochs"] == 4


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "name;SMILES\nethanol;CCO\nbad;C1CC\n"),
        ("a.tsv", "structure\tname\nCCO\tethanol\nC1CC\tbad\n"),
        ("a.smi", "CCO ethanol\nC1CC bad\n"),
    ],
)
def test_molecules_are_predicted_and_encoded_from_any_table(model, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    column = ["--smiles-column", "structure"] if "structure" in text else []
    answers = table(invoke("predict", model, tmp_path / name, *column).stdout)
    assert [answer["name"] for answer in answers] == ["ethanol", "bad"]
    assert answers[0]["predicted_length"]
    assert "RDKit cannot parse" in answers[1]["error"]
    for out in ("f.csv", "f.npy"):
        invoke("encode", model, tmp_path / name, *column, "--out", tmp_path / out)
    found = np.load(tmp_path / "f.npy")
    assert np.isnan(found).any(1).tolist() == [False, True]
    written = table((tmp_path / "f.csv").read_text())
    assert len(written) == 2
    assert float(written[0]["f0"]) == pytest.approx(found[0, 0], rel=1e-5)
    assert written[1]["error"]


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_models_of_several_seeds_predict_together(tmp_path, task):
    pytest.importorskip("rdkit")
    rows = [f"{text},{i % 2 if task == 'classification' else i + 0.5}" for i, text in enumerate(SMILES)]
    (tmp_path / "t.csv").write_text("smiles,y\n" + "\n".join(rows) + "\n")
    for seed in (0, 1):
        arguments = ["--seed", seed, "--out", tmp_path / "m" / f"seed-{seed}", "--data-dir", tmp_path]
        invoke("train", tmp_path / "t.csv", *TINY, *arguments)
    alone = [table(invoke("predict", tmp_path / "m" / f"seed-{seed}", "CCO").stdout)[0] for seed in (0, 1)]
    together, bad = table(invoke("predict", tmp_path / "m", "CCO", "C1CC").stdout)
    assert (bad["predicted_y"], bad["uncertainty_y"]) == ("", "")
    assert float(together["uncertainty_y"]) > 0
    if task == "regression":
        values = [float(answer["predicted_y"]) for answer in alone]
        assert float(together["predicted_y"]) == pytest.approx(sum(values) / 2, rel=1e-4)
        assert float(together["uncertainty_y"]) == pytest.approx(abs(values[0] - values[1]) / 2**0.5, rel=1e-3)


MISTAKES = [
    (["train", "coar"], 1, "Known data sets"),
    (["train", "karate", "--set", "epohcs=3"], 1, "no setting 'epohcs'"),
    (["train", "karate", "--set", "epochs=many"], 1, "epochs must be a number"),
    (["train", "karate", "--set", "epochs"], 2, "NAME=VALUE"),
    (["train", "karate", "--data-set", "n=3"], 1, "without such an option"),
    (["train", "karate", "--model", "lanczosnt"], 1, "unknown model"),
    (["train", "karate", "--recipe", "old"], 1, "paper, modern"),
    (["train", "karate", "--split", "scafold"], 1, "no split"),
    (["train", "karate", "--device", "tpu9"], 2, "none of auto"),
    (["train", "karate", "--set", "hidden_channels=0"], 1, "cannot be built"),
    (["train", "karate", "--set", "num_layers=abc"], 1, "is a whole number"),
    (["train", "karate", "--set", "short_scales=abc"], 1, "the option short_scales"),
    (["table", "citation", "--data-set", "n=3"], 1, "without such an option"),
    (["train", "path", "--split", "uniform"], 1, "has no targets"),
    (["train"], 2, "Missing argument"),
    (["evaluate", "nowhere"], 1, "not a model directory"),
    (["evaluate", "nowhere", "--part", "tset"], 2, "must be train, val or test"),
    (["predict", "nowhere", "C"], 1, "not a model directory"),
    (["predict"], 2, "Missing argument"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), MISTAKES, ids=lambda value: str(value)[:60])
def test_a_mistake_ends_with_its_code_and_a_message(arguments, code, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["lanczosnet", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    error = capsys.readouterr().err
    assert stop.value.code == code
    assert message in error
    assert "Traceback" not in error


@pytest.mark.parametrize("verb", ["train", "tune", "evaluate", "predict"])
def test_every_verb_has_help_with_an_example(verb):
    assert f"lanczosnet {verb} " in invoke(verb, "--help").stdout


def test_a_model_is_replaced_only_on_demand(tmp_path):
    arguments = ["train", "karate", *TINY, "--split", "1-per-class", "--out", tmp_path]
    invoke(*arguments)
    assert "already holds a model" in str(invoke(*arguments, expect=1).exception)
    before = (tmp_path / "config.json").read_text()
    for mistake in ("foo=1", "num_steps=0", "short_scales=abc"):
        invoke(*arguments, "--overwrite", "--set", mistake, expect=1)
    assert (tmp_path / "config.json").read_text() == before
    invoke(*arguments, "--overwrite", "--seed", "1")
    assert json.loads((tmp_path / "config.json").read_text())["training"]["seed"] == 1
    invoke(*arguments, "--resume", "--seed", "1")


def test_an_interrupted_run_is_begun_anew_on_demand_only(tmp_path):
    arguments = ["train", "karate", *TINY, "--split", "1-per-class", "--out", tmp_path]
    (tmp_path / "checkpoint.safetensors").write_bytes(b"of a run that was killed")
    assert "holds an interrupted run" in str(invoke(*arguments, expect=1).exception)
    invoke(*arguments, "--overwrite")
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_evaluate_finds_the_files_of_the_training_from_another_folder(tmp_path, monkeypatch):
    rows = [f"{node},{node % 3},{node % 2}" for node in range(20)]
    (tmp_path / "nodes.csv").write_text("id,size,kind\n" + "\n".join(rows) + "\n")
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(f"{i},{i + 2}" for i in range(18)) + "\n")
    monkeypatch.chdir(tmp_path)
    options = ["--data-set", "edges=edges.csv", "--data-set", "label=kind"]
    invoke("train", "nodes.csv", *options, *TINY, "--split", "2-per-class", "--out", "model")
    here = invoke("evaluate", "model", "--json").stdout
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    there = json.loads(invoke("evaluate", tmp_path / "model", "--json").stdout)
    assert there["accuracy"] == json.loads(here)["accuracy"]


def test_tensorboard_on_request(tmp_path):
    pytest.importorskip("tensorboard")
    invoke("train", "karate", *TINY, "--split", "1-per-class", "--out", tmp_path, "--tensorboard")
    assert list((tmp_path / "tensorboard").iterdir())


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize("more", [[], ["--non-deterministic"], ["--any-order"]])
def test_training_is_deterministic_unless_asked_otherwise(seeds, more, monkeypatch, tmp_path):
    seen = []
    making = devices.fabric_for

    def noted(device="auto", precision="32-true", *, deterministic=True, **others):
        seen.append(deterministic)
        return making(device, precision, deterministic=deterministic, **others)

    monkeypatch.setattr(devices, "fabric_for", noted)
    monkeypatch.setattr(training_seeds, "run_specs", partial(training_seeds.run_specs, concurrent=True))
    monkeypatch.setattr(training_seeds, "fabric_for", noted)
    arguments = ["train", "karate", "--split", "1-per-class", *TINY, "--seeds", seeds, "--out", tmp_path / "model"]
    result = invoke(*arguments, *more)
    assert seen == [not more]
    assert ("--any-order is deprecated: use --non-deterministic" in result.stderr) == ("--any-order" in more)
    assert "--any-order" not in invoke("train", "--help").stdout


def test_the_command_line_names_the_options_of_arguments(tmp_path, monkeypatch, capsys):
    arguments = ["train", "karate", *TINY, "--split", "1-per-class", "--out", str(tmp_path)]
    invoke(*arguments)
    monkeypatch.setattr(sys, "argv", ["lanczosnet", *arguments])
    with pytest.raises(SystemExit, match="1"):
        main()
    assert "already holds a model: pass --overwrite, or choose another folder with --out" in capsys.readouterr().err


def test_a_diverging_run_ends_with_1_and_keeps_what_it_had(tmp_path, monkeypatch):
    monkeypatch.setattr("lanczosnet.training.trainer.learning_rate", lambda recipe, step, _: 1e-2 if step < 3 else 1e38)
    settings = ["--set", "epochs=20", "--set", "averaging=0"]
    result = invoke("train", "digits", *TINY, *settings, "--out", tmp_path, expect=1)
    assert "the best weights, of epoch 3, are kept. Try a smaller learning_rate" in str(result.exception)
    assert "accuracy" in invoke("evaluate", tmp_path).stdout
    assert json.loads((tmp_path / "config.json").read_text())["result"]["stopped"] == "diverged"


LONG = ["--set", "epochs=120", "--set", "hidden_channels=16", "--set", "num_steps=5", "--set", "dropout=0.5"]


def started(*arguments) -> subprocess.Popen:
    """With Ctrl-C heard, also where the tests run in the background of a shell, which has children ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen([*COMMAND, *map(str, arguments)], stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for_lines(path, count: int, process: subprocess.Popen) -> None:
    while process.poll() is None and (not path.exists() or path.read_text().count("\n") < count):
        time.sleep(0.005)


@pytest.mark.slow
def test_a_run_killed_at_random_points_ends_bit_identical(tmp_path):
    arguments = ["train", "digits", *LONG, "--split", "10-per-class", "--checkpoint-seconds", "0", "--device", "cpu"]
    invoke(*arguments, "--out", tmp_path / "whole")
    chance = random.Random(os.getpid())
    out = tmp_path / "killed"
    kills = 0
    for first, last in ((1, 30), (30, 60), (60, 90)):
        process = started(*arguments, "--out", out, "--resume")
        wait_for_lines(out / "metrics.jsonl", chance.randint(first, last), process)
        time.sleep(chance.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += not (out / "config.json").exists()
    assert kills >= 2, "it was killed too late to show anything"
    invoke(*arguments, "--out", out, "--resume")
    for name in ("model.safetensors", "metrics.jsonl", "config.json"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    expected = {"model.safetensors", "metrics.jsonl", "config.json", "report.html"}
    leftovers = {path.name for path in out.iterdir()} - expected
    assert all(name.endswith(".tmp") for name in leftovers), leftovers


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_says_the_command_to_resume(tmp_path, number, status):
    arguments = ["train", "digits", *LONG, "--split", "10-per-class", "--out", tmp_path, "--set", "epochs=5000"]
    process = started(*arguments)
    wait_for_lines(tmp_path / "metrics.jsonl", 3, process)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == status
    assert "to continue: lanczosnet train digits" in error
    assert error.rstrip().endswith("--resume")
    assert "Traceback" not in error
    assert (tmp_path / "checkpoint.safetensors").exists()
