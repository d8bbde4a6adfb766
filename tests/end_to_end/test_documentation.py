"""What the documents say is true: their code runs, prints what they show, and every name they mention exists."""

import contextlib
import importlib
import io
import re
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from lanczosnet.cli.app import app
from lanczosnet.experiments import row
from lanczosnet.models import MODELS

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n+```\n(.*?)```)?", re.DOTALL)


def blocks(document: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / document).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("document", "number"),
    [(name, number) for name in ("README.md", "docs/models.md") for number in range(len(blocks(name)))],
)
def test_the_code_of_the_documents_runs_and_prints_what_they_show(document: str, number: int) -> None:
    code, expected = blocks(document)[number]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, document, "exec"), {"__name__": "document"})
    assert printed.getvalue().strip() == expected.strip()


def test_every_function_and_test_named_beside_an_equation_exists() -> None:
    page = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    for room, name in re.findall(r"`(affinity|krylov|filters|layers|models|diffusion_maps)\.(\w+)`", page):
        assert hasattr(importlib.import_module(f"lanczosnet.{room}"), name), f"{room}.{name}"
    for path in re.findall(r"`(tests/[\w/.]+)`", page):
        assert (ROOT / path).is_file(), path


def test_the_parameter_counts_beside_the_networks_are_those_of_the_published_rows() -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| ([\w-]+)(, published filter)? \| ([\d,]+) \|(.*)\|$", page, re.MULTILINE)
    sizes = {"cora": (1433, 7), "citeseer": (3703, 6), "pubmed": (500, 3)}
    assert len(lines) == len(MODELS) + 1
    for label, variant, molecules, citations in lines:
        name = label.lower().replace("-", "")
        with torch.device("meta"):
            counted = [row("qm8", name, "published" if variant else "").build(70, 16)]
            if not variant:
                counted += [row("citation", name).build(*size) for size in sizes.values()]
        shown = [int(count.replace(",", "")) for count in (molecules, *citations.split("|")) if count.strip()]
        assert [sum(p.numel() for p in network.parameters()) for network in counted] == shown


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "trials" / "README.md"]


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_link_between_the_documents_leads_somewhere() -> None:
    for document in pages():
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", document.read_text(encoding="utf-8")):
            if target.startswith(("gallery/", "commands/")) or target in (
                "results.md",
                "changelog.md",
                "contributing.md",
            ):
                continue  # `make docs` makes these pages
            page = document.parent / target if target else document
            assert page.exists(), f"{document.name}: {target}"
            is_generated = target.startswith("reference/")  # its headings; a build of the site checks the links to them
            assert not anchor or is_generated or anchor in anchors(page), f"{document.name}: {target}#{anchor}"


def test_every_file_that_a_document_names_exists() -> None:
    roots = (ROOT, ROOT / "src", ROOT / "src" / "lanczosnet")
    for document in pages():
        quoted = re.findall(r"`([^`\n]+)`", document.read_text(encoding="utf-8"))
        for path in re.findall(r"(?<!\S)[\w-]+/[\w/.-]+\.(?:py|jsonl\.gz|jsonl)(?!\S)", "\n".join(quoted)):
            assert any((root / path).exists() for root in roots), f"{document.name}: {path}"


def test_the_examples_run() -> None:
    for example in (ROOT / "examples").glob("lanczos*.py"):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(example.read_text(encoding="utf-8"), example.name, "exec"), {"__name__": "__main__"})
        assert "Ritz values" in printed.getvalue()


def test_the_tables_of_the_results_are_those_of_their_lines() -> None:
    page = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    shown = re.findall(r"<!-- (table|conclusions) (\w+): (\S+) -->\n(.*?)\n<!-- end -->", page, re.DOTALL)
    assert {kind for kind, *_ in shown} == {"table", "conclusions"}
    for kind, table, lines, text in shown:
        form = "markdown" if kind == "table" else kind
        command = ["table", table, "--from", str(ROOT / lines), "--format", form]
        printed = CliRunner().invoke(app, command)
        assert printed.exit_code == 0, printed.output
        assert printed.stdout.strip() == text
