"""What `lanczosnet train` does about memory on one large graph."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lanczosnet.batching import host_features
from lanczosnet.cli.app import app
from lanczosnet.graphs.formats.stored_graph import store_graph
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
    assert "checkpoint_activations = true" in (tmp_path / "run.toml").read_text()
    invoke("train", "--config", tmp_path / "run.toml", "--out", tmp_path / "plain", "--resume")  # the same run


def test_features_stay_on_the_host_where_it_is_asked_for(folder: Path, tmp_path: Path, monkeypatch) -> None:
    sent = []
    copy = host_features.from_host
    monkeypatch.setattr(host_features, "from_host", lambda rows, *where: sent.append(len(rows)) or copy(rows, *where))
    common = ("train", folder, *TINY, "--split", "5-per-class", "--precision", "64-true", "--json")
    plain = json.loads(invoke(*common, "--out", tmp_path / "plain").stdout)
    assert sent == []
    found = json.loads(invoke(*common, "--host-features", "--out", tmp_path / "host").stdout)
    assert set(sent) == {len(communities().x)}
    assert found["test"] == pytest.approx(plain["test"])
    network = ("--model", "gcn", "--host-features", "--out", tmp_path / "gcn")
    error = str(invoke("train", folder, *TINY[:4], "--split", "5-per-class", *network, expect=1).exception)
    assert "leave host_features out" in error
