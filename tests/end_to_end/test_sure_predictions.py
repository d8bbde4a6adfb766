"""The command line tells how sure predictions are, reads long tables in blocks, and shows one bar."""

import csv
import io

import pytest
from typer.testing import CliRunner

from lanczosnet.cli import predict as command
from lanczosnet.cli.app import app

pytest.importorskip("rdkit")

TARGET = "predicted_y"
TINY = ["--set", "epochs=4", "--set", "hidden_channels=8", "--set", "num_layers=1", "--set", "num_steps=5"]


def invoke(*arguments, expect: int = 0, stdin: str | None = None):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == expect, result.output + repr(result.exception)
    return result


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module", params=["regression", "classification"])
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    texts = [f"{'C' * (1 + i % 10)}{end}" for i in range(20) for end in ("O", "CO", "N")]
    rows = [f"{text},{len(text) % 3 // 2 if request.param == 'classification' else len(text) + 0.5}" for text in texts]
    (folder / "t.csv").write_text("smiles,y\n" + "\n".join(rows) + "\n")
    more = ["--split", "random", "--data-dir", folder, "--seeds", 2]
    invoke("train", folder / "t.csv", *TINY, *more, "--out", folder / "models")
    return folder / "models", request.param


def test_what_is_asked_for_stands_beside_the_predictions(model):
    folder, task = model
    option = "--intervals" if task == "regression" else "--calibrated"
    names = {"lower_y", "upper_y"} if task == "regression" else {"predicted_y_probability"}
    for place in (folder, folder / "seed-0"):
        plain = table(invoke("predict", place, "CCO", "C1CC").stdout)
        level = ["--level", 0.5] if task == "regression" else []
        asked = table(invoke("predict", place, "CCO", "C1CC", option, *level).stdout)
        assert names <= asked[0].keys()
        assert {"nearest_training_similarity", "notice", "error"} <= asked[0].keys()
        assert {asked[1][name] for name in names} == {""}
        if task == "regression":
            assert float(asked[0]["lower_y"]) < float(plain[0][TARGET]) < float(asked[0]["upper_y"])
            wide = table(invoke("predict", place, "CCO", option, "--level", 0.8).stdout)[0]
            assert float(wide["upper_y"]) > float(asked[0]["upper_y"])
        else:
            assert asked[0]["predicted_y_probability"] != plain[0]["predicted_y_probability"]
    wrong, message = {
        "regression": ("--calibrated", "probabilities are of classes"),
        "classification": ("--intervals", "intervals are for numbers"),
    }[task]
    assert message in str(invoke("predict", folder, "CCO", wrong, expect=1).exception)


def test_evaluate_measures_them_on_the_part_that_is_named(model):
    folder, task = model
    names = ["interval coverage", "interval width"] if task == "regression" else ["calibration error"]
    for part in ("val", "test"):
        shown = invoke("evaluate", folder, "--part", part, "--level", 0.5).stdout
        assert all(name in shown for name in names), shown


def test_what_cannot_be_measured_is_said(model):
    folder, task = model
    found = invoke("evaluate", folder, "--level", 0.99)
    assert ("need 99 validation items" in found.stderr) == (task == "regression")
    assert invoke("evaluate", folder, "--level", 0.5).stderr == ""


def test_a_level_without_intervals_is_bad_usage(model):
    folder, _ = model
    assert "--intervals" in invoke("predict", folder, "CCO", "--level", 0.5, expect=2).stderr


@pytest.mark.parametrize("suffix", ["parquet", "npy"])
def test_a_table_does_not_get_the_name_of_another_format(model, tmp_path, suffix):
    told = invoke("predict", model[0], "CCO", "--out", tmp_path / f"found.{suffix}", expect=2).stderr
    assert f"are written as .{suffix}" in " ".join(told.replace("│", "").split())


def test_options_of_data_without_such_data_are_refused(model):
    folder, _ = model
    assert "--data-set is for graphs" in str(invoke("predict", folder, "CCO", "--data-set", "a=b", expect=1).exception)
    told = invoke("evaluate", folder, "--data-set", "a=b", expect=2).stderr
    assert "--data names" in " ".join(told.replace("│", "").split())


def test_where_one_model_is_wanted_a_folder_of_several_is_refused_with_the_name_of_one(model):
    folder, _ = model
    assert "holds 2 models" in str(invoke("report", folder, expect=1).exception)
    told = str(invoke("encode", folder, "CCO", "--out", folder / "f.csv", expect=1).exception)
    assert f"It holds 2 models: name one, such as {folder / 'seed-0'}" in told


def test_a_long_table_is_predicted_block_by_block(model, tmp_path, monkeypatch):
    folder, _ = model
    texts = [f"{'C' * (1 + i % 12)}O" for i in range(11)] + ["C1CC"]
    text = "name,smiles\n" + "".join(f"{i},{smiles}\n" for i, smiles in enumerate(texts))
    (tmp_path / "long.csv").write_text(text)
    whole = table(invoke("predict", folder, tmp_path / "long.csv").stdout)
    held = []
    joined = command._joined
    monkeypatch.setattr(command, "_joined", lambda rows, found: held.append(len(rows)) or joined(rows, found))
    monkeypatch.setattr(command, "BLOCK", 5)
    (tmp_path / "long.smi").write_text("\n".join(texts) + "\n")
    for source, stdin in ((tmp_path / "long.csv", None), ("-", text), (tmp_path / "long.smi", None)):
        held.clear()
        invoke("predict", folder, source, "--out", tmp_path / "out.csv", stdin=stdin)
        assert held == [5, 5, 2]
        found = table((tmp_path / "out.csv").read_text())
        for one, other in zip(found, whole, strict=True):
            assert one["error"] == other["error"]
            if not one["error"] and "predicted_y_probability" not in one:
                assert float(one[TARGET]) == pytest.approx(float(other[TARGET]), rel=1e-5)


def test_a_mistake_in_the_last_row_of_a_file_is_said_before_any_prediction(model, tmp_path, monkeypatch):
    folder, _ = model
    monkeypatch.setattr(command, "BLOCK", 2)
    (tmp_path / "t.csv").write_text("smiles,n\nCO,1\nCCO,2\nCCCO,3\nCO,4,5\n")
    found = invoke("predict", folder, tmp_path / "t.csv", expect=1)
    assert "row 5" in str(found.exception)
    assert found.stdout == ""


def test_one_bar_is_shown_for_the_whole(monkeypatch):
    rich = pytest.importorskip("rich.console")
    from lanczosnet.graphs.progress import progress_bar

    shown = io.StringIO()
    console = rich.Console(file=shown, force_terminal=True, width=120)
    monkeypatch.setattr("rich.console.Console", lambda **_: console)
    with progress_bar("Predicting", 4) as outer:
        with progress_bar("Reading molecules", 2) as inner:
            inner(2)
        outer(4)
    assert "Predicting" in shown.getvalue()
    assert "4/4" in shown.getvalue()
    assert "Reading" not in shown.getvalue()
    with progress_bar("Reading molecules", None) as bar:  # afterwards there may be another
        bar(1)
    assert "Reading" in shown.getvalue()
