"""A mistake of the program ends in a message and a report, not in a traceback."""

import re
import sys
from pathlib import Path

import pytest

from lanczosnet.cli import app


def ended(monkeypatch, capsys, error, *arguments):
    def fails():
        raise error

    monkeypatch.setattr(app, "app", fails)
    monkeypatch.setattr(sys, "argv", ["lanczosnet", "predict", "a model", *arguments])
    with pytest.raises(SystemExit) as end:
        app.main()
    return end.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [KeyError("colour"), RuntimeError("shapes differ"), ValueError(), RecursionError("deep")]
)
def test_a_mistake_of_the_program_is_one_line_and_a_report(monkeypatch, capsys, tmp_path, error):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, said = ended(monkeypatch, capsys, error)
    assert code == 3
    assert said.count("\n") == 1
    report = Path(re.search(r"report (\S+),", said)[1]).read_text()
    assert "command: lanczosnet predict 'a model'" in report
    assert "Traceback" in report
    assert type(error).__name__ in report


def test_without_a_place_for_a_report_the_message_says_how_to_see_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    code, said = ended(monkeypatch, capsys, KeyError("colour"))
    assert code == 3
    assert "with what --debug shows" in said


def test_a_mistake_of_the_user_is_told_in_options(monkeypatch, capsys):
    assert ended(monkeypatch, capsys, ValueError("pass resume=True")) == (1, "error: pass --resume\n")


def test_a_message_that_quotes_too_much_is_shortened(monkeypatch, capsys):
    code, said = ended(monkeypatch, capsys, ValueError("file.csv: " + "x" * 100_000 + ". Delete it"))
    assert code == 1
    assert len(said) < 2100
    assert said.startswith("error: file.csv: x")
    assert said.endswith(". Delete it\n")


def test_debug_shows_the_traceback(monkeypatch, capsys):
    with pytest.raises(KeyError):
        ended(monkeypatch, capsys, KeyError("colour"), "--debug")
