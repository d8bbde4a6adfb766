"""The lines of record in `results/`: their keys, their cells and the form of their networks stay as they are."""

import json
from pathlib import Path

import pytest

from lanczosnet.experiments.hyperparameters import ROWS
from lanczosnet.experiments.tables import ablation_grid, citation_grid, qm8_grid
from lanczosnet.experiments.verify import run_of
from lanczosnet.layers.residual import ResidualStack

RESULTS = Path(__file__).resolve().parents[3] / "results"
GRIDS = {
    "ablation-paper": lambda: ablation_grid(),
    "citation-modern": lambda: citation_grid("paper", "modern"),
    "citation-paper": lambda: citation_grid("paper", "paper"),
    "citation-stratified-modern": lambda: citation_grid("stratified", "modern"),
    "qm8-modern": lambda: qm8_grid("modern"),
    "qm8-paper": lambda: qm8_grid("paper", variants=("lanczos",)),
}


def lines_of(name: str) -> list[dict]:
    return [json.loads(line) for line in (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", GRIDS)
def test_every_line_has_the_key_of_its_own_description(name):
    for line in {line["cell"]: line for line in lines_of(name)}.values():
        assert run_of(line).key == line["key"]


@pytest.mark.parametrize("name", GRIDS)
def test_the_tables_of_today_have_the_cells_of_the_lines(name):
    assert {line["cell"] for line in lines_of(name)} <= {cell.key for cell in GRIDS[name]().cells}


@pytest.mark.parametrize("name", GRIDS)
def test_the_runs_of_the_tables_train_the_published_form(name):
    for cell in GRIDS[name]().cells:
        assert cell.run(0).spec().settings.get("block", "plain") == "plain"
        assert cell.model not in ("lanczosnet", "adalanczosnet") or cell.run(0).spec().settings["block"] == "plain"


def test_rows_build_the_published_form():
    for row in ROWS:
        if "lanczos" in row.model:
            network = row.build(5, 3, **({"filter_channels": (4,)} if row.variant == "published" else {}))
            assert not any(isinstance(module, ResidualStack) for module in network.modules())
