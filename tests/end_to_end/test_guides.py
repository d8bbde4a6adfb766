"""The tutorial and the guides are true: their files are written, and their code and commands run in order."""

import contextlib
import io
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from lanczosnet.backends import ROWS
from lanczosnet.cli.app import app
from site_tools import tool

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "index.md", *sorted(ROOT.glob("docs/tutorial/*.md")), *sorted(ROOT.glob("docs/how-to/*.md"))]
BLOCK = re.compile(r"^```(\w+)(?: title=\"(.+?)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INSTALL = "pip install "  # the one command that a test does not run


class Block(NamedTuple):
    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder beside the repository's results and models, and a registry that stays as it was."""
    for name in ("results", "pretrained"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))  # of the commands that start processes
    rows = dict(ROWS)
    yield tmp_path
    ROWS.clear()
    ROWS.update(rows)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_and_the_commands_of_a_guide_run_and_print_what_it_shows(page: Path, workplace: Path) -> None:
    found = blocks(page)
    if any("smiles" in block.text or "SMILES" in block.text for block in found):
        pytest.importorskip("rdkit")
    for block in found:  # files first: a guide may show a command before the file that it reads
        if block.title and block.title != "Install":
            (workplace / block.title).write_text(block.text, encoding="utf-8")
    names: dict[str, object] = {"__name__": page.stem}
    for block, following in zip(found, [*found[1:], Block("", "", "")], strict=True):
        if block.language == "console":
            run_commands(block)
        elif block.language == "python" and not block.title:
            expected = following.text if following.language == "text" else ""
            assert printed_by(block.text, names) == expected.strip()


def run_commands(block: Block) -> None:
    for line in block.text.splitlines():
        if line.startswith(INSTALL):
            assert block.title == "Install"
        else:
            run_command(shlex.split(line, comments=True))


def run_command(words: list[str]) -> None:
    if words[0] == "torchrun":
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        done = subprocess.run([*launcher, *words[1:]], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    else:
        assert words[0] == "lanczosnet"
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{' '.join(words)}\n{result.output}"


def printed_by(code: str, names: dict[str, object]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "guide", "exec"), names)
    return printed.getvalue().strip()


def test_every_block_of_a_guide_is_one_that_the_tests_know() -> None:
    for page in PAGES:
        fences = re.findall(r"^```(\w+.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == len(blocks(page)), page.name
        assert {block.language for block in blocks(page)} <= {"console", "python", "text", "csv", "toml"}, page.name


def test_every_public_name_is_on_a_page_of_the_reference() -> None:
    source = ROOT / "src" / "lanczosnet"
    listed = {_module(init, source): _exported(init) for init in sorted(source.rglob("*.py")) if _is_public(init)}
    for internal in ("cli", "files", "processes"):  # the commands have pages of their own; the others are helpers
        listed.pop(internal, None)
    pages = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob("docs/reference/*.md"))
    shown = set().union(*(names for package, names in listed.items() if f"\n::: lanczosnet.{package}\n" in pages))
    assert shown
    for package, names in listed.items():
        assert names <= shown, f"{package} has public names, but no page in docs/reference"


def _is_public(file: Path) -> bool:
    """Whether its `__all__` is what users may import: of packages, and of modules beside them."""
    path = file.relative_to(ROOT / "src" / "lanczosnet")
    is_package, is_module = path.name == "__init__.py", len(path.parts) == 1
    return (is_package and len(path.parts) > 1) or (is_module and not path.name.startswith("_"))


def _module(file: Path, source: Path) -> str:
    return ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def _exported(file: Path) -> set[str]:
    names = re.search(r"^__all__ = \[(.*?)\]", file.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return set(re.findall(r'"(\w+)"', names[1])) if names else set()


def test_every_flowchart_of_a_page_can_be_drawn(tmp_path: Path) -> None:
    diagrams = tool("diagrams")
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    charts = diagrams.FLOWCHART.findall(page)
    assert len(charts) == page.count("```mermaid") == 2
    for direction, text in charts:
        assert diagrams.graph_of(text).number_of_edges() > 8
        diagrams.draw(text, direction == "LR", tmp_path / "chart.svg")
        assert (tmp_path / "chart.svg").stat().st_size > 10_000


def test_the_versions_for_the_site_cover_its_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "constraints-docs.txt").read_text(encoding="utf-8"), re.MULTILINE))
    assert {re.split(r"[\[>=]", need)[0] for need in project["optional-dependencies"]["docs"]} <= pinned


def test_every_page_is_in_the_menu_of_the_site() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in ROOT.glob("docs/**/*.md"):
        assert re.search(rf"\b{re.escape(str(page.relative_to(ROOT / 'docs')))}$", menu, re.MULTILINE), page.name


def test_every_link_between_the_pages_leads_somewhere() -> None:
    made = {"results.md", "changelog.md", "contributing.md", "gallery/index.md", "commands/index.md"}  # by the build
    made |= {f"gallery/{example.stem}.md" for example in ROOT.glob("examples/gallery/*.py")}
    made |= {f"commands/{verb}.md" for verb in tool("commands").GUIDES}
    for page in ROOT.glob("docs/**/*.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve()
            assert path.exists() or str(path.relative_to(ROOT / "docs")) in made, f"{page.name}: {target}"
