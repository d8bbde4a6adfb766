"""A table as data: cells, their runs, and a key for each run made of everything that determines its result.

Nothing here loads torch: a grid can be listed, counted and compared with a store in no time.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lanczosnet.experiments.hyperparameters.row import published_form
from lanczosnet.training.recipes import Recipe

if TYPE_CHECKING:
    from lanczosnet.training.job import JobSpec

# In the order of the paper's tables.
TITLES = {
    "gcnfp": "GCN-FP",
    "ggnn": "GGNN",
    "dcnn": "DCNN",
    "chebynet": "ChebyNet",
    "gcn": "GCN",
    "mpnn": "MPNN",
    "graphsage": "GraphSAGE",
    "gpnn": "GPNN",
    "gat": "GAT",
    "lanczosnet": "LanczosNet",
    "adalanczosnet": "AdaLanczosNet",
}
# Kinds of splits that earlier versions made by another rule: in a key, so that results of the two are never mixed.
SPLIT_RULES = {"uniform": "rounded to nearest"}
PRECISION = "32-true"  # that of the tables; keys name any other
OWN = "own"  # the recipe of what is not a network of ours, whichever recipe stands beside it
FEATURES = "none"  # as the loader gives them, in the paper's tables; keys name any other scaling


@dataclass(frozen=True, eq=False)
class Cell:
    """Runs that differ in their seed only; their mean is a number of a table."""

    table: str
    dataset: str
    split: str  # the kind
    fraction: float | None
    model: str
    options: Mapping[str, Any]  # of the network
    recipe: str  # its name, and in `settings` all its numbers
    settings: Mapping[str, Any]
    label: str = ""  # what tells cells of one network apart
    data_options: Mapping[str, Any] = field(default_factory=dict)
    split_seed: int | None = None  # where all runs share one split; else every run's split has its own seed
    precision: str = PRECISION
    features: str = FEATURES
    public_splits: int = 0  # where there are several: every seed has the one of its number

    @property
    def name(self) -> str:
        part = [self.dataset, split_title(self.split, self.fraction), self.model, self.label]
        return " ".join(filter(None, part))

    @cached_property
    def key(self) -> str:
        """Sixteen hex digits: equal for equal configurations, whichever table they belong to."""
        return _digest(self._identity())

    def seed_of_split(self, seed: int) -> int | None:
        if self.split == "public":
            return None
        return seed if self.split_seed is None else self.split_seed

    def run(self, seed: int) -> "Run":
        return Run(self, seed, _digest(self._identity() | {"seed": seed}))

    def facts(self) -> dict[str, Any]:
        """The cell's part of a result line."""
        return {
            "table": self.table,
            "cell": self.key,
            "dataset": self.dataset,
            "data_options": dict(self.data_options),
            "split": self.split,
            "fraction": self.fraction,
            "model": self.model,
            "label": self.label,
            "options": dict(self.options),
            "recipe": self.recipe,
            "settings": dict(self.settings),
            "precision": self.precision,
            **self._additions(),
        }

    def _additions(self) -> dict[str, Any]:
        """What cells of the paper's tables lack, and their keys with it."""
        features = {"features": self.features} if self.features != FEATURES else {}
        return features | ({"public_splits": self.public_splits} if self.public_splits else {})

    def _identity(self) -> dict[str, Any]:
        """What is as by default is left out, so that a setting which a later version adds changes no key."""
        plain, rule = Recipe().settings(), SPLIT_RULES.get(self.split)
        return {
            "dataset": self.dataset,
            "data_options": dict(self.data_options),
            "split": self.split,
            "fraction": self.fraction,
            "split_seed": self.split_seed,
            "model": self.model,
            "options": dict(self.options),
            "settings": {name: value for name, value in self.settings.items() if value != plain.get(name)},
            **({"split_rule": rule} if rule else {}),
            **({"precision": self.precision} if self.precision != PRECISION else {}),
            **self._additions(),
        }


@dataclass(frozen=True, eq=False)
class Run:
    """A cell with a seed."""

    cell: Cell
    seed: int
    key: str

    def spec(self) -> "JobSpec":
        """The training that gives its result."""
        from lanczosnet.training.job import JobSpec  # loads torch

        cell = self.cell
        return JobSpec(
            source=cell.dataset,
            model=cell.model,
            recipe=cell.recipe,
            settings={**published_form(cell.model), **cell.settings, **cell.options},
            data_options=dict(cell.data_options),
            split=cell.split,
            fraction=cell.fraction,
            split_seed=cell.seed_of_split(self.seed) or 0,
            seed=self.seed,
            features=cell.features,
            number=self.seed % cell.public_splits if cell.public_splits else None,
        )


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of a table, or some of them, and the seeds of each."""

    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    recorded: tuple[Cell, ...] = ()  # whose lines another program records; never run, and shown where they are there

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for cell in self.cells for run in self.runs_of(cell))

    @property
    def keys(self) -> set[str]:
        """Of all lines that the table shows."""
        return {run.key for run in (*self.runs, *(run for cell in self.recorded for run in self.runs_of(cell)))}

    def runs_of(self, cell: Cell) -> list[Run]:
        return [cell.run(seed) for seed in self.seeds]

    def with_options(
        self, options: Mapping[str, Any], data_options: Mapping[str, Any], precision: str = PRECISION
    ) -> "Grid":
        """A trial of other options of the networks and of their data than the rows have, or of another precision."""
        cells = (
            replace(
                cell,
                options={**cell.options, **options} if cell.recipe != OWN else cell.options,
                data_options={**cell.data_options, **data_options},
                precision=precision,
            )
            for cell in self.cells
        )
        return replace(self, cells=tuple(cells))

    def shard(self, number: int, count: int) -> "Grid":
        """Every `count`-th cell, beginning with the `number`-th; numbers begin with 1."""
        if not 1 <= number <= count:
            raise ValueError(f"shard {number}/{count} does not exist: write 1/{count} to {count}/{count}")
        return replace(self, cells=self.cells[number - 1 :: count])


def recipes_in(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Those of our networks."""
    return sorted({line["recipe"] for line in lines} - {OWN})


def split_title(split: str, fraction: float | None) -> str:
    """`public`, `3%`, `3% per class`, `3% stratified`."""
    kind = {"uniform": "", "random": "", "fraction-per-class": "per class"}.get(split, split)
    return " ".join(filter(None, [percent(fraction) if fraction and split != "random" else "", kind]))


def percent(fraction: float) -> str:
    return f"{100 * fraction:g}%"


def chosen(wanted: Sequence[str] | None, known: Iterable[str], what: str) -> list[str]:
    """Those that are wanted, in the table's order; all by default. A wrong name lists the right ones."""
    known = list(dict.fromkeys(known))
    if wanted is None:
        return known
    for name in wanted:
        if name not in known:
            raise ValueError(f"there is no {what} {name!r} here; known are {', '.join(known)}")
    return [name for name in known if name in wanted]


def _digest(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
