"""Tables 2 and 3: eleven networks on QM8, and the ablation of the two Lanczos networks."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lanczosnet.experiments.grid import TITLES, Cell, Grid, chosen
from lanczosnet.experiments.hyperparameters import Row, row_with
from lanczosnet.experiments.hyperparameters import row as row_of
from lanczosnet.experiments.published import published
from lanczosnet.experiments.tables.spec import Claim, Place, Reference, TableSpec
from lanczosnet.training.recipes import recipe as recipe_of

SEEDS = (1234, 5678, 9012)
MORE_SEEDS = tuple(range(10_000, 10_017))  # of comparisons that the three do not decide; sorted, they come later
LOOKS = (3, 5, 10, 15, 20)  # numbers of seeds after which a comparison is tested
PUBLISHED_RUNS = 3
TASKS = 16
SPLIT_SEED = 0  # one split for all runs, as the paper has one
Line = tuple[Row, str, Mapping[str, Any]]  # a row of Table 2, what tells it apart, and options over its own
# Further rows of Table 2, with the published recipe: of which networks, and what their cells are called.
VARIANTS = {
    "lanczos": (("lanczosnet", "adalanczosnet"), "through Lanczos"),
    "published": (("adalanczosnet",), "published filter"),
}
FILTER_WIDTH = 128  # "the MLP consists of 128 hidden units per layer"
KERNEL_CHANNELS = (128,) * 3  # "a 3 layer MLP"; its width is not given


def qm8_grid(
    recipe: str = "paper", *, models: Sequence[str] | None = None, variants: Sequence[str] = (), **how: Any
) -> Grid:
    """Table 2's cells of the networks that are named, with those of `VARIANTS`; other options as of `ablation_grid`."""
    networks = chosen(models, TITLES, "model")
    lines: list[Line] = [(row_with(recipe, "qm8", model), "", {}) for model in networks]
    for variant in chosen(variants, VARIANTS, "variant"):
        of_models, label = VARIANTS[variant]
        lines += [(row_of("qm8", model, variant), label, {}) for model in of_models if model in networks]
    return _grid("qm8", recipe, lines, **how)


def ablation_grid(recipe: str = "paper", *, models: Sequence[str] | None = None, **how: Any) -> Grid:
    """Table 3's cells. `molecules` limits how many of QM8 are used, `settings` change settings of the recipe."""
    wanted = chosen(models, (row["model"] for row in published("ablation")), "model")
    lines: list[Line] = [
        (row_with(recipe, "qm8", row["model"]), ablation_label(row), ablation_options(row, recipe))
        for row in published("ablation")
        if row["model"] in wanted
    ]
    return _grid("ablation", recipe, lines, **how)


