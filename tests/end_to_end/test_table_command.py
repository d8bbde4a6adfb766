"""`lanczosnet table` on real data: killed, resumed, in parallel, and its table to the byte."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lanczosnet.cli.app import app, main
from lanczosnet.experiments import Store
from lanczosnet.experiments.runner import some_graphs
from lanczosnet.graphs import load, split

COMMAND = [sys.executable, "-m", "lanczosnet.cli", "table"]
CORA = ["citation", "--datasets", "cora", "--splits", "public", "--models", "gcn,lanczosnet", "--seeds", "2"]
SLICE = ["--molecules", "500", "--epochs", "3", "--device", "cpu"]


def invoke(*arguments, expect: int = 0):
    result = CliRunner().invoke(app, ["table", *map(str, arguments)])
    assert result.exit_code == expect, result.output + repr(result.exception)
    return result


def lines_of(folder: Path) -> list[dict]:
    texts = [text for path in folder.glob("*.jsonl") for text in path.read_text().splitlines(keepends=True)]
    return [json.loads(text) for text in texts if text.endswith("\n")]


def killed_after_a_line(arguments: list, folder: Path) -> list[dict]:
    """Start the command, and kill it while it is at the run after the first."""
    process = subprocess.Popen([*COMMAND, *map(str, arguments), "--out", str(folder)], stderr=subprocess.PIPE)
    done: set[str] = set()
    while process.poll() is None and not (done and {path.stem for path in (folder / "claims").glob("*")} - done):
        time.sleep(0.01)
        done = {line["key"] for line in lines_of(folder)}
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it was done before it could be killed"
    return lines_of(folder)


def mean_predictor(real: Path) -> dict[str, float]:
    """The errors x 1e-3 of predicting the training mean, on the slice's molecules, by column of Table 2."""
    graphs = some_graphs(load("qm8", data_dir=real, tasks=16), 500)
    parts = split(graphs, "random", fraction=0.8, seed=0)
    errors = 1000 * (graphs.y - graphs.y[parts.train].mean(0)).abs()
    distinct = ["#" not in target for target in graphs.about["targets"]]
    validation, test = errors[parts.val].mean(0), errors[parts.test].mean(0)
    columns = {"validation": validation, "test": test, "test, 12 tasks": test[distinct]}
    return {column: float(by_target.mean()) for column, by_target in columns.items()}


@pytest.mark.data
@pytest.mark.slow
def test_a_slice_of_table_1_is_resumed_after_a_kill_and_its_table_is_that_of_an_undisturbed_run(real_data, tmp_path):
    arguments = [*CORA, "--epochs", "16", "--device", "cpu", "--data-dir", real_data]
    before = killed_after_a_line(arguments, tmp_path / "killed")
    assert 1 <= len(before) < 4
    resumed = invoke(*arguments, "--out", tmp_path / "killed").stdout
    after = lines_of(tmp_path / "killed")
    assert all(line in after for line in before)
    assert len(after) == len({line["key"] for line in after}) == 4, "a finished run was run again"
    assert Store(tmp_path / "killed").running() == set()
    whole = invoke(*arguments, "--out", tmp_path / "whole").stdout
    assert resumed.splitlines()[:-1] == whole.splitlines()[:-1]  # the last line is the time that it took
    for form in ("csv", "text", "markdown", "latex"):
        printed = invoke("citation", "--from", tmp_path / "killed", "--format", form).stdout
        again = invoke(*arguments, "--out", tmp_path / "killed", "--format", form).stdout
        assert printed.encode() == again.encode()
    invoke("citation", "--merge", tmp_path / "killed", "--out", tmp_path / "merged")
    tables = [
        invoke("citation", "--from", tmp_path / name, "--format", "csv").stdout for name in ("merged.jsonl", "whole")
    ]
    assert tables[0].encode() == tables[1].encode()
    accuracies = [line["metrics"]["test"]["accuracy"] for line in after if line["model"] == "lanczosnet"]
    assert len(accuracies) == 2
    assert min(accuracies) > 0.78


