"""Trials in several processes: none is lost, whichever process dies."""

import csv
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dying_worker import dies, has_a_mistake
from lanczosnet.cli.app import app
from lanczosnet.graphs import load
from lanczosnet.training import JobSpec, TrainingError
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.tuning import Search, space_for, tune
from lanczosnet.tuning.networks import tune_networks
from lanczosnet.tuning.outcome import HEAD
from lanczosnet.tuning.search import by_place
from lanczosnet.tuning.workers import DIED, TrialWorkers

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = {"epochs": 4, "hidden_channels": 8, "num_layers": 1}
OPTIONS = {"source": "karate", "split": "20/40/40"}
CPU = partial(fabric_for, "cpu")
EVERY = [(name, f"{trial}") for name in ("gcn", "lanczosnet") for trial in range(4)]


@pytest.fixture(scope="module")
def karate():
    return load("karate")


def search_of(name="gcn", trials=4, **settings):
    space = space_for(name, "node", SETTINGS | settings)
    spec = JobSpec("karate", model=space.model, settings=dict(space.fixed), split="20/40/40")
    return Search(space, [spec], trials)


def rows_in(folder):
    with (folder / "trials.csv").open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_every_network_has_its_trials_also_when_a_worker_is_killed(karate, tmp_path, caplog):
    killed, counts = [], []

    def kill_another(network, count, trial, best):
        counts.append((network, count))
        busy = [worker for worker in workers._workers if worker and worker.task]
        if busy and not killed:
            killed.append(busy[0].task.attempts)
            os.kill(busy[0].process.pid, signal.SIGKILL)

    searches = [search_of(name, epochs=40) for name in ("gcn", "lanczosnet")]
    with TrialWorkers(2, karate, CPU) as workers:
        found = tune_networks(searches, karate, tmp_path, OPTIONS, workers=workers, on_trial=kill_another)
    assert killed == [1]
    assert "died with exit code -9" in caplog.text
    assert [one.trials for one in found] == [4, 4]
    assert counts == [(name, count) for name in ("gcn", "lanczosnet") for count in range(1, 5)]
    rows = rows_in(tmp_path)
    assert [(row["network"], row["trial"]) for row in rows] == EVERY
    assert [row["trial"] for row in rows if not row["learning_rate"]] == ["0", "0"]  # those with the defaults
    assert {row["state"] for row in rows} == {"complete"}


@pytest.mark.slow
def test_trials_whose_processes_always_die_fail_and_say_so(karate, tmp_path):
    with TrialWorkers(2, karate, dies) as workers, pytest.raises(TrainingError, match="died twice"):
        tune_networks([search_of(trials=1)], karate, tmp_path, OPTIONS, workers=workers)
    assert [(row["state"], row["fault"]) for row in rows_in(tmp_path)] == [("fail", DIED)]


@pytest.mark.slow
def test_a_mistake_of_the_program_in_a_worker_is_told_and_counts_as_no_trial(karate, tmp_path):
    with TrialWorkers(2, karate, has_a_mistake) as workers, pytest.raises(RuntimeError, match=r"worker . is wrong"):
        tune(search_of(), karate, tmp_path, workers=workers)
    assert not any(worker.process.is_alive() for worker in workers._workers if worker)
    study = tune(search_of(trials=1), karate, tmp_path, fabric_for("cpu"))
    assert list(by_place(study)) == [0]


COMMAND = ["tune", "karate", "--split", "20/40/40", "--models", "gcn,lanczosnet", "--device", "cpu", "--workers", "2"]
COMMAND += ["--set", "hidden_channels=8", "--set", "num_layers=1", "--set", "epochs=30", "--trials", "4"]


@pytest.mark.slow
def test_a_search_whose_parent_is_killed_goes_on_without_loss(tmp_path):
    command = [*COMMAND, "--out", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    call = [sys.executable, "-m", "lanczosnet", *command]
    process = subprocess.Popen(call, env=environment, stderr=subprocess.PIPE)
    while not (tmp_path / "trials.csv").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.kill()
    process.communicate()
    before = rows_in(tmp_path)
    assert 1 <= len(before) < 8
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    rows = rows_in(tmp_path)
    assert [(row["network"], row["trial"]) for row in rows] == EVERY
    assert [row["trial"] for row in rows if not row["learning_rate"]] == ["0", "0"]
    assert {tuple(row[key] for key in HEAD) for row in before} <= {tuple(row[key] for key in HEAD) for row in rows}
