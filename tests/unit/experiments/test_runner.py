"""Workers: lines that say everything, nothing run twice, failures that do not end a table."""

import re
from dataclasses import replace

import pytest
import torch

from lanczosnet.experiments import Cell, Grid, Store, provenance, runner
from lanczosnet.experiments.runner import RunOptions, some_graphs, work
from lanczosnet.experiments.status import status
from lanczosnet.experiments.store import save_best
from lanczosnet.experiments.workers import work_in_processes
from lanczosnet.training import DivergenceError, Outcome, recipe
from lanczosnet.training.engine import loaders
from lanczosnet.training.serialization import load_model
from training_builders import packed_molecules

SETTINGS = recipe("paper", "node", {"epochs": 3}).settings()
GCN = Cell("citation", "karate", "1-per-class", None, "gcn", {"hidden_channels": 8}, "paper", SETTINGS)
GAT = replace(GCN, model="gat", options={"hidden_channels": 4, "heads": (2, 1)})
CPU = RunOptions(device="cpu")


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "s")


def test_a_line_says_everything_about_its_run(store):
    work(Grid((GCN,), (3,)), store, CPU)
    (line,) = store.lines().values()
    assert line["key"] == GCN.run(3).key
    assert line["cell"] == GCN.key
    assert (line["table"], line["dataset"], line["split"], line["fraction"]) == (
        "citation",
        "karate",
        "1-per-class",
        None,
    )
    assert (line["model"], line["options"], line["recipe"]) == ("gcn", {"hidden_channels": 8}, "paper")
    assert line["settings"] == SETTINGS
    assert (line["seed"], line["split_seed"]) == (3, 3)
    assert re.fullmatch(r"[0-9a-f]{16}", line["split_hash"])
    assert set(line["metrics"]) == {"val", "test"}
    assert 0 <= line["metrics"]["test"]["accuracy"] <= 1
    assert set(line["by_target"]) == {"val", "test"}
    assert 1 <= line["best_epoch"] <= line["epochs"] == 3
    assert line["stopped"] == "all epochs done"
    assert line["seconds"] > 0
    assert line["hardware"].startswith("cpu")
    assert line["precision"] == "32-true"
    assert set(line["versions"]) == {"lanczosnet", "torch", "torch_geometric", "numpy", "python"}
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$", line["finished_at"])
    assert "commit" in line
    assert "error" not in line


def test_all_networks_share_split_and_seed_in_a_run(store):
    work(Grid((GCN, GAT), (0, 1)), store, CPU)
    splits = {(line["model"], line["seed"]): line["split_hash"] for line in store.lines().values()}
    assert splits["gcn", 0] == splits["gat", 0]
    assert splits["gcn", 1] == splits["gat", 1]
    assert splits["gcn", 0] != splits["gcn", 1]


def test_what_is_finished_is_not_run_again(store, monkeypatch):
    work(Grid((GCN,), (0, 1)), store, CPU)
    before = dict(store.lines())
    ran = []
    monkeypatch.setattr(runner, "results", lambda runs, *_: ran.extend(run.seed for run in runs) or iter(()))
    work(Grid((GCN, GCN), (0, 1, 2)), Store(store.folder), CPU)
    assert ran == [2, 2]
    assert store.lines() == before


def test_data_with_two_sets_of_options_in_turn_are_loaded_once_each(store, monkeypatch):
    loads = []

    def load(name, *, data_dir, normalize):
        loads.append(normalize)
        return original(name, data_dir=data_dir)

    original = runner.load
    monkeypatch.setattr(runner, "load", load)
    runner._loaded.cache_clear()
    cells = [
        replace(GCN, data_options={"normalize": normalize}, options={"hidden_channels": width})
        for width in (4, 8)
        for normalize in (False, True)
    ]
    work(Grid(tuple(cells), (0,)), store, CPU)
    assert len(store.lines()) == 4
    assert loads == [False, True]


def test_a_run_that_another_worker_holds_is_left_to_it(store):
    with Store(store.folder).claiming([GCN.run(0).key]):
        work(Grid((GCN,), (0, 1)), store, CPU)
    assert [line["seed"] for line in store.lines().values()] == [1]


def test_results_do_not_depend_on_what_ran_before(store, tmp_path):
    work(Grid((GAT, GCN), (0, 1)), store, CPU)
    alone = Store(tmp_path / "alone")
    work(Grid((GCN,), (1,)), alone, CPU)
    key = GCN.run(1).key
    assert alone.lines()[key]["metrics"] == store.lines()[key]["metrics"]


