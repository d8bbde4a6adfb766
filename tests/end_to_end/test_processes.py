"""Training in several processes: data-parallel through torchrun, and many seeds at once."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from lanczosnet.cli.app import app
from two_processes import gradients_and_losses

TESTS = Path(__file__).resolve().parents[1]
SMALL = ["--set", "hidden_channels=8", "--set", "num_layers=1", "--set", "num_steps=5", "--set", "epochs=5"]


def torchrun(*arguments: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={port}"]
    result = subprocess.run(
        [sys.executable, *launcher, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


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
