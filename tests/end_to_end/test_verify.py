"""Result lines are repeated and compared: `lanczosnet table ... --from lines --verify N`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lanczosnet.cli.app import app
from lanczosnet.experiments.verify import comparable, run_of

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = [*sorted((ROOT / "results").glob("*.jsonl")), ROOT / "tests" / "data" / "results.jsonl"]
CPU_LINES = ROOT / "tests" / "data" / "cpu-lines.jsonl"


def invoke(*arguments):
    return CliRunner().invoke(app, ["table", "citation", *map(str, arguments)])


def lines_of(path):
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_every_published_line_describes_its_run(path):
    for line in lines_of(path):
        assert run_of(line).key == line["key"]


def test_a_line_without_a_setting_of_its_run_is_refused():
    line = lines_of(PUBLISHED[-1])[0]
    del line["options"]["dropout"]
    with pytest.raises(ValueError, match="does not describe its run"):
        run_of(line)


@pytest.mark.data
def test_two_runs_on_a_cpu_reproduce_bit_by_bit(real_data, monkeypatch):
    monkeypatch.setenv("LANCZOSNET_DATA", str(real_data))
    try:
        comparable(lines_of(CPU_LINES), "cpu")
    except ValueError as error:
        pytest.skip(str(error))
    outcome = invoke("--from", CPU_LINES, "--verify", 2, "--device", "cpu", "--json")
    assert outcome.exit_code == 0, outcome.output
    assert [row["outcome"] for row in json.loads(outcome.stdout)] == ["the same bits"] * 2


@pytest.mark.data
def test_a_changed_line_is_noticed(real_data, tmp_path, monkeypatch):
    monkeypatch.setenv("LANCZOSNET_DATA", str(real_data))
    store = tmp_path / "store"
    arguments = ("--datasets", "cora", "--splits", "public", "--models", "gcn", "--seeds", 1, "--epochs", 2)
    assert invoke(*arguments, "--device", "cpu", "--out", store).exit_code == 0
    assert invoke("--from", store, "--verify", 9, "--device", "cpu").exit_code == 0
    (part,) = store.glob("*.jsonl")
    (line,) = lines_of(part)
    line["metrics"]["test"]["accuracy"] += 1e-9
    part.write_text(json.dumps(line) + "\n", encoding="utf-8")
    outcome = invoke("--from", store, "--verify", 9, "--device", "cpu", "--json")
    assert outcome.exit_code == 1
    assert json.loads(outcome.stdout)[0]["outcome"] == "differs in metrics"


def test_runs_of_other_hardware_are_not_compared():
    with pytest.raises(ValueError, match="the runs were made on NVIDIA H200"):
        comparable(lines_of(PUBLISHED[0]), "cpu")


def test_lines_must_be_named(tmp_path):
    outcome = invoke("--verify", 2)
    assert outcome.exit_code == 2
    assert "--from" in outcome.output
