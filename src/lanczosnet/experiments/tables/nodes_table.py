"""A table of our own: node classification beyond the paper, with default and with tuned settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanczosnet.experiments.grid import Cell, Grid, chosen, split_title
from lanczosnet.experiments.hyperparameters.node_rows import NODE_NETWORKS
from lanczosnet.experiments.published import published
from lanczosnet.experiments.tables.spec import Place, Reference, TableSpec
from lanczosnet.graphs.data_sets.node_sets import NODE_SETS
from lanczosnet.training.recipes import NAMES, kind_in_form
from lanczosnet.training.recipes import recipe as recipe_of

TABLE = "nodes"
RECIPE = "modern"
RUNS = 10
TUNED = "tuned"
METRICS = {"accuracy": "accuracy", "roc_auc": "ROC-AUC"}


@dataclass(frozen=True)
class Protocol:
    """How a data set is split: as published, and so many times, or drawn by the seed."""

    title: str
    split: str
    public_splits: int = 0


_TEN, _TWENTY_PER_CLASS = ("public", 10), ("20-per-class",)
DATASETS = {
    "minesweeper": Protocol("Minesweeper", *_TEN),
    "tolokers": Protocol("Tolokers", *_TEN),
    "questions": Protocol("Questions", *_TEN),
    "roman-empire": Protocol("Roman-empire", *_TEN),
    "amazon-ratings": Protocol("Amazon-ratings", *_TEN),
    "chameleon-filtered": Protocol("Chameleon, filtered", *_TEN),
    "squirrel-filtered": Protocol("Squirrel, filtered", *_TEN),
    "amazon-photo": Protocol("Amazon Photo", *_TWENTY_PER_CLASS),
    "amazon-computers": Protocol("Amazon Computers", *_TWENTY_PER_CLASS),
    "coauthor-cs": Protocol("Coauthor CS", *_TWENTY_PER_CLASS),
    "coauthor-physics": Protocol("Coauthor Physics", *_TWENTY_PER_CLASS),
    "wikics": Protocol("WikiCS", "public", 20),
    "city-paris": Protocol("City-Networks, Paris", "public"),
    "city-shanghai": Protocol("City-Networks, Shanghai", "public"),
    "city-la": Protocol("City-Networks, Los Angeles", "public"),
    "city-london": Protocol("City-Networks, London", "public"),
}


def nodes_grid(
    recipe: str = RECIPE,
    *,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    tuned: Path | None = None,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Grid:
    """The cells that are named. `tuned` is a folder with the folders of `lanczosnet tune`, one for each data set."""
    changes = dict(settings or {})
    cells = []
    for dataset in chosen(datasets, DATASETS, "data set"):
        for network in chosen(models, NODE_NETWORKS, "network"):
            row = NODE_NETWORKS[network]
            cells.append(_cell(dataset, network, recipe, row.options, changes))
            if tuned is not None and (best := _best(tuned / dataset / f"best-{network}.toml")) is not None:
                cells.append(_cell(dataset, network, recipe, {**row.options, **best}, changes, TUNED))
    if tuned is not None and not any(TUNED in cell.label for cell in cells):
        raise ValueError(f"there is no {tuned}/DATA SET/best-NETWORK.toml: `lanczosnet tune` leaves such files")
    return Grid(tuple(cells), tuple(range(RUNS)) if seeds is None else tuple(seeds))


def _cell(
    dataset: str, network: str, recipe: str, given: Mapping[str, Any], changes: Mapping[str, Any], kind: str = ""
) -> Cell:
    protocol = DATASETS[dataset]
    numbers = {key: value for key, value in given.items() if key in NAMES} | dict(changes)
    return Cell(
        table=TABLE,
        dataset=dataset,
        split=protocol.split,
        fraction=None,
        model=NODE_NETWORKS[network].model,
        options={key: value for key, value in given.items() if key not in NAMES},
        recipe=recipe,
        settings=recipe_of(recipe, kind_in_form("node", given.get("block")), numbers).settings(),
        label=label_of(network, kind),
        features="auto",
        public_splits=protocol.public_splits,
    )


def _best(file: Path) -> dict[str, Any] | None:
    """The settings in a configuration of `lanczosnet tune`, if it is there."""
    from lanczosnet.schemas.run_config import read_run_config

    return read_run_config(file).table("settings") if file.is_file() else None


def label_of(network: str, kind: str = "") -> str:
    """What tells the cells of a data set apart."""
    return ", ".join(filter(None, (network, kind)))


def nodes_spec(recipe: str = RECIPE) -> TableSpec:
    """A row for each data set, and a column for each network, with default and with tuned settings."""
    places = [
        Place(
            row=(protocol.title, split_title(protocol.split, None), METRICS[NODE_SETS[dataset].metric]),
            column=label_of(network.title, kind),
            where={"dataset": dataset, "label": label_of(name, kind)},
            value=_test_metric(NODE_SETS[dataset].metric),
            references=_references(dataset),
        )
        for dataset, protocol in DATASETS.items()
        for name, network in NODE_NETWORKS.items()
        for kind in ("", TUNED)
    ]
    title = "Node classification: test accuracy in percent, or ROC-AUC x 100"
    return TableSpec(title, ("data", "split", "metric"), tuple(places), 1, True)


def _test_metric(name: str) -> Any:
    return lambda line: 100.0 * line["metrics"]["test"][name]


def _references(dataset: str) -> tuple[Reference, ...]:
    return tuple(
        Reference(
            row["source"],
            float(row["mean"]),
            float(row["deviation"]) if row["deviation"] else None,
            int(row["runs"]) if row["runs"] else None,
        )
        for row in published(TABLE)
        if row["dataset"] == dataset
    )
