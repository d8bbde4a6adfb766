"""Run the examples of the gallery, and write a page for each with its output and figures.

An example is a script of cells: `# %%` begins code, `# %% [markdown]` begins text. Figures are the PNG files that a
cell writes into the working directory.
"""

import argparse
import contextlib
import io
import multiprocessing
import os
import re
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from notebooks import links

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "gallery"


class Cell(NamedTuple):
    is_text: bool
    source: str


def cells(script: str) -> list[Cell]:
    """The cells of a script in percent format."""
    parts = re.split(r"^# %%(.*)\n", script, flags=re.MULTILINE)[1:]
    found = zip(parts[::2], parts[1::2], strict=True)
    return [Cell(True, _text(body)) if "[markdown]" in mark else Cell(False, body.strip()) for mark, body in found]


def _text(comments: str) -> str:
    return re.sub(r"^# ?", "", comments.strip(), flags=re.MULTILINE)


def page(example: Path) -> str:
    """Run an example in the working directory; its page in Markdown."""
    content = cells(example.read_text(encoding="utf-8"))
    title = content[0].source.splitlines()[0].removeprefix("# ")
    namespace = {"__name__": "__main__"}
    parts = [part for cell in content for part in _rendered(cell, namespace, title, example)]
    downloads = f"Download this page as a [script]({example.name}) or a [notebook]({example.stem}.ipynb)."
    downloads += f" {links(example.stem)}."
    return "\n\n".join([*parts, downloads]) + "\n"


def _rendered(cell: Cell, namespace: dict[str, object], title: str, example: Path) -> list[str]:
    if cell.is_text:
        return [cell.source]
    before = set(Path().glob("*.png"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(cell.source, str(example), "exec"), namespace)
    figures = sorted(set(Path().glob("*.png")) - before)
    output = printed.getvalue().rstrip()
    shown = [f"```text\n{output}\n```"] if output else []
    return [f"```python\n{cell.source}\n```", *shown, *(f"![Figure: {title}]({figure})" for figure in figures)]


def write_page(example: Path, folder: Path) -> None:
    """The page, the figures and the script itself, in this folder; other files that it writes are dropped."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as workplace, contextlib.chdir(workplace):
        (folder / f"{example.stem}.md").write_text(page(example), encoding="utf-8")
        for file in (example, *Path().glob("*.png")):
            shutil.copy(file, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    os.environ |= {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    processes = multiprocessing.get_context("spawn")
    # Every example has a process of its own: none sees what another one imported or changed.
    with ProcessPoolExecutor(2, mp_context=processes, max_tasks_per_child=1) as pool:
        runs = {example.name: pool.submit(write_page, example, folder) for example in sorted(EXAMPLES.glob("*.py"))}
        for name, run in runs.items():
            run.result()
            print(name)


if __name__ == "__main__":
    main()
