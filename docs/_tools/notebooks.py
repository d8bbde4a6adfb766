"""The examples of the gallery as notebooks, and where they open: Colab and Binder read them from the repository.

`make notebooks` writes them into examples/notebooks. A test and the site's build say when one is out of date.
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, NOTEBOOKS = ROOT / "examples" / "gallery", ROOT / "examples" / "notebooks"
SOURCE: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
REPOSITORY = SOURCE.removeprefix("https://github.com/")
INSTALL = f"""\
# Colab does not have the package; Binder has.
import importlib.util

if importlib.util.find_spec("lanczosnet") is None:
    %pip install -q "lanczosnet[all] @ git+{SOURCE}"
"""


def links(example: str) -> str:
    """Markdown that opens the notebook of an example."""
    path = f"examples/notebooks/{example}.ipynb"
    colab = f"https://colab.research.google.com/github/{REPOSITORY}/blob/main/{path}"
    binder = f"https://mybinder.org/v2/gh/{REPOSITORY}/main?urlpath=lab/tree/{path}"
    return f"[Open in Colab]({colab}) or [in Binder]({binder})"


def notebook(example: Path) -> str:
    """The script as a notebook without output; its second cell installs the package where it is missing."""
    import jupytext
    from nbformat.v4 import new_code_cell

    found = jupytext.read(example)
    found.cells.insert(1, new_code_cell(INSTALL.strip()))
    for number, cell in enumerate(found.cells):
        cell["id"] = f"cell-{number}"  # else it is drawn at random
    found.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return jupytext.writes(found, fmt="ipynb")


def main() -> None:
    NOTEBOOKS.mkdir(exist_ok=True)
    for example in sorted(EXAMPLES.glob("*.py")):
        (NOTEBOOKS / f"{example.stem}.ipynb").write_text(notebook(example), encoding="utf-8")


if __name__ == "__main__":
    main()
