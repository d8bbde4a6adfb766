"""`--help` points to the page of a verb, and the site has that page."""

import tomllib
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from lanczosnet.cli.app import app
from lanczosnet.cli.pages import SITE, page_of
from site_tools import tool

ROOT = Path(__file__).resolve().parents[2]
VERBS = sorted(get_command(app).commands)


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_ends_with_its_page_which_is_in_the_menu(verb: str) -> None:
    result = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "200"})
    assert page_of(verb) in result.output
    assert f"- commands/{verb}.md\n" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_the_help_of_all_points_to_these_pages() -> None:
    assert f"{SITE}/commands/VERB/" in CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Documentation"] == SITE


@pytest.mark.slow
def test_every_verb_has_a_page_with_its_options_and_guides() -> None:
    commands = tool("commands")
    pages = commands.pages(commands.reference())
    assert sorted(pages) == sorted([*VERBS, "index"])
    assert sorted(commands.GUIDES) == VERBS
    made = {"gallery/lanczos_ritz_values.md"}  # by the site's build
    for links in commands.GUIDES.values():
        for target in links.values():
            path = target.partition("#")[0]
            assert (ROOT / "docs" / path).is_file() or path in made, target
    assert "```console\nlanczosnet train digits --split 10-per-class\n" in pages["train"]
    assert "`--split-seed" in pages["train"]
    assert "Page: http" not in "".join(pages.values())
    assert all("Read more: [" in pages[verb] for verb in VERBS)
