"""The table of molecules: its cells, what stands beside them, and lines that another program records."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from lanczosnet.cli.app import app
from lanczosnet.experiments import Store
from lanczosnet.experiments.hyperparameters.molecule_net_rows import CHEMPROP, LANCZOSNET
from lanczosnet.experiments.published import published
from lanczosnet.experiments.tables import molecules_grid, molecules_spec
from lanczosnet.experiments.tables.molecules_table import ALWAYS, DATASETS, METRICS, SPLITS, chemprop_cell
from lanczosnet.experiments.verify import comparable, run_of
from lanczosnet.graphs import Split, load
from lanczosnet.graphs.data_sets.molecule_sets import MOLECULE_SETS
from lanczosnet.report import Table, render
from lanczosnet.training import architecture_for
from lanczosnet.training.tasks import task_of

ESOL = {"datasets": ["esol"], "splits": ["random"]}
ENDED = {"best_epoch": 1, "epochs": 1, "stopped": "all epochs done", "finished_at": "2026-01-01T00:00:00+00:00"}


def line_of(run, value):
    about = {"split_hash": "0" * 16, "split_seed": run.seed, "seed": run.seed, "seconds": 1.0, "hardware": "cpu"}
    scores = {"mae": value / 2, "rmse": value, "roc_auc": value}
    measured = {"metrics": {"val": scores, "test": scores}, "by_target": {"val": {"y": value}, "test": {"y": value}}}
    return {"key": run.key, **run.cell.facts(), **about, **measured, **ENDED, "versions": {}, "commit": None}


def lines_of(cell, values):
    return [line_of(cell.run(seed), value) for seed, value in enumerate(values)]


def test_every_row_can_be_loaded_and_has_a_metric_of_the_table():
    assert set(ALWAYS) <= DATASETS.keys() < MOLECULE_SETS.keys()
    assert {MOLECULE_SETS[name].metric for name in DATASETS} == METRICS.keys()
    for row in published("molecules"):
        assert row["dataset"] in DATASETS
        assert row["split"] in SPLITS


def test_the_row_has_the_defaults_of_train(tmp_path):
    path = tmp_path / "toy.csv"
    path.write_text("smiles,y\nCCO,1.5\nCCN,2\nCCC,3\nc1ccccc1,4\n", encoding="utf-8")
    data = load(path, data_dir=tmp_path)
    task = task_of(data, torch.arange(4))
    default, written = (architecture_for(data, task, "lanczosnet", options) for options in ({}, LANCZOSNET.options))
    assert {**written.options, **default.options} == written.options
    assert repr(default.blank()) == repr(written.blank())
    assert default.blank().num_steps == written.blank().num_steps


def test_ours_stands_above_the_others_on_the_same_splits_and_what_is_published():
    (ours,) = molecules_grid(datasets=["bbbp"], splits=["scaffold"], models=["lanczosnet"]).cells
    lines = lines_of(ours, [0.90, 0.92]) + lines_of(chemprop_cell("bbbp", "scaffold"), [0.80, 0.82])
    table = Table.from_records(molecules_spec().filled(lines))
    assert table.rows == (("BBBP", "scaffold", "ROC-AUC"),)
    beside = table.comparison(table.rows[0], "LanczosNet", "chemprop 2.3.1, run here")
    assert (round(beside.mean, 3), beside.runs, beside.reaches_mean) == (0.81, 2, True)
    assert table.comparison(table.rows[0], "LanczosNet", "MoleculeNet leaderboard, GCN").mean == 0.9214
    assert "0.910 ± 0.014" in render(table, "markdown")


def test_lower_is_better_for_errors_alone():
    grid = molecules_grid(datasets=["esol", "bbbp"], splits=["random"], models=["lanczosnet"])
    lines = [line for cell in grid.cells for line in lines_of(cell, [0.50, 0.51, 0.52])]
    for dataset in ("esol", "bbbp"):
        lines += lines_of(chemprop_cell(dataset, "random"), [0.90, 0.91, 0.92])
    table = Table.from_records(molecules_spec().filled(lines))
    marks = [table.comparison(row, "LanczosNet", "chemprop 2.3.1, run here").mark for row in table.rows]
    assert (marks, [row[0] for row in table.rows]) == (["+", "-"], ["ESOL", "BBBP"])


def test_a_line_describes_its_run_and_has_the_split_of_its_seed():
    for run in molecules_grid(**ESOL, seeds=[3]).runs:
        assert run_of(json.loads(json.dumps(line_of(run, 0.5)))).key == run.key
        assert (run.spec().split, run.spec().split_seed) == ("random", 3)


def test_lines_of_chemprop_are_shown_and_never_run_nor_repeated(tmp_path):
    store, grid = Store(tmp_path / "lines"), molecules_grid(**ESOL, seeds=[0])
    for line in [*lines_of(chemprop_cell("esol", "random"), [0.6]), *(line_of(run, 0.5) for run in grid.runs)]:
        store.append(line)
    assert CHEMPROP.model not in {cell.model for cell in grid.cells}
    given = ["table", "molecules", "--datasets", "esol", "--splits", "random", "--seeds", "1"]
    shown = CliRunner().invoke(app, [*given, "--out", str(tmp_path / "lines"), "--device", "cpu"])
    assert shown.exit_code == 0, shown.output
    assert "chemprop 2.3.1, run here" in shown.stdout
    assert "random forest, run here" in shown.stdout
    again = CliRunner().invoke(app, [*given, "--from", str(tmp_path / "lines")])
    assert again.stdout == shown.stdout
    lines = [line | {"hardware": "CPU"} for line in store.lines().values()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lanczosnet.experiments.verify.hardware", lambda device: "CPU")
        assert {line["model"] for line in comparable(lines, "cpu")} == {"lanczosnet", "random-forest"}


def test_the_page_has_one_table_with_all_of_them(tmp_path):
    store, grid = Store(tmp_path / "lines"), molecules_grid(**ESOL, seeds=[0])
    for line in [*lines_of(chemprop_cell("esol", "random"), [0.6]), *(line_of(run, 0.5) for run in grid.runs)]:
        store.append(line)
    done = CliRunner().invoke(app, ["report", str(tmp_path / "lines"), "--out", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "chemprop 2.3.1, run here" in page


@pytest.mark.data
def test_a_slice_runs_with_its_forest_and_is_not_repeated(real_data, tmp_path):
    out = tmp_path / "molecules"
    given = ["table", "molecules", "--datasets", "freesolv", "--splits", "scaffold", "--seeds", "1", "--epochs", "1"]
    given += ["--device", "cpu", "--data-dir", str(real_data), "--out", str(out)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_forest_options(), "trees", 3)
        first = CliRunner().invoke(app, given)
        assert first.exit_code == 0, first.output
        assert "random forest, run here" in first.stdout
        (lines,) = {path.read_text() for path in Path(out).glob("*.jsonl")}
        assert CliRunner().invoke(app, given).stdout == first.stdout
        assert {path.read_text() for path in Path(out).glob("*.jsonl")} == {lines}
        verified = CliRunner().invoke(app, [*given[:2], "--from", str(out), "--verify", "2", *given[-6:-2]])
        assert verified.exit_code == 0, verified.output


def _forest_options():
    from lanczosnet.experiments.hyperparameters.molecule_net_rows import FOREST

    return FOREST.options


def test_a_forest_learns_classes_whose_column_has_gaps(tmp_path):
    pytest.importorskip("rdkit")
    pytest.importorskip("sklearn")
    from lanczosnet.experiments.forest import forest_result

    rows = [f"{'C' * n}{end},{toxic}" for n in range(1, 9) for end, toxic in (("O", 1), ("N", 0))]
    (tmp_path / "toy.csv").write_text("\n".join(["smiles,toxic", *rows, "CCCl,"]), encoding="utf-8")
    data = load(tmp_path / "toy.csv", data_dir=tmp_path, task="classification", targets=["toxic"])
    parts = Split("toy", "given", None, None, torch.arange(10), torch.arange(10, 12), torch.arange(12, 17))
    result = forest_result(data, parts, {"trees": 20, "radius": 2, "bits": 256}, 0)
    assert result["metrics"]["test"]["roc_auc"] == 1.0
