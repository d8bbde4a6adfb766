"""`--limit NAME=VALUE`: which verbs have it, what raises it, and that messages name it."""

import pytest
from typer.main import get_command

from lanczosnet.cli.app import app
from lanczosnet.schemas.limits import LIMITS, limit
from unit.cli.test_odd_inputs import MODEL, ended

READ_NO_FILES = {"demo", "doctor", "list", "fetch"}
LONG = "C" * 5100


def commands():
    verbs = dict(get_command(app).commands)
    return verbs | dict(verbs.pop("data").commands)


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_verb_that_reads_files_has_the_option(name):
    options = {option for parameter in commands()[name].params for option in parameter.opts}
    assert ("--limit" in options) == (name not in READ_NO_FILES)


def test_a_message_names_the_option_which_raises_the_limit_for_this_command_alone(monkeypatch, capsys):
    _, refused, _ = ended(monkeypatch, capsys, "predict", MODEL, LONG)
    assert "5,100 is more than the limit of 5,000. If it is meant, raise it with --limit smiles=VALUE" in refused
    code, predicted, _ = ended(monkeypatch, capsys, "predict", MODEL, LONG, "--limit", "smiles=6000")
    assert code == 0
    assert "--limit" not in predicted
    assert limit("SMILES") == LIMITS["SMILES"].default


def test_an_error_names_the_option(monkeypatch, capsys):
    code, _, said = ended(monkeypatch, capsys, "train", "karate", "--set", "num_layers=5000", "--limit", "steps=1e6")
    assert code == 1
    assert "num_layers: 5,000 is more than the limit of 1,000. If it is meant, raise it with --limit layers=" in said


@pytest.mark.parametrize(
    ("given", "said"), [("smile=1", "layers"), ("smiles", "NAME=VALUE"), ("smiles=-1", "positive"), ("cell=x", "cell")]
)
def test_what_is_no_limit_is_bad_usage(monkeypatch, capsys, given, said):
    code, _, error = ended(monkeypatch, capsys, "predict", MODEL, "CC", "--limit", given)
    assert code == 2
    assert "--limit" in error
    assert said in error
