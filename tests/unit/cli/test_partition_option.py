"""Options about processes: a partition is for graphs that they share."""

import pytest
from typer.testing import CliRunner

from lanczosnet.cli.app import app
from lanczosnet.graphs import load
from lanczosnet.graphs.formats.stored_graph import store_graph


@pytest.mark.parametrize("command", [["train", "karate"], ["predict", "model", "karate", "--out", "out.csv"]])
def test_a_partition_of_anything_but_a_graph_folder_is_refused(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts.txt").write_text("0\n" * 34)
    (tmp_path / "model").mkdir()
    result = CliRunner().invoke(app, [*command, "--partition", "parts.txt"])
    assert result.exit_code == 2
    assert "--partition is for the folder of a large graph" in " ".join(result.output.split()).replace("│ ", "")


@pytest.mark.parametrize("option", ["--intervals", "--calibrated", "--json"])
def test_options_without_effect_on_a_graph_folder_are_refused(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store_graph(load("karate"), tmp_path / "big")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    result = CliRunner().invoke(app, ["predict", "model", "big", "--out", "out.csv", option])
    assert result.exit_code == 2
    assert "are not for the folder of a large graph" in " ".join(result.output.split()).replace("│ ", "")


def test_a_partition_is_checked_by_one_process_too(tmp_path):
    store_graph(load("karate"), tmp_path / "big")
    (tmp_path / "parts.txt").write_text("0\n" * 33)
    command = ["train", str(tmp_path / "big"), "--split", "uniform", "--partition", str(tmp_path / "parts.txt")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code != 0
    assert "it has 33 numbers, but the graph has 34 nodes" in str(result.exception) + result.output


def test_a_search_is_not_for_torchrun(monkeypatch, tmp_path):
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = CliRunner().invoke(app, ["tune", "karate", "--trials", "1", "--out", str(tmp_path / "search")])
    assert result.exit_code == 2
    assert "--workers trains several" in " ".join(result.output.split()).replace("│ ", "")
