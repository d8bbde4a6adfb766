"""`lanczosnet data convert`, and the verbs that take what it writes."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from lanczosnet.cli.app import app


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture
def big(tmp_path) -> Path:
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.integers(0, 60, (200, 2)), columns=["source", "target"]).to_csv(tmp_path / "e.csv", index=False)
    nodes = pd.DataFrame({"a": rng.random(60), "b": rng.random(60), "label": rng.choice(["x", "y"], 60)})
    nodes.to_parquet(tmp_path / "n.parquet")
    found = run("data", "convert", tmp_path / "e.csv", tmp_path / "big", "--nodes", tmp_path / "n.parquet", "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["nodes"] == 60
    return tmp_path / "big"


def test_a_folder_is_verified(big):
    assert run("data", "verify", big).exit_code == 0
    content = (big / "column.npy").read_bytes()
    (big / "column.npy").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    found = run("data", "verify", big)
    assert found.exit_code == 1
    assert "wrong checksum" in found.output


def test_all_verbs_take_a_folder(big, tmp_path):
    trained = run("train", big, "--set", "epochs=2", "--out", tmp_path / "model", "--device", "cpu", "--json")
    assert trained.exit_code == 0, trained.output
    assert len(run("predict", tmp_path / "model", big).stdout.splitlines()) == 61
    files = {kind: tmp_path / f"predicted.{kind}" for kind in ("csv", "parquet", "npy")}
    for file in files.values():
        found = run("predict", tmp_path / "model", big, "--out", file)
        assert found.exit_code == 0, found.output
    table = pd.read_csv(files["csv"])
    assert list(table) == ["item", "predicted_label", "predicted_label_probability"]
    pd.testing.assert_frame_equal(table, pd.read_parquet(files["parquet"]), check_dtype=False)
    assert [["x", "y"][code] for code in np.load(files["npy"])[:, 0]] == table["predicted_label"].tolist()
    assert sorted(path.name for path in tmp_path.glob(".*")) == []
    assert run("spectrum", big, "--figure", tmp_path / "s.png").exit_code == 0
    drawn = "--out", tmp_path / "e.csv", "--figure", tmp_path / "e.png"
    assert run("embed", big, *drawn).exit_code == 0
    assert len((tmp_path / "e.csv").read_text().splitlines()) == 61
    assert run("data", "info", big).exit_code == 0
