"""What `lanczosnet train` does about memory on one large graph."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lanczosnet.batching import host_features
from lanczosnet.cli.app import app
from lanczosnet.graphs.formats.stored_graph import store_graph
from lanczosnet.training.engine import devices
from training_builders import communities

TINY = ["--set", "epochs=3", "--set", "hidden_channels=8", "--set", "num_layers=1", "--set", "num_steps=5"]


def invoke(*arguments, expect: int = 0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == expect, result.output + repr(result.exception)
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store_graph(communities(), tmp_path / "big")
    return tmp_path / "big"


def weights(model: Path) -> bytes:
    return (model / "model.safetensors").read_bytes()


def test_checkpointed_activations_leave_the_model_as_it_is(folder: Path, tmp_path: Path) -> None:
    common = ("train", folder, *TINY, "--split", "5-per-class", "--set", "dropout=0.5")
    invoke(*common, "--out", tmp_path / "plain")
    invoke(*common, "--checkpoint-activations", "--save-config", tmp_path / "run.toml", "--out", tmp_path / "less")
    assert weights(tmp_path / "less") == weights(tmp_path / "plain")
    options = json.loads((tmp_path / "less" / "config.json").read_text())["architecture"]["options"]
    assert options["checkpoint_activations"] is True
    assert (tmp_path / "run.toml").read_text().count("checkpoint_activations") == 1  # so that one change undoes it
    invoke("train", "--config", tmp_path / "run.toml", "--out", tmp_path / "plain", "--resume")  # the same run


def test_features_stay_on_the_host_where_it_is_asked_for(folder: Path, tmp_path: Path, monkeypatch) -> None:
    sent = []
    copy = host_features.from_host
    monkeypatch.setattr(host_features, "from_host", lambda rows, *where: sent.append(len(rows)) or copy(rows, *where))
    common = ("train", folder, *TINY, "--split", "5-per-class", "--precision", "64-true", "--json")
    plain = json.loads(invoke(*common, "--out", tmp_path / "plain").stdout)
    assert sent == []
    found = json.loads(invoke(*common, "--host-features", "--out", tmp_path / "host").stdout)
    assert len(communities().x) in sent
    assert found["test"] == pytest.approx(plain["test"])
    network = ("--model", "gcn", "--host-features", "--out", tmp_path / "gcn")
    error = str(invoke("train", folder, *TINY[:4], "--split", "5-per-class", *network, expect=1).exception)
    assert "leave host_features out" in error


def test_a_training_that_does_not_fit_says_what_to_change(folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(devices, "free_memory_of", lambda device: 100_000)
    common = (
        "train",
        folder,
        *TINY,
        "--set",
        "hidden_channels=32",
        "--split",
        "5-per-class",
        "--out",
        tmp_path / "model",
    )
    message = str(invoke(*common, expect=1).exception)
    assert "but 0.1 MB are free" in message
    for change in (
        "--checkpoint-activations (",
        "--precision bf16-mixed (",
        "--set hidden_channels=16 (",
        "torchrun with",
    ):
        assert change in message
    assert not (tmp_path / "model").exists()
    smaller = str(invoke(*common, "--checkpoint-activations", "--precision", "bf16-mixed", expect=1).exception)
    assert "--checkpoint-activations" not in smaller
    assert "bf16" not in smaller
    shown = invoke(*common, "--anyway").stderr
    assert "memory: about" in shown
    assert "0.1 MB of cpu memory are free" in shown
    assert weights(tmp_path / "model")


def test_a_dry_run_prints_the_estimate_alone(folder: Path, tmp_path: Path) -> None:
    common = ("train", folder, *TINY, "--split", "5-per-class", "--out", tmp_path / "model", "--dry-run")
    printed = invoke(*common).stdout
    for part in (
        "memory: about",
        "matrix",
        "Ritz pairs",
        "features",
        "weights and optimiser",
        "activations",
        "are free",
    ):
        assert part in printed
    assert not (tmp_path / "model").exists()
    assert "one seed" in invoke(*common, "--seeds", 2, expect=2).stderr


def test_small_graphs_in_memory_are_not_spoken_of(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(devices, "free_memory_of", lambda device: 1)
    common = ("train", "karate", *TINY, "--split", "1-per-class")
    assert "memory:" not in invoke(*common, "--out", tmp_path / "small").stderr
    monkeypatch.setattr("lanczosnet.cli.memory.LARGE_GRAPH", 30)
    assert "Less is needed with" in str(invoke(*common, "--out", tmp_path / "large", expect=1).exception)
    least = ("--model", "gcn", "--set", "hidden_channels=8", "--precision", "bf16-mixed", "--out", tmp_path / "least")
    message = str(invoke("train", "karate", "--split", "1-per-class", *least, expect=1).exception)
    assert "Less is needed with" not in message
    assert "are free. Pass --anyway" in message
