"""Several seeds of one spec leave what each leaves alone, wherever they are trained."""

import json
import multiprocessing
import os
import pickle
import time
from types import SimpleNamespace

import pytest
import torch

from lanczosnet.training import DivergenceError, JobSpec, TrainingError, prepare, run, run_seeds, seeds
from lanczosnet.training.architecture import Architecture
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.metrics_file import MetricsFile
from training_builders import packed_molecules

SEEDS = (3, 4, 5)
FILES = ["config.json", "metrics.jsonl", "model.safetensors"]
FILES_OF_GRAPHS = sorted([*FILES, "reference.safetensors"])
SETTINGS = {"hidden_channels": 8, "num_layers": 1, "num_steps": 5, "dropout": 0.5, "epochs": 4, "batch_size": 6}


class Killed(BaseException):
    """Nothing in the program may catch it."""


@pytest.fixture(params=["nodes", "graphs"])
def spec(request, tmp_path):
    if request.param == "nodes":
        return JobSpec("karate", settings=SETTINGS, split="1-per-class")
    torch.save(packed_molecules(20)[:], tmp_path / "graphs.pt")
    return JobSpec(str(tmp_path / "graphs.pt"), settings=SETTINGS)


def side_by_side(spec, folder, **how):
    return run_seeds(spec, SEEDS, folder, concurrent=True, device="cpu", **how)


def alone(spec, folder, seed):
    changed = JobSpec(**{**vars(spec), "seed": seed})
    return run(prepare(changed), folder, fabric=fabric_for("cpu"))


def assert_same_files(folder, other):
    expected = FILES if '"inputs": "graph"' in (folder / "config.json").read_text() else FILES_OF_GRAPHS
    assert sorted(path.name for path in folder.iterdir()) == expected
    for name in expected:
        assert (folder / name).read_bytes() == (other / name).read_bytes(), name


def killing(monkeypatch, after):
    """The process ends when so many epochs are noted."""
    original = MetricsFile.write
    left = after

    def write(self, report):
        nonlocal left
        original(self, report)
        left -= 1
        if left == 0:
            raise Killed

    monkeypatch.setattr(MetricsFile, "write", write)


@pytest.mark.parametrize("number", [None, 2], ids=["all at once", "two at once"])
def test_seeds_in_one_process_leave_what_each_leaves_alone(spec, tmp_path, number):
    outcomes = side_by_side(spec, tmp_path / "all", at_once=number)
    for seed, outcome in zip(SEEDS, outcomes, strict=True):
        assert outcome == alone(spec, tmp_path / f"{seed}", seed)
        assert_same_files(tmp_path / "all" / f"seed-{seed}", tmp_path / f"{seed}")
    assert len({str(outcome.metrics) for outcome in outcomes}) > 1


@pytest.mark.parametrize("after", [2, 4, 7])
def test_seeds_that_were_killed_go_on_bit_identical(spec, tmp_path, monkeypatch, after):
    whole = side_by_side(spec, tmp_path / "whole")
    with monkeypatch.context() as patch:
        killing(patch, after)
        with pytest.raises(Killed):
            side_by_side(spec, tmp_path / "killed", checkpoint_seconds=0.0)
    assert not (tmp_path / "killed" / "seed-5").joinpath("config.json").exists()
    assert side_by_side(spec, tmp_path / "killed", resume=True) == whole
    for seed in SEEDS:
        assert_same_files(tmp_path / "killed" / f"seed-{seed}", tmp_path / "whole" / f"seed-{seed}")


def test_progress_is_told_by_the_epoch_and_adds_up(tmp_path, monkeypatch):
    spec = JobSpec("karate", settings=SETTINGS, split="1-per-class")
    shares = []
    with monkeypatch.context() as patch:
        killing(patch, 6)
        with pytest.raises(Killed):
            side_by_side(spec, tmp_path, checkpoint_seconds=0.0, on_progress=shares.append)
    assert sum(shares) == pytest.approx(1.25)
    shares.clear()
    side_by_side(spec, tmp_path, resume=True, on_progress=shares.append)
    assert shares[0] == 1.0
    assert sum(shares) == pytest.approx(3.0)