@pytest.mark.slow
def test_workers_in_processes_share_the_runs(store):
    looks = []
    codes = work_in_processes(Grid((GCN, GAT), (0, 1)), store.folder, CPU, 2, lambda: looks.append(store.lines()))
    assert codes == [0, 0]
    assert looks
    texts = [text for path in store.folder.glob("*.jsonl") for text in path.read_text().splitlines()]
    assert len(texts) == len(store.lines()) == 4


@pytest.fixture
def long_run(monkeypatch) -> Cell:
    monkeypatch.setattr(runner, "_loaded", lambda *_: packed_molecules())
    monkeypatch.setattr(runner, "CHECKPOINT_SECONDS", 0.0)
    settings = recipe("paper", "graph", {"epochs": 6}).settings()
    return Cell("qm8", "qm8", "random", 0.8, "gcn", {"hidden_channels": 8, "num_layers": 1}, "paper", settings)


def test_a_long_run_goes_on_from_its_checkpoint(store, tmp_path, long_run):
    whole = Store(tmp_path / "whole")
    work(Grid((long_run,), (0,)), whole, CPU)
    epochs = []

    def stop_after_three(cell, report):
        epochs.append(report.epoch)
        if epochs == [1, 2, 3]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work(Grid((long_run,), (0,)), store, CPU, on_epoch=stop_after_three)
    assert not store.lines()
    work(Grid((long_run,), (0,)), store, CPU, on_epoch=stop_after_three)
    assert epochs == [1, 2, 3, 3, 4, 5, 6]  # the third was not kept before it was heard of
    key = long_run.run(0).key
    assert store.lines()[key]["metrics"] == whole.lines()[key]["metrics"]
    assert not list(store.checkpoints.iterdir())


def test_runs_that_fail_together_are_tried_alone(store, monkeypatch):
    calls = []
    monkeypatch.setattr(runner, "run_jobs", failing({1}, calls))
    fabric = runner.fabric_for("cpu")
    lines = list(runner.results(Grid((GCN,), (0, 1, 2)).runs, fabric, CPU, store))
    assert calls == [[0, 1, 2], [0], [1], [2]]
    assert ["error" in line for line in lines] == [False, True, False]


def test_a_broken_device_is_not_the_result_of_a_run(store, monkeypatch):
    def run_jobs(*jobs, **how):
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(runner, "run_jobs", run_jobs)
    fabric = runner.fabric_for("cpu")
    lines = list(runner.results(Grid((GCN,), (0, 1)).runs, fabric, CPU, store))  # the device still works
    assert ["error" in line for line in lines] == [True, True]
    monkeypatch.setattr(runner, "_is_broken", lambda device: True)
    with pytest.raises(torch.AcceleratorError):
        list(runner.results(Grid((GCN,), (0, 1)).runs, fabric, CPU, store))


def failing(seeds: set[int], calls: list[list[int]]):
    def run_jobs(jobs, *how, **others):
        calls.append([job.spec.seed for job in jobs])
        if seeds & {job.spec.seed for job in jobs}:
            raise DivergenceError(2, 0.01)
        return original(jobs, *how, **others)

    original = runner.run_jobs
    return run_jobs


def test_a_diverging_run_has_a_line_with_its_error_and_the_others_go_on(store, monkeypatch):
    def run_jobs(jobs, *how, **others):
        outcomes = original(jobs, *how, **others)
        return [
            Outcome(None, 1.0, DivergenceError(2, 0.01)) if job.spec.seed == 1 else outcome
            for job, outcome in zip(jobs, outcomes, strict=True)
        ]

    original = runner.run_jobs
    monkeypatch.setattr(runner, "run_jobs", run_jobs)
    grid = Grid((GCN,), (0, 1, 2))
    work(grid, store, CPU)
    lines = {line["seed"]: line for line in store.lines().values()}
    assert "DivergenceError: the loss became NaN" in lines[1]["error"]
    assert "metrics" not in lines[1]
    assert "error" not in lines[0]
    assert "error" not in lines[2]
    assert status(grid, store).failed == 1


def test_failed_runs_are_tried_again_once_on_demand(store, monkeypatch):
    calls = []
    monkeypatch.setattr(runner, "run_jobs", failing({1}, calls))
    grid = Grid((GCN,), (0, 1))
    work(grid, store, CPU)
    work(grid, store, CPU)
    assert calls == [[0], [1]]
    retry = RunOptions(device="cpu", retry_before="9999")
    work(grid, store, retry)
    assert calls == [[0], [1], [1]]
    monkeypatch.undo()
    work(grid, store, retry)
    assert status(grid, store).failed == 0