@pytest.mark.data
@pytest.mark.slow
def test_slices_of_tables_2_and_3_are_resumed_after_a_kill_and_beat_a_mean_predictor(qm8_folder, tmp_path):
    limits = mean_predictor(qm8_folder)
    table_2 = ["qm8", *SLICE, "--data-dir", qm8_folder, "--models", "gcn", "--seeds", "2"]
    before = killed_after_a_line(table_2, tmp_path / "qm8")
    cells = json.loads(invoke(*table_2, "--out", tmp_path / "qm8", "--json").stdout)["cells"]
    after = lines_of(tmp_path / "qm8")
    assert [line["seed"] for line in before] == [1234]
    assert before[0] in after
    assert sorted(line["seed"] for line in after) == [1234, 5678]
    assert {len(line["by_target"]["test"]) for line in after} == {16}
    assert [cell["column"] for cell in cells] == list(limits)
    assert all(cell["mean"] < limits[cell["column"]] for cell in cells)
    table_3 = ["ablation", *SLICE, "--data-dir", qm8_folder, "--shard", "1/9", "--seeds", "1"]  # two of the rows
    before = killed_after_a_line(table_3, tmp_path / "ablation")
    cells = json.loads(invoke(*table_3, "--out", tmp_path / "ablation", "--json").stdout)["cells"]
    assert len(before) == 1
    assert before[0] in lines_of(tmp_path / "ablation")
    assert [(cell["row"], cell["their_mean"]) for cell in cells] == [("1", 10.71), ("11", 10.26)]
    assert all(cell["mean"] < limits["validation"] for cell in cells)


