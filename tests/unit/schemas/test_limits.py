"""Limits: what they say, how they are raised, and that SECURITY.md lists them."""

from pathlib import Path

import pytest

from lanczosnet.schemas.limits import LIMITS, PREFIX, LimitError, check_limit, limit, raised

SECURITY = Path(__file__).resolve().parents[3] / "SECURITY.md"


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_is_raised_by_its_variable(name, monkeypatch):
    most = limit(name)
    check_limit(name, most)
    with pytest.raises(LimitError, match=f"set the environment variable {PREFIX}{name}"):
        check_limit(name, 2 * most)
    monkeypatch.setenv(PREFIX + name, str(2 * most))
    check_limit(name, 2 * most)


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_raised_for_a_while(name):
    most = limit(name)
    with raised({name: str(2 * most)}):
        check_limit(name, 2 * most)
    assert limit(name) == most


def test_a_limit_of_the_environment_comes_back(monkeypatch):
    monkeypatch.setenv(f"{PREFIX}NODES", "5")
    with pytest.raises(LimitError, match="positive"), raised({"NODES": "x"}):
        pytest.fail("a limit that is no number was taken")
    assert limit("NODES") == 5


@pytest.mark.parametrize("text", ["", "many", "-1", "nan", "0"])
def test_a_variable_that_is_no_limit_is_an_error(monkeypatch, text):
    monkeypatch.setenv(f"{PREFIX}NODES", text)
    with pytest.raises(LimitError, match=f"{PREFIX}NODES must be a positive number"):
        limit("NODES")


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_is_listed(name):
    default = f"{LIMITS[name].default:,.0f}"
    assert f"| `{name.lower()}` | {LIMITS[name].about} | {default} |" in SECURITY.read_text(encoding="utf-8")
