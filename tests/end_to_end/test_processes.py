"""Training in several processes: data-parallel through torchrun, and many seeds at once."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from lanczosnet.cli.app import app
from lanczosnet.graphs import load
from lanczosnet.training.model_folder import CHECKPOINT
from shared_graph import found_here, large, many_components, megabytes_of_training, store
from two_processes import gradients_and_losses

TESTS = Path(__file__).resolve().parents[1]
SMALL = ["--set", "hidden_channels=8", "--set", "num_layers=1", "--set", "num_steps=5", "--set", "epochs=5"]


def torchrun(*arguments: str, processes: int = 2) -> None:
    result = launched(*arguments, processes=processes)
    assert result.returncode == 0, result.stderr


def launched(*arguments: str, processes: int = 2) -> subprocess.CompletedProcess[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
    launcher = ["-m", "torch.distributed.run", f"--nproc-per-node={processes}", f"--master-port={port}"]
    return subprocess.run(
        [sys.executable, *launcher, *arguments], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_two_processes_have_the_gradients_of_one_on_the_joint_batch(tmp_path):
    """With targets missing unevenly, and a last batch that does not divide."""
    kinds = ("graphs", "nodes")
    torchrun(str(TESTS / "two_processes.py"), str(tmp_path), *kinds)
    for kind in kinds:
        first, second = (torch.load(tmp_path / f"{kind}-{rank}.pt", weights_only=True) for rank in (0, 1))
        for name, wanted in gradients_and_losses(kind).items():
            assert torch.equal(first[name], second[name]), (kind, name)
            torch.testing.assert_close(first[name], wanted, rtol=1e-4, atol=1e-6, msg=f"{kind}: {name}")


@pytest.mark.slow
def test_torchrun_trains_from_the_command_line(tmp_path):
    arguments = ["train", "karate", *SMALL, "--split", "1-per-class", "--device", "cpu", "--set", "dropout=0"]
    torchrun("-m", "lanczosnet.cli", *arguments, "--out", str(tmp_path / "two"))
    assert CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "one")]).exit_code == 0
    two, one = (
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("two", "one")
    )
    assert [line["epoch"] for line in two] == [1, 2, 3, 4, 5]
    assert [line["val_loss"] for line in two] == pytest.approx([line["val_loss"] for line in one], rel=1e-4)


@pytest.mark.slow
def test_seeds_trained_at_once_are_those_trained_alone(tmp_path):
    arguments = ["train", "digits", *SMALL, "--split", "10-per-class", "--device", "cpu", "--json"]
    result = CliRunner().invoke(app, [*arguments, "--seeds", "2", "--seed", "3", "--out", str(tmp_path / "both")])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["seeds"] == [3, 4]
    for place, seed in enumerate(facts["seeds"]):
        alone = CliRunner().invoke(app, [*arguments, "--seed", str(seed), "--out", str(tmp_path / f"alone-{seed}")])
        assert json.loads(alone.stdout)["test"]["accuracy"] == pytest.approx(facts["test_accuracy"][place], abs=2e-3)
        together, single = (
            [json.loads(line)["train_loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
            for folder in (tmp_path / "both" / f"seed-{seed}", tmp_path / f"alone-{seed}")
        )
        assert together == pytest.approx(single, rel=1e-4)
    assert facts["mean_accuracy"] == pytest.approx(sum(facts["test_accuracy"]) / 2)


@pytest.fixture(scope="module")
def found_alone(tmp_path_factory, request) -> dict[Path, dict[str, torch.Tensor]]:
    """What one process finds of a graph of many components and, where its files are here, of Pubmed."""
    folder = tmp_path_factory.mktemp("graphs")
    store(folder / "large", large())
    folders = [store(folder / "many", many_components())]
    with contextlib.suppress(pytest.skip.Exception):
        folders.append(store(folder / "pubmed", load("pubmed", data_dir=request.getfixturevalue("real_data"))))
    return {folder: found_here(folder) for folder in folders}


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_processes_that_share_a_graph_find_what_one_finds(processes, found_alone, tmp_path):
    """Components, pairs, Lanczos and its adjoint, gradients, losses and predictions, in float64; by ranges of nodes,
    and by a given partition."""
    torchrun(str(TESTS / "shared_graph.py"), str(tmp_path), *map(str, found_alone), processes=processes)
    for name, folder in [("many-given", next(iter(found_alone))), *((folder.name, folder) for folder in found_alone)]:
        wanted, found = found_alone[folder], torch.load(tmp_path / f"{name}.pt", weights_only=True)
        assert found.pop("halo") > 0
        if name == "many" and processes == 4:
            alone = megabytes_of_training(folder.with_name("large"))
            assert found["megabytes"] < 0.35 * alone, (found["megabytes"], alone)
        found.pop("megabytes", None)
        assert found.keys() == wanted.keys()
        for what, expected in wanted.items():
            torch.testing.assert_close(found[what], expected, rtol=1e-10, atol=1e-10, msg=f"{name}: {what}")


@pytest.mark.slow
@pytest.mark.parametrize("then", [1, 3])
def test_a_shared_run_ends_when_a_process_dies_and_goes_on_with_another_number(tmp_path, monkeypatch, then):
    store(tmp_path / "big", many_components())
    arguments = ["train", str(tmp_path / "big"), *SMALL, "--device", "cpu", "--set", "dropout=0", "--split", "uniform"]
    arguments = [*arguments, "--checkpoint-seconds", "0", "--fraction", "0.5"]
    monkeypatch.setenv("ENDS_AFTER_EPOCH", "3")
    ended = launched(str(TESTS / "ends_early.py"), *arguments, "--out", str(tmp_path / "model"))
    assert ended.returncode != 0
    assert "process 1: " in ended.stderr  # what it has of the graph
    assert "another process of this run has ended" in ended.stderr or "told to end" in ended.stderr
    assert (tmp_path / "model" / CHECKPOINT).is_file()
    monkeypatch.delenv("ENDS_AFTER_EPOCH")
    torchrun("-m", "lanczosnet.cli", *arguments, "--out", str(tmp_path / "model"), "--resume", processes=then)
    assert CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "whole")]).exit_code == 0
    found, wanted = (
        [json.loads(line)["val_loss"] for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("model", "whole")
    )
    assert len(found) == 5
    assert found == pytest.approx(wanted, rel=1e-4)


@pytest.mark.slow
def test_a_given_partition_says_which_process_has_a_node(tmp_path):
    store(tmp_path / "big", many_components())
    graph = load(tmp_path / "big")
    part = torch.arange(graph.num_nodes) % 8 % 5 % 4  # two for each process
    (tmp_path / "part.txt").write_text("part\n" + "\n".join(map(str, part.tolist())))
    arguments = ["train", str(tmp_path / "big"), *SMALL, "--device", "cpu", "--set", "dropout=0", "--split", "uniform"]
    arguments = [*arguments, "--fraction", "0.5", "--partition", str(tmp_path / "part.txt")]
    shared = launched("-m", "lanczosnet.cli", *arguments, "--out", str(tmp_path / "two"))
    assert shared.returncode == 0, shared.stderr
    ranges = launched("-m", "lanczosnet.cli", *arguments[:-2], "--out", str(tmp_path / "ranges"))
    halos = [[line for line in each.stderr.splitlines() if "halo" in line] for each in (shared, ranges)]
    assert halos[0] != halos[1]
    assert CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "one")]).exit_code == 0
    for each in ("two", "one"):
        out = ["predict", str(tmp_path / each), str(tmp_path / "big"), "--out", str(tmp_path / f"{each}.npy")]
        torchrun("-m", "lanczosnet.cli", *out, "--partition", str(tmp_path / "part.txt"))
    by_one = ["predict", str(tmp_path / "one"), str(tmp_path / "big"), "--out", str(tmp_path / "alone.npy")]
    assert CliRunner().invoke(app, by_one).exit_code == 0
    two, one, alone = (np.load(tmp_path / f"{each}.npy") for each in ("two", "one", "alone"))
    assert (one == alone).all()  # in the order of the nodes, whoever has them
    assert (two == one).mean() > 0.99
    refused = launched("-m", "lanczosnet.cli", *arguments, "--out", str(tmp_path / "three"), processes=3)
    assert "4 parts for 3 processes" in refused.stderr