def test_the_status_counts_cells_and_guesses_the_time(store):
    grid = Grid((GCN, GAT), (0, 1))
    assert status(grid, store).seconds_left is None
    work(Grid((GCN,), (0, 1)), store, CPU)
    mean = sum(line["seconds"] for line in store.lines().values()) / 2
    with store.claiming([GAT.run(0).key]):
        now = status(grid, store, workers=2)
    assert (now.cells_done, now.cells_running, now.cells_to_come) == (1, 1, 0)
    assert (now.runs_done, now.runs) == (2, 4)
    assert now.seconds_left == pytest.approx(2 * mean / 2)


def test_errors_of_targets_that_come_twice_are_told_apart(store, monkeypatch, long_run):
    graphs = packed_molecules()
    doubled = replace(
        graphs,
        graph={key: value[:, [0, 1, 1]] if value.dim() == 2 else value for key, value in graphs.graph.items()},
        about=graphs.about | {"targets": ("mean", "share", "share"), "units": ("1", "100", "100")},
    )
    monkeypatch.setattr(runner, "_loaded", lambda *_: doubled)
    work(Grid((long_run,), (0,)), store, CPU)
    (line,) = store.lines().values()
    for part in ("val", "test"):
        assert list(line["by_target"][part]) == ["mean", "share", "share#2"]
        mean = sum(line["by_target"][part].values()) / 3
        assert mean == pytest.approx(line["metrics"][part]["mae"])


def test_molecules_are_prepared_once_for_a_run(store, monkeypatch, long_run):
    prepared = []

    class Counted(loaders.GraphLoader):
        def __init__(self, *arguments):
            prepared.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(loaders, "GraphLoader", Counted)
    work(Grid((long_run,), (0,)), store, CPU)
    assert set(next(iter(store.lines().values()))["by_target"]) == {"val", "test"}
    assert len(prepared) == 1


def test_some_molecules_are_spread_over_all():
    graphs = packed_molecules(40)
    few = some_graphs(graphs, 10)
    assert len(few) == 10
    assert torch.equal(few[3].x, graphs[12].x)
    assert few.targets == graphs.targets
    with pytest.raises(ValueError, match="41 of them cannot be taken"):
        some_graphs(graphs, 41)


def test_the_commit_can_be_told(monkeypatch):
    provenance.commit.cache_clear()
    monkeypatch.setenv(provenance.COMMIT_VARIABLE, "abc123")
    assert provenance.commit() == "abc123"
    provenance.commit.cache_clear()
    monkeypatch.delenv(provenance.COMMIT_VARIABLE)
    monkeypatch.setattr(provenance, "_git", lambda *arguments: None)
    assert provenance.commit() is None
    provenance.commit.cache_clear()


MOLECULES = replace(
    GCN,
    table="qm8",
    dataset="qm8",
    split="random",
    fraction=0.6,
    options={"hidden_channels": 8, "num_layers": 2},
    settings=recipe("paper", "graph", {"epochs": 3, "batch_size": 8}).settings(),
)


def test_runs_on_molecules_have_learning_curves_and_leave_models(store, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_loaded", lambda *_: packed_molecules())
    work(Grid((MOLECULES,), (0, 1)), store, replace(CPU, keep_models=True))
    lines = list(store.lines().values())
    for line in lines:
        assert set(line["curves"]) == {"train_loss", "val_loss", "val_mae", "val_rmse"}
        assert {len(curve) for curve in line["curves"].values()} == {3}
        assert min(line["curves"]["val_mae"]) == pytest.approx(line["metrics"]["val"]["mae"], rel=1e-4)
    best = save_best(lines, store, tmp_path / "best")
    assert best["metrics"]["val"]["mae"] == min(line["metrics"]["val"]["mae"] for line in lines)
    config = load_model(tmp_path / "best").config
    assert config["training"]["seed"] == best["seed"]
    assert config["result"]["metrics"] == best["metrics"]
    assert save_best(lines, store, tmp_path / "halved", halved=True) == best
    whole, halved = (load_model(tmp_path / name) for name in ("best", "halved"))
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("best", "halved")]
    assert sizes[1] < 0.75 * sizes[0]
    assert {weight.dtype for weight in halved.network.state_dict().values()} == {torch.float32}
    difference = halved.predict(packed_molecules()).values - whole.predict(packed_molecules()).values
    assert 0 < abs(difference).max() < 1e-2


def test_models_that_were_not_kept_cannot_be_saved(store, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_loaded", lambda *_: packed_molecules())
    work(Grid((MOLECULES,), (0,)), store, CPU)
    with pytest.raises(ValueError, match="kept none of these models"):
        save_best(store.lines().values(), store, tmp_path / "best")
