"""The gallery: every example runs by itself, claims what is so, and draws a figure."""

import importlib.util
import re
import runpy
import sys
import time
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import torch

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
    spec = importlib.util.spec_from_file_location("run_gallery", ROOT / "docs" / "_tools" / "run_gallery.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


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


def test_a_page_is_not_made_where_an_example_breaks_its_promise(workplace: Path) -> None:
    example = workplace / "wrong.py"
    example.write_text("# %% [markdown]\n# # Title\n\n# %%\nassert 1 + 1 == 3\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        builder().page(example)
