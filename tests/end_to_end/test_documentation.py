"""What the documents say is true: their code runs, prints what they show, and every name they mention exists."""

import contextlib
import importlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n+```\n(.*?)```)?", re.DOTALL)


def blocks(document: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / document).read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", range(len(blocks("README.md"))))
def test_the_code_of_the_readme_runs_and_prints_what_it_shows(number: int) -> None:
    code, expected = blocks("README.md")[number]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert printed.getvalue().strip() == expected.strip()


def test_every_function_and_test_named_beside_an_equation_exists() -> None:
    page = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    for room, name in re.findall(r"`(affinity|krylov|filters|layers|models|diffusion_maps)\.(\w+)`", page):
        assert hasattr(importlib.import_module(f"lanczosnet.{room}"), name), f"{room}.{name}"
    for path in re.findall(r"`(tests/[\w/.]+)`", page):
        assert (ROOT / path).is_file(), path


def test_every_link_between_the_documents_leads_somewhere() -> None:
    for document in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_examples_run() -> None:
    for example in (ROOT / "examples").glob("lanczos*.py"):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(example.read_text(encoding="utf-8"), example.name, "exec"), {"__name__": "__main__"})
        assert "Ritz values" in printed.getvalue()
