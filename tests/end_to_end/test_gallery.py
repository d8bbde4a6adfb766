"""The gallery: every example runs by itself, claims what is so, and draws a figure."""

import json
import re
import runpy
import time
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import torch

from site_tools import tool

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("*.py"))
MOST_SECONDS = 20.0  # of an example, on two cores
SMALLEST_FIGURE = 10_000  # bytes; an empty one has fewer


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    plt.switch_backend("Agg")
    return tmp_path


def builder() -> ModuleType:
    """What the site's build runs the examples with."""
    return tool("run_gallery")


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_in_time_keeps_its_promises_and_draws_a_figure(example: Path, workplace: Path) -> None:
    if "rdkit" in example.read_text(encoding="utf-8"):
        pytest.importorskip("rdkit")
    began = time.process_time()
    with mpl.rc_context(), torch.random.fork_rng(devices=[]):
        runpy.run_path(str(example), run_name="__main__")
        plt.close("all")
    seconds = (time.process_time() - began) / min(2, torch.get_num_threads())
    assert seconds < MOST_SECONDS
    assert (workplace / f"{example.stem}.png").stat().st_size > SMALLEST_FIGURE


def test_there_are_ten_examples_each_of_which_claims_something_and_is_in_the_menu() -> None:
    assert len(EXAMPLES) >= 10
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for example in EXAMPLES:
        text = example.read_text(encoding="utf-8")
        assert text.startswith("# %% [markdown]\n# # "), example.name
        assert re.search(r"^assert ", text, re.MULTILINE), example.name
        assert f"gallery/{example.stem}.md" in menu


def test_a_page_shows_the_text_the_code_its_output_and_its_figure(workplace: Path) -> None:
    example = workplace / "small.py"
    example.write_text(
        "# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nfrom pathlib import Path\n\nprint(1 + 1)\n\n"
        "# %%\nPath('small.png').touch()\n",
        encoding="utf-8",
    )
    page = builder().page(example)
    assert page.startswith(
        "# Title\n\nText.\n\n```python\nfrom pathlib import Path\n\nprint(1 + 1)\n```\n\n```text\n2\n```"
    )
    assert "![Figure: Title](small.png)" in page
    assert "[notebook](small.ipynb)" in page
    assert "https://colab.research.google.com/github/" in page
    assert "https://mybinder.org/v2/gh/" in page


def test_a_page_is_not_made_where_an_example_breaks_its_promise(workplace: Path) -> None:
    example = workplace / "wrong.py"
    example.write_text("# %% [markdown]\n# # Title\n\n# %%\nassert 1 + 1 == 3\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        builder().page(example)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_the_notebook_of_an_example_has_its_cells(example: Path) -> None:
    found = json.loads((ROOT / "examples" / "notebooks" / f"{example.stem}.ipynb").read_text(encoding="utf-8"))["cells"]
    install = found.pop(1)
    assert "".join(install["source"]) == tool("notebooks").INSTALL.strip()
    shown = [(cell["cell_type"] == "markdown", "".join(cell["source"]).strip()) for cell in found]
    expected = [(cell.is_text, cell.source.strip()) for cell in builder().cells(example.read_text(encoding="utf-8"))]
    assert shown == expected, "run `make notebooks`"


def test_there_is_no_notebook_without_an_example() -> None:
    notebooks = {path.stem for path in (ROOT / "examples" / "notebooks").iterdir()}
    assert notebooks == {example.stem for example in EXAMPLES}