def _grid(
    table: str,
    recipe: str,
    lines: Sequence[Line],
    *,
    seeds: Sequence[int] | None = None,
    molecules: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Grid:
    part = {} if molecules is None else {"molecules": molecules}
    cells = {}
    for row, label, options in lines:
        numbers = recipe_of(recipe, "graph", dict(row.settings) | dict(settings or {})).settings()
        every = dict(row.options) | dict(options)
        data = {"tasks": TASKS} | dict(row.data) | part
        cell = Cell(table, "qm8", "random", 0.8, row.model, every, recipe, numbers, label, data, SPLIT_SEED)
        cells[cell.key] = cell  # two of the fifteen rows are one configuration
    return Grid(tuple(cells.values()), SEEDS if seeds is None else tuple(seeds))


def ablation_options(row: Mapping[str, str], recipe: str = "paper") -> dict[str, Any]:
    """The network's options in a row of Table 3, over those of Table 2."""
    layers = int(row["spectral_filter"].partition("-")[0] or 0)
    learned = row_with(recipe, "qm8", row["model"]).options["spectral_filter"]
    options: dict[str, Any] = {
        "node_input": row["node_embedding"],
        "spectral_filter": learned if layers else "power",
        "filter_channels": (FILTER_WIDTH,) * layers,
        "short_scales": _numbers(row["short_scales"]),
        "long_scales": _numbers(row["long_scales"]),
    }
    if row["lanczos_steps"]:
        options["num_steps"] = int(row["lanczos_steps"])
    if row["graph_kernel"]:
        options["kernel_channels"] = KERNEL_CHANNELS
    return options


def ablation_label(row: Mapping[str, str]) -> str:
    parts = (
        row["node_embedding"],
        row["graph_kernel"] and "kernel",
        row["spectral_filter"],
        row["short_scales"] and f"short {row['short_scales']}",
        row["long_scales"] and f"long {row['long_scales']}",
        row["lanczos_steps"] and f"K {row['lanczos_steps']}",
    )
    return ", ".join(filter(None, parts))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def qm8_spec(recipe: str = "paper") -> TableSpec:
    """Validation and test over the published 16 tasks, and test over the 12 distinct targets."""
    places = []
    for row in published("qm8"):
        labels = ["", *(label for models, label in VARIANTS.values() if row["model"] in models)]
        for label in labels:
            for column, part in (("validation", "val"), ("test", "test")):
                mean, deviation = float(row[f"{part}_mean"]), float(row[f"{part}_deviation"])
                reference = Reference("published", mean, deviation, PUBLISHED_RUNS)
                places.append(_place(row["model"], label, column, _mae(part), (reference,)))
            places.append(_place(row["model"], label, "test, 12 tasks", _distinct("test"), ()))
    return TableSpec("Table 2: mean absolute error x 1e-3 on QM8", ("network",), tuple(places), 2, False)


# What section 6.3 concludes from Table 3: text, and the rows of the lower and the higher error.
CONCLUSIONS = (
    ("long scales help", 3, 1),
    ("long scales help", 3, 2),
    ("short and long scales help more", 4, 2),
    ("short and long scales help more", 4, 3),
    ("10 Lanczos steps are better than 5", 6, 5),
    ("10 Lanczos steps are better than 40", 6, 8),
    ("a learned filter helps", 9, 4),
    ("a deeper filter does not", 9, 10),
    ("learned embeddings help LanczosNet", 11, 9),
    ("learned embeddings help AdaLanczosNet more than a learned kernel", 14, 13),
    ("tuned scales help LanczosNet further", 12, 11),
    ("tuned scales help AdaLanczosNet further", 15, 14),
)


def ablation_spec(recipe: str = "paper") -> TableSpec:
    """The validation errors of the fifteen rows."""
    heads = ("graph_kernel", "node_embedding", "spectral_filter", "short_scales", "long_scales", "lanczos_steps")
    places = [
        Place(
            row=(str(number), TITLES[row["model"]], *(row[head] for head in heads)),
            column="validation",
            where={"model": row["model"], "label": ablation_label(row)},
            value=_mae("val"),
            references=(Reference("published", float(row["mean"])),),
        )
        for number, row in enumerate(published("ablation"), start=1)
    ]
    names = ("row", "network", "kernel", "embedding", "filter", "short", "long", "K")
    row = {int(place.row[0]): place.row for place in places}
    claims = tuple(Claim(text, row[better], row[worse], LOOKS) for text, better, worse in CONCLUSIONS)
    return TableSpec("Table 3: validation error x 1e-3 on QM8", names, tuple(places), 2, False, claims)


def undecided_cells(grid: Grid, recipe: str, is_decided: Sequence[bool], look: int) -> Grid:
    """The cells of the comparisons that are not decided, with the seeds of a look; `is_decided` in their order."""
    spec = ablation_spec(recipe)
    rows = {row for claim, done in zip(spec.claims, is_decided, strict=True) if not done for row in _rows(claim)}
    wanted = {(place.where["model"], place.where["label"]) for place in spec.places if place.row in rows}
    cells = tuple(cell for cell in grid.cells if (cell.model, cell.label) in wanted)
    return Grid(cells, (SEEDS + MORE_SEEDS)[:look])


def _rows(claim: Claim) -> tuple[tuple[str, ...], ...]:
    return claim.better, claim.worse


def curve_names(table: str) -> dict[tuple[str, str], str]:
    """What the legend of learning curves calls a cell, by network and label, in the table's order."""
    if table == "qm8":
        return {(place.where["model"], place.where["label"]): place.row[0] for place in qm8_spec().places}
    numbers: dict[tuple[str, str], list[str]] = {}
    for number, row in enumerate(published("ablation"), start=1):
        numbers.setdefault((row["model"], ablation_label(row)), []).append(str(number))
    return {
        (model, label): f"{' and '.join(rows)}: {TITLES[model]}, {label}" for (model, label), rows in numbers.items()
    }


def _place(
    model: str, label: str, column: str, value: Callable[[Mapping[str, Any]], float], references: tuple[Reference, ...]
) -> Place:
    title = ", ".join(filter(None, (TITLES[model], label)))
    return Place((title,), column, {"model": model, "label": label}, value, references)


def _mae(part: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda line: 1000.0 * line["metrics"][part]["mae"]


def _distinct(part: str) -> Callable[[Mapping[str, Any]], float]:
    """Over the distinct targets: the second copies of a target have a number sign in their name."""

    def value(line: Mapping[str, Any]) -> float:
        errors = line["by_target"][part]
        return 1000.0 * statistics.fmean(error for name, error in errors.items() if "#" not in name)

    return value
