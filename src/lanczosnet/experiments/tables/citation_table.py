"""Table 1: eleven networks on the citation networks, with the public split and with few labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from lanczosnet.experiments.grid import TITLES, Cell, Grid, chosen, percent, split_title
from lanczosnet.experiments.hyperparameters import Labels, row_with
from lanczosnet.experiments.published import published
from lanczosnet.experiments.tables.spec import Place, Reference, TableSpec
from lanczosnet.training.recipes import recipe as recipe_of

DATASETS = {"cora": "Cora", "citeseer": "Citeseer", "pubmed": "Pubmed"}
UNIFORM = {"cora": (0.03, 0.01, 0.005), "citeseer": (0.01, 0.005, 0.003), "pubmed": (0.001, 0.0005, 0.0003)}
BY_CLASS = {"cora": (0.03, 0.01, 0.005), "citeseer": (0.01, 0.005), "pubmed": (0.001, 0.0005, 0.0003)}
PROTOCOLS: dict[str, list[tuple[str, str, float | None]]] = {
    "paper": [
        place
        for name, fractions in UNIFORM.items()
        for place in [(name, "public", None), *((name, "uniform", fraction) for fraction in fractions)]
    ],
    **{
        protocol: [(name, kind, fraction) for name, fractions in BY_CLASS.items() for fraction in fractions]
        for protocol, kind in (("stratified", "fraction-per-class"), ("balanced", "stratified"))
    },
}
FEWEST = 0.0003  # of Pubmed's nodes: two or three of each class
RUNS = {"paper": 10, "stratified": 100, "balanced": 100}
PUBLISHED_RUNS = 10
# Word counts as the files have them, as in Yang et al. (2016), whose pre-processing the paper follows; rows may differ.
DATA_OPTIONS = {"normalize": False}


def citation_grid(
    protocol: str = "paper",
    recipe: str = "paper",
    *,
    datasets: Sequence[str] | None = None,
    splits: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Grid:
    """The cells of a protocol, those that are named; `settings` change numbers of the recipe."""
    names = chosen(datasets, DATASETS, "data set")
    places = [place for place in places_of(protocol) if place[0] in names]
    wanted = chosen(splits, (split_name(*place[1:]) for place in places), "split")
    cells = [
        _cell(dataset, split, fraction, model, recipe, settings or {})
        for dataset, split, fraction in places
        if split_name(split, fraction) in wanted
        for model in chosen(models, TITLES, "model")
    ]
    return Grid(tuple(cells), tuple(range(RUNS[protocol]) if seeds is None else seeds))


def places_of(protocol: str) -> list[tuple[str, str, float | None]]:
    """Data set, kind of split and fraction of its cells."""
    if protocol not in PROTOCOLS:
        raise ValueError(f"there is no protocol {protocol!r}; known are {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol]


def split_name(split: str, fraction: float | None) -> str:
    """As the command line has it: the protocol says whether a fraction is uniform or stratified."""
    return split if fraction is None else percent(fraction)


def _cell(
    dataset: str, split: str, fraction: float | None, model: str, recipe: str, settings: Mapping[str, Any]
) -> Cell:
    row = row_with(recipe, "citation", model, labels=_labels(fraction), dataset=dataset)
    numbers = recipe_of(recipe, "node", {"stop_window": 0} | dict(row.settings) | dict(settings)).settings()
    data = DATA_OPTIONS | dict(row.data)
    return Cell("citation", dataset, split, fraction, model, row.options, recipe, numbers, data_options=data)


def _labels(fraction: float | None) -> Labels:
    if fraction is None:
        return "many"
    return "few" if fraction > FEWEST else "fewest"


def citation_spec(recipe: str = "paper") -> TableSpec:
    """All places of the table, whichever protocol they belong to."""
    places = [
        Place(
            row=(title, split_title(split, fraction)),
            column=network,
            where={"dataset": dataset, "split": split, "fraction": fraction, "model": model},
            value=_accuracy,
            references=_references(dataset, split, fraction, model, recipe),
        )
        for dataset, title in DATASETS.items()
        for name, split, fraction in [place for places in PROTOCOLS.values() for place in places]
        if name == dataset
        for model, network in TITLES.items()
    ]
    return TableSpec(
        "Table 1: test accuracy in percent on the citation networks", ("data", "split"), tuple(places), 1, True
    )


def _accuracy(line: Mapping[str, Any]) -> float:
    return 100.0 * line["metrics"]["test"]["accuracy"]


def _references(dataset: str, split: str, fraction: float | None, model: str, recipe: str) -> tuple[Reference, ...]:
    if split not in ("public", "uniform"):
        assert fraction is not None
        means = {(row["dataset"], float(row["fraction"])): float(row["mean"]) for row in published("stratified")}
        return (Reference("Truncated Krylov", means[dataset, fraction]),)
    found = []
    for row in published("citation"):
        here = (row["dataset"], row["split"], float(row["fraction"]) if row["fraction"] else None)
        if here == (dataset, split, fraction) and row["model"] == model:
            found.append(Reference("published", float(row["mean"]), float(row["deviation"]), PUBLISHED_RUNS))
    if split == "public" and recipe == "modern":
        marks = next(row for row in published("public") if row["dataset"] == dataset)
        found += [Reference("GRAND", float(marks["grand"]))]
    return tuple(found)
