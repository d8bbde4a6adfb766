"""A table of our own: properties of molecules, with default settings, beside chemprop and a random forest."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lanczosnet.experiments.grid import OWN, Cell, Grid, chosen
from lanczosnet.experiments.hyperparameters.molecule_net_rows import (
    CHEMPROP,
    LANCZOSNET,
    RIVALS,
    RUN_HERE,
    MoleculeModel,
)
from lanczosnet.experiments.published import published
from lanczosnet.experiments.tables.spec import Line, Place, Reference, Rival, TableSpec
from lanczosnet.graphs.data_sets.molecule_sets import MOLECULE_SETS
from lanczosnet.training.recipes import recipe as recipe_of

TABLE = "molecules"
RECIPE = "modern"
RUNS = 5
SPLITS = ("random", "scaffold")  # 80 / 10 / 10
METRICS = {"rmse": "RMSE", "roc_auc": "ROC-AUC"}
DATASETS = {
    "esol": "ESOL",
    "freesolv": "FreeSolv",
    "bbbp": "BBBP",
    "lipophilicity": "Lipophilicity",
    "bace": "BACE",
    "tox21": "Tox21",
    "clintox": "ClinTox",
    "sider": "SIDER",
    "hiv": "HIV",
}
ALWAYS = ("esol", "freesolv", "bbbp")  # the others are run where they are named


def molecules_grid(
    recipe: str = RECIPE,
    *,
    datasets: Sequence[str] | None = None,
    splits: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Grid:
    """The cells that are named. Those of chemprop are recorded by `benchmarks/chemprop_lines.py`."""
    places = [
        (dataset, split)
        for dataset in chosen(ALWAYS if datasets is None else datasets, DATASETS, "data set")
        for split in chosen(splits, SPLITS, "split")
    ]
    rows = [RUN_HERE[name] for name in chosen(models, RUN_HERE, "model")]
    cells = tuple(_cell(*place, row, recipe, settings or {}) for place in places for row in rows)
    beside = [row for row in RIVALS if row not in rows]
    recorded = tuple(_cell(*place, row, recipe, {}) for place in places for row in beside)
    return Grid(cells, tuple(range(RUNS)) if seeds is None else tuple(seeds), recorded)


def chemprop_cell(dataset: str, split: str) -> Cell:
    return _cell(dataset, split, CHEMPROP, RECIPE, {})


def _cell(dataset: str, split: str, row: MoleculeModel, recipe: str, changes: Mapping[str, Any]) -> Cell:
    is_ours = row is LANCZOSNET
    return Cell(
        table=TABLE,
        dataset=dataset,
        split=split,
        fraction=None,
        model=row.model,
        options=row.options,
        recipe=recipe if is_ours else OWN,
        settings=recipe_of(recipe, "molecule", changes).settings() if is_ours else row.settings,
        label=row.version,
        data_options=row.data_options,
        features="auto" if is_ours else "none",
    )


def molecules_spec(recipe: str = RECIPE) -> TableSpec:
    """A row for each data set and split; below ours are the others on the same splits, then published numbers."""
    places = [_place(dataset, split) for dataset in DATASETS for split in SPLITS]
    title = "Properties of molecules with default settings: test RMSE (lower is better) or ROC-AUC (higher is better)"
    return TableSpec(title, ("data", "split", "metric"), tuple(places), 3, None)


def _place(dataset: str, split: str) -> Place:
    metric = MOLECULE_SETS[dataset].metric
    here = {"dataset": dataset, "split": split}
    return Place(
        row=(DATASETS[dataset], split, METRICS[metric]),
        column=LANCZOSNET.title,
        where=here | {"model": LANCZOSNET.model},
        value=_test_metric(metric),
        references=_published(dataset, split),
        rivals=tuple(Rival(row.title, here | {"model": row.model}) for row in RIVALS),
        higher_is_better=metric != "rmse",
    )


def _test_metric(name: str) -> Callable[[Line], float]:
    return lambda line: float(line["metrics"]["test"][name])


def _published(dataset: str, split: str) -> tuple[Reference, ...]:
    return tuple(
        Reference(row["source"], float(row["mean"]), float(row["deviation"]), int(row["runs"]))
        for row in published(TABLE)
        if (row["dataset"], row["split"]) == (dataset, split)
    )
