"""Which part of which table a command line names."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from lanczosnet.cli.options import read_data_settings, read_settings
from lanczosnet.training.recipes import check_name

if TYPE_CHECKING:
    from lanczosnet.experiments.grid import Grid
    from lanczosnet.experiments.store import Line
    from lanczosnet.experiments.tables.spec import TableSpec

# The options that a table alone has.
TABLES = {
    "citation": ("protocol", "datasets", "splits"),
    "qm8": ("molecules", "variants"),
    "ablation": ("molecules",),
    "nodes": ("datasets", "tuned"),
    "molecules": ("datasets", "splits"),
}
LISTS = ("datasets", "splits", "variants")
OF_SEVERAL_SPLITS = ("citation", "nodes", "molecules")  # whose seeds begin with 0


@dataclass(frozen=True)
class Selection:
    """Which part of which table."""

    table: str
    recipe: str | None
    models: list[str] | None
    seeds: list[int] | None
    settings: dict[str, Any]
    options: dict[str, Any]  # of the networks
    data_options: dict[str, Any]
    own: dict[str, Any]  # options that this table alone has

    @classmethod
    def read(
        cls,
        name: str,
        recipe: str | None,
        models: str | None,
        seeds: str | None,
        settings: list[str] | None,
        epochs: int | None,
        options: list[str] | None,
        data_options: list[str] | None,
        **own: Any,
    ) -> "Selection":
        if name not in TABLES:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(TABLES)}", param_hint="NAME")
        for option, value in own.items():
            if value is not None and option not in TABLES[name]:
                raise typer.BadParameter(f"the table {name} has no such option", param_hint=f"--{option}")
        changes = read_settings(settings) | ({} if epochs is None else {"epochs": epochs})
        given = {option: _names(value) if option in LISTS else value for option, value in own.items()}
        given = {option: value for option, value in given.items() if value is not None}
        networks = _names(models)
        for option, value in {"models": networks, **given}.items():
            if value == []:
                raise typer.BadParameter("this is empty: name one, or leave the option out", param_hint=f"--{option}")
        others = read_settings(options), read_data_settings(data_options)
        return cls(name, recipe, networks, _seeds(name, seeds), changes, *others, given)

    @property
    def store_name(self) -> str:
        protocol = self.own.get("protocol", "paper")
        kind = "" if protocol == "paper" else f"{protocol}-"
        return f"{self.table}-{kind}{self.recipe or default_recipe(self.table)}"

    def grid(self, precision: str) -> "Grid":
        from lanczosnet.experiments import tables

        grids = {name: getattr(tables, f"{name}_grid") for name in TABLES}
        from lanczosnet.experiments.grid import OWN

        recipe = self.recipe or default_recipe(self.table)
        grid: Grid = grids[self.table](
            recipe=recipe, models=self.models, seeds=self.seeds, settings=self.settings, **self.own
        )
        _check_options(self.options, {cell.model for cell in grid.cells if cell.recipe != OWN})
        return grid.with_options(self.options, self.data_options, precision)

    def spec(self, recipe: str) -> "TableSpec":
        return spec_of(self.table, recipe)

    def pick(self, lines: "list[Line]") -> "list[Line]":
        """Those of the lines that are of this part of the table; what was not named is not asked for."""
        from lanczosnet.experiments.grid import TITLES, chosen
        from lanczosnet.experiments.store import select
        from lanczosnet.experiments.tables.citation_table import DATASETS, places_of, split_name

        if self.table in OF_OUR_OWN:
            return OF_OUR_OWN[self.table](self, lines)
        datasets, splits, protocol = (self.own.get(option) for option in ("datasets", "splits", "protocol"))
        found = select(
            lines,
            table=[self.table],
            recipe=self.recipe and [self.recipe],
            model=self.models and chosen(self.models, TITLES, "model"),
            seed=self.seeds,
            dataset=datasets and chosen(datasets, DATASETS, "data set"),
            split=protocol and {split for _, split, _ in places_of(protocol)},
        )
        return [line for line in found if splits is None or split_name(line["split"], line["fraction"]) in splits]

    def _pick_nodes(self, lines: "list[Line]") -> "list[Line]":
        from lanczosnet.experiments.grid import chosen
        from lanczosnet.experiments.hyperparameters.node_rows import NODE_NETWORKS
        from lanczosnet.experiments.store import select
        from lanczosnet.experiments.tables.nodes_table import DATASETS, TUNED, label_of

        datasets, networks = self.own.get("datasets"), chosen(self.models, NODE_NETWORKS, "network")
        return select(
            lines,
            table=[self.table],
            recipe=self.recipe and [self.recipe],
            label=[label_of(network, kind) for network in networks for kind in ("", TUNED)],
            seed=self.seeds,
            dataset=datasets and chosen(datasets, DATASETS, "data set"),
        )

    def _pick_molecules(self, lines: "list[Line]") -> "list[Line]":
        """Those of rivals are of every recipe."""
        from lanczosnet.experiments.grid import OWN, chosen
        from lanczosnet.experiments.hyperparameters.molecule_net_rows import RUN_HERE
        from lanczosnet.experiments.store import select
        from lanczosnet.experiments.tables.molecules_table import DATASETS, SPLITS

        datasets, splits, models = (self.own.get("datasets"), self.own.get("splits"), self.models)
        return select(
            lines,
            table=[self.table],
            recipe=self.recipe and [self.recipe, OWN],
            model=models and chosen(models, RUN_HERE, "model"),
            seed=self.seeds,
            dataset=datasets and chosen(datasets, DATASETS, "data set"),
            split=splits and chosen(splits, SPLITS, "split"),
        )

    def check_that_it_only_picks(self) -> None:
        """With lines that are there already, what would change runs is a mistake."""
        changes = {
            "--set or --epochs": self.settings,
            "--option": self.options,
            "--data-set": self.data_options,
            "--molecules": self.own.get("molecules"),
            "--variants": self.own.get("variants"),
            "--tuned": self.own.get("tuned"),
        }
        for option, value in changes.items():
            if value:
                raise typer.BadParameter(f"--from prints existing lines: {option} changes nothing in them")
        if self.recipe is not None:
            check_name(self.recipe)


# How lines of tables beyond the paper are picked.
OF_OUR_OWN = {"nodes": Selection._pick_nodes, "molecules": Selection._pick_molecules}


def default_recipe(table: str) -> str:
    """That of the paper, in its own tables."""
    return "modern" if table in OF_OUR_OWN else "paper"


def spec_of(table: str, recipe: str) -> "TableSpec":
    """A table without its numbers."""
    from lanczosnet.experiments import tables

    spec: TableSpec = getattr(tables, f"{table}_spec")(recipe)
    return spec


def _check_options(options: dict[str, Any], models: set[str]) -> None:
    if not options:
        return
    from lanczosnet.training.architecture import check_options  # takes seconds
    from lanczosnet.training.num_steps import AUTO

    options = {key: value for key, value in options.items() if (key, value) != ("num_steps", AUTO)}
    for model in sorted(models):
        try:
            check_options(model, options)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--option") from error


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip().lower() for name in text.split(",") if name.strip()]


def _seeds(table: str, text: str | None) -> list[int] | None:
    """`3` is the first three of the table's seeds, `3,5` are these."""
    from lanczosnet.experiments.tables.qm8_tables import SEEDS

    if text is None:
        return None
    try:
        numbers = [int(number) for number in text.split(",") if number.strip()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or (numbers == [0] and "," not in text):
        raise typer.BadParameter(f"{text!r} is neither a number of seeds nor seeds with commas", param_hint="--seeds")
    if "," in text:
        return numbers
    known = range(numbers[0]) if table in OF_SEVERAL_SPLITS else SEEDS
    if numbers[0] > len(known):
        raise typer.BadParameter(f"QM8 has {len(SEEDS)} seeds: write others with commas", param_hint="--seeds")
    return list(known[: numbers[0]])


def share(grid: "Grid", shard: str | None) -> "Grid":
    """The cells that `--shard` leaves, all of them without it."""
    if shard is None:
        return grid
    number, _, count = shard.partition("/")
    if not (number.isdigit() and count.isdigit()):
        raise typer.BadParameter(f"{shard!r} is not of the form I/N, as 2/8", param_hint="--shard")
    return grid.shard(int(number), int(count))
