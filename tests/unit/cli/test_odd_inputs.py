"""Texts that are no paths, numbers that are none, and inputs that are closed: a message, or the right thing."""

import re
import sys
from pathlib import Path

import pytest

from lanczosnet.cli import main
from lanczosnet.files import is_there, user_path

MODEL = str(Path(__file__).resolve().parents[3] / "pretrained" / "qm8")


def ended(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["lanczosnet", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    shown = capsys.readouterr()
    return end.value.code, shown.out, shown.err


def test_a_text_that_can_be_no_path_names_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not is_there("C" * 300)
    assert not is_there("a\0b")
    assert user_path("./~x") == Path("~x")
    assert user_path("~no-such-user/x") == Path("~no-such-user/x")
    assert user_path("~/x") == Path.home() / "x"
    (tmp_path / "~x").touch()
    assert user_path("~x") == Path("~x")


def test_a_long_smiles_is_predicted(monkeypatch, capsys):
    code, out, _ = ended(monkeypatch, capsys, "predict", MODEL, "C" * 300)
    assert code == 0
    assert out.splitlines()[1].startswith("C" * 300)
    assert out.rstrip().endswith(",")  # without an error


@pytest.mark.parametrize("name", ["~x", "./~x"])
def test_a_file_whose_name_begins_like_a_home_is_read(monkeypatch, capsys, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~x.csv").write_text("smiles\nCCO\n")
    code, out, _ = ended(monkeypatch, capsys, "predict", MODEL, f"{name}.csv")
    assert code == 0
    assert out.splitlines()[1].startswith("CCO,")


def test_a_closed_input_is_told(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert ended(monkeypatch, capsys, "predict", MODEL, "-")[::2] == (
        1, "error: standard input is closed: there is nothing to predict\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "karate", "--seed", "-1"), "(greater than or equal to 0|in the range 0<=x)"),
        (("train", "karate", "--split-seed", "-1"), "(greater than or equal to 0|in the range 0<=x)"),
        (("spectrum", "karate", "--seed", 2**70), "(less than or equal to|in the range 0<=x)"),
        (("train", "karate", "--data-set", "data_dir=/x"), "data_dir is set by --data-dir"),
        (("spectrum", "karate", "--data-set", "source=x"), "source is set by the argument SOURCE"),
    ],
)
def test_what_no_option_takes_is_bad_usage(monkeypatch, capsys, arguments, message):
    code, _, said = ended(monkeypatch, capsys, *arguments)
    assert code == 2
    assert re.search(message, " ".join(said.replace("│", "").split()))  # versions of typer word it differently


def test_sizes_follow_from_the_data(monkeypatch, capsys, tmp_path):
    code, _, said = ended(monkeypatch, capsys, "train", "karate", "--set", "out_channels=5", "--out", tmp_path / "m")
    assert code == 1
    assert "out_channels follows from the data" in said


def test_a_name_that_is_no_text_is_read(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    name = b"odd-\xff.csv".decode(errors="surrogateescape")
    Path(name).write_text("smiles\nCCO\n")
    code, out, _ = ended(monkeypatch, capsys, "predict", MODEL, name)
    assert code == 0
    assert out.splitlines()[1].startswith("CCO,")
    code, _, said = ended(monkeypatch, capsys, "train", b"no-\xff".decode(errors="surrogateescape"))
    assert code == 1
    assert "neither a data set nor a file" in said