def test_a_model_is_not_replaced_and_another_run_not_continued(tmp_path):
    spec = JobSpec("karate", settings=SETTINGS, split="1-per-class")
    alone(spec, tmp_path / "seed-5", 5)
    with pytest.raises(TrainingError, match="already holds a model"):
        side_by_side(spec, tmp_path)
    assert not (tmp_path / "seed-3").exists()
    other = JobSpec("karate", settings=SETTINGS | {"epochs": 5}, split="1-per-class")
    with pytest.raises(TrainingError, match="another run"):
        side_by_side(other, tmp_path, resume=True)


def test_a_seed_that_diverges_is_reported_when_the_others_are_saved(tmp_path, monkeypatch):
    spec = JobSpec("karate", settings=SETTINGS | {"averaging": 0.0}, split="1-per-class")
    original = MetricsFile.write

    def write(self, report):
        original(self, report)
        if self.path.parent.name == "seed-4" and report.epoch == 2:
            torch.nn.init.constant_(next(networks[4].parameters()), float("nan"))

    build, networks = Architecture.build, {}
    monkeypatch.setattr(Architecture, "build", lambda self, seed: networks.setdefault(seed, build(self, seed)))
    monkeypatch.setattr(MetricsFile, "write", write)
    with pytest.raises(DivergenceError, match="in epoch 3"):
        side_by_side(spec, tmp_path)
    stopped = [
        json.loads((tmp_path / f"seed-{seed}" / "config.json").read_text())["result"]["stopped"] for seed in SEEDS
    ]
    assert stopped == ["all epochs done", "diverged", "all epochs done"]
    assert not list(tmp_path.glob("*/checkpoint.safetensors"))
    (tmp_path / "seed-5" / "config.json").unlink()
    with pytest.raises(DivergenceError, match="in epoch 3"):
        side_by_side(spec, tmp_path, resume=True)
    assert (tmp_path / "seed-5" / "config.json").exists()


def test_torchrun_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(TrainingError, match="torchrun"):
        run_seeds(JobSpec("karate"), SEEDS, tmp_path)


@pytest.mark.slow
def test_a_process_that_dies_is_told_and_not_waited_for():
    with pytest.raises(TrainingError, match=r"died.*resume=True"):
        list(seeds._in_processes(os._exit, [3, 4], 2, lambda share: None))


@pytest.mark.slow
def test_processes_end_with_whoever_waits_for_them():
    others = set(multiprocessing.active_children())
    outcomes = seeds._in_processes(time.sleep, [0, 600], 2, lambda share: None)
    next(outcomes)
    outcomes.close()
    assert set(multiprocessing.active_children()) <= others


def test_a_divergence_passes_from_process_to_process():
    error = pickle.loads(pickle.dumps(DivergenceError(3, 0.1)))
    assert (error.epoch, str(error)) == (3, str(DivergenceError(3, 0.1)))


def made(*names, deterministic, host_features=None):
    return SimpleNamespace(deterministic=deterministic, _precision=SimpleNamespace(precision="32-true"))


@pytest.mark.parametrize(
    ("device", "has_cuda", "expected"),
    [
        ("auto", True, "together"),
        ("cuda", True, "together"),
        ("auto", False, "processes"),
        ("cpu", True, "processes"),
        ("mps", False, "processes"),
    ],
)
def test_the_device_decides_how_seeds_are_trained(monkeypatch, tmp_path, device, has_cuda, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_cuda)
    monkeypatch.setattr(seeds, "fabric_for", made)
    monkeypatch.setattr(seeds, "_side_by_side", lambda *given, **how: ["together", given[1].deterministic])
    monkeypatch.setattr(seeds, "_in_processes", lambda one, *_: ["processes", one.args[0]().deterministic])
    found = run_seeds(JobSpec("karate", split="1-per-class"), SEEDS, tmp_path, device=device, deterministic=False)
    assert found == [expected, False]
