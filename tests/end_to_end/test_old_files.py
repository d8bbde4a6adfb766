"""Files that an earlier version wrote still work: a model directory, an interrupted run, result lines."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from lanczosnet import load_model
from lanczosnet.cli.app import app
from lanczosnet.experiments import Store
from lanczosnet.experiments.tables import citation_grid
from lanczosnet.graphs import load
from lanczosnet.training import JobSpec, prepare, run
from lanczosnet.training.engine.devices import fabric_for

DATA = Path(__file__).resolve().parents[1] / "data"
SPEC = JobSpec(
    "karate",
    settings={"epochs": 6, "hidden_channels": 8, "num_layers": 1, "num_steps": 5, "filter_channels": (4,)},
    split="1-per-class",
    seed=3,
)


def result_of(folder: Path) -> dict:
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))["result"]


def test_a_model_is_loaded_and_predicts() -> None:
    model, data = load_model(DATA / "model"), load("karate")
    predicted = model.predict(data)
    assert len(predicted) == 34
    measured = CliRunner().invoke(app, ["evaluate", str(DATA / "model"), "--json"])
    expected = result_of(DATA / "model")["metrics"]["test"]["accuracy"]
    assert json.loads(measured.stdout)["accuracy"] == pytest.approx(expected)


def test_a_finished_run_is_recognised(tmp_path: Path) -> None:
    shutil.copytree(DATA / "model", tmp_path / "model")
    result = run(prepare(SPEC), tmp_path / "model", resume=True)
    assert vars(result) == result_of(DATA / "model") | {"metrics_by_target": {}}


def test_an_interrupted_run_goes_on_to_the_same_model(tmp_path: Path) -> None:
    shutil.copytree(DATA / "interrupted_run", tmp_path / "run")
    reports = []
    result = run(prepare(SPEC), tmp_path / "run", fabric=fabric_for("cpu"), resume=True, on_epoch=reports.append)
    assert [report.epoch for report in reports] == [4, 5, 6]
    for part, values in result_of(DATA / "model")["metrics"].items():
        assert values.items() <= result.metrics[part].items()
    new, old = (load_model(folder).network.state_dict() for folder in (tmp_path / "run", DATA / "model"))
    torch.testing.assert_close(new, old)


def test_result_lines_make_a_table_and_are_not_run_again() -> None:
    printed = CliRunner().invoke(app, ["table", "citation", "--from", str(DATA / "results.jsonl"), "--format", "csv"])
    assert printed.exit_code == 0, printed.output
    assert {text.split(",")[2] for text in printed.stdout.splitlines()[1:]} == {"GCN", "LanczosNet"}
    lines = Store(DATA / "results.jsonl").lines()
    grid = citation_grid(datasets=["cora"], splits=["public"], models=["gcn", "lanczosnet"], seeds=[0, 1, 2])
    assert {run.key for run in grid.runs} == lines.keys()