def test_ctrl_c_leaves_what_is_finished_and_says_how_to_go_on(tmp_path, monkeypatch):
    def stopped(*_, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr("lanczosnet.experiments.runner.work", stopped)
    monkeypatch.setattr("sys.argv", ["lanczosnet", "table", *CORA])
    result = invoke(*CORA, "--out", tmp_path / "s", expect=130)
    assert "to continue: lanczosnet table citation --datasets cora" in result.stderr


def test_a_failed_run_is_shown_and_ends_with_1(real_data, tmp_path, monkeypatch):
    monkeypatch.setattr("lanczosnet.training.trainer.learning_rate", lambda *_: 1e38)
    arguments = ["citation", "--datasets", "cora", "--splits", "public", "--models", "gcn", "--seeds", "1"]
    arguments += ["--epochs", "3", "--device", "cpu", "--data-dir", real_data, "--out", tmp_path / "s"]
    result = invoke(*arguments, expect=1)
    assert "1 failed" in result.stdout
    assert "--retry-failed runs them again" in result.stderr
    assert invoke("citation", "--from", tmp_path / "s").stdout == result.stdout
    monkeypatch.undo()
    invoke(*arguments, expect=1)
    assert "failed" not in invoke(*arguments, "--retry-failed").stdout


def test_the_grid_is_listed_without_torch(tmp_path):
    code = "import sys; from lanczosnet.cli import main; sys.argv[1:] = ['table', 'citation', '--dry-run']\n"
    code += "try: main()\nexcept SystemExit: pass\nprint('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "cells: 0 done, 0 running, 132 to come; runs: 0 of 1320" in result.stdout
    assert result.stdout.endswith("False\n")


def test_help_has_examples():
    assert "lanczosnet table citation --dry-run" in invoke("--help").stdout


ROOT = Path(__file__).resolve().parents[2]
LINES, PLAIN_FILE = str(ROOT / "results" / "citation-paper.jsonl"), str(ROOT / "README.md")
MISTAKES = [
    (["tabel1"], 2, "none of citation, qm8, ablation"),
    ([], 2, "Missing argument"),
    (["citation", "--models", "gnc"], 1, "known are gcnfp"),
    (["citation", "--datasets", "qm8"], 1, "known are cora, citeseer, pubmed"),
    (["citation", "--splits", "7%"], 1, "known are public, 3%"),
    (["citation", "--molecules", "500"], 2, "the table citation has no such option"),
    (["qm8", "--protocol", "stratified"], 2, "the table qm8 has no such option"),
    (["citation", "--models", "gcn", "--option", "droput=0.5"], 2, "gcn has no option 'droput'; known are block"),
    (["citation", "--models", "lanczosnet", "--option", "bias=no"], 2, "bias of lanczosnet is true or false, not 'no'"),
    (["citation", "--seeds", "many"], 2, "neither a number of seeds"),
    (["qm8", "--seeds", "4"], 2, "QM8 has 3 seeds"),
    (["citation", "--recipe", "old"], 1, "known are paper, modern"),
    (["citation", "--from", "lines.jsonl", "--recipe", "old"], 1, "known are paper, modern"),
    (["citation", "--set", "epohcs=3"], 1, "no setting 'epohcs'"),
    (["citation", "--format", "html"], 2, "none of text, markdown"),
    (["citation", "--shard", "9/8"], 1, "shard 9/8 does not exist"),
    (["citation", "--device", "tpu9"], 2, "none of auto"),
    (["citation", "--dry-run", "--device", "tpu9"], 2, "none of auto"),
    (["citation", "--dry-run", "--precision", "8-true"], 2, "none of 32-true"),
    (["citation", "--from", "nowhere"], 1, "no result lines in nowhere"),
    (["citation", "--merge", "nowhere"], 1, "no result lines in nowhere"),
    (["citation", "--models", ","], 2, "--models: this is empty"),
    (["citation", "--from", LINES, "--models", "gnc"], 1, "known are gcnfp"),
    (["citation", "--from", LINES, "--datasets", "core"], 1, "known are cora, citeseer, pubmed"),
    (["citation", "--from", LINES, "--protocol", "old"], 1, "known are paper, stratified, balanced"),
    (["citation", "--from", LINES, "--protocol", "stratified"], 1, "none of 1320 lines is of this part"),
    (["citation", "--from", LINES, "--epochs", "3"], 2, "--set or --epochs changes nothing in them"),
    (["qm8", "--from", LINES, "--save-best", "model"], 2, "--from goes without --merge, --save-best"),
    (["citation", "--out", PLAIN_FILE, "--dry-run"], 1, "is a file, and no .jsonl file"),
    (["qm8", "--halved", "--dry-run"], 2, "--halved is about the model of --save-best"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), MISTAKES, ids=lambda value: str(value)[:60])
def test_a_mistake_ends_with_its_code_and_a_message(arguments, code, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["lanczosnet", "table", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    error = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert stop.value.code == code
    assert message in error
    assert "Traceback" not in error
    assert not os.listdir(tmp_path)


def test_another_precision_is_another_run(tmp_path):
    listed = [
        invoke(*CORA, "--dry-run", "--out", tmp_path, *more).stdout for more in ([], ["--precision", "bf16-mixed"])
    ]
    assert listed[0] != listed[1]
    assert listed[0] == invoke(*CORA, "--dry-run", "--out", tmp_path, "--precision", "32-true").stdout


@pytest.mark.data
def test_a_trial_has_its_options_in_its_lines(real_data, tmp_path):
    trial = ["--option", "input_dropout=0.5", "--data-set", "normalize=true", "--seeds", "1000,", "--epochs", "2"]
    only = ["citation", "--datasets", "cora", "--splits", "public", "--models", "gcn"]
    invoke(*only, *trial, "--device", "cpu", "--data-dir", real_data, "--out", tmp_path)
    (line,) = lines_of(tmp_path)
    assert (line["options"]["input_dropout"], line["data_options"]["normalize"], line["seed"]) == (0.5, True, 1000)
