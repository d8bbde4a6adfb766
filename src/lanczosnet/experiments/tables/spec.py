"""From result lines to the numbers of a table: plain records, which `lanczosnet.report` renders."""

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Reference:
    """A number that ours is compared with; a deviation and a number of runs where they were given."""

    name: str
    mean: float
    deviation: float | None = None
    runs: int | None = None


@dataclass(frozen=True)
class Rival:
    """What else was run on the same data, and compares with a number by its own lines."""

    name: str
    where: Mapping[str, Any]  # fields that its lines have


@dataclass(frozen=True, eq=False)
class Place:
    """One number: where it stands, which lines it is the mean of, and what it is compared with."""

    row: tuple[str, ...]
    column: str
    where: Mapping[str, Any]  # fields that its lines have
    value: Callable[[Line], float]
    references: tuple[Reference, ...]
    rivals: tuple[Rival, ...] = ()
    higher_is_better: bool | None = None  # where the rows of a table differ in that


@dataclass(frozen=True)
class Claim:
    """What the paper concludes from two of its rows; both have one column."""

    text: str
    better: tuple[str, ...]  # the rows
    worse: tuple[str, ...]
    looks: tuple[int, ...] = ()  # numbers of seeds after which it is tested


@dataclass(frozen=True)
class TableSpec:
    """A table without its numbers."""

    title: str
    heads: tuple[str, ...]  # of the columns that name a row
    places: tuple[Place, ...]
    digits: int
    higher_is_better: bool | None  # None where every row says so itself
    claims: tuple[Claim, ...] = ()

    def filled(self, lines: Iterable[Line]) -> dict[str, Any]:
        """The table as plain data; rows and columns without any line are left out."""
        cells = self._cells(lines := list(lines))
        used = {line["key"]: line for _, here, _ in cells for line in here}
        left_out = {line["key"] for _, _, others in cells for line in others}
        measured = {place: _references(place, lines) for place, _, _ in cells}
        shown = [place for place, here, _ in cells if here or len(measured[place]) > len(place.references)]
        rows, columns = {place.row for place in shown}, {place.column for place in shown}
        kept = [(place, here) for place, here, _ in cells if place.row in rows and place.column in columns]
        return {
            "title": self.title,
            "heads": list(self.heads),
            "digits": self.digits,
            "higher_is_better": self.higher_is_better,
            "cells": [_record(place, here, measured[place]) for place, here in kept],
            "claims": [_compared(claim, {place.row: (place, here) for place, here in kept}) for claim in self.claims],
            "notes": _notes(list(used.values()), len(left_out)) + _fewer_seeds(kept),
            "runs": len(used),
            "failed": sum("error" in line for line in used.values()),
            "seconds": sum(line["seconds"] for line in used.values()),
        }

    def used(self, lines: Iterable[Line]) -> list[Line]:
        """The lines that the table's numbers come from."""
        return list({line["key"]: line for _, here, _ in self._cells(lines) for line in here}.values())

    def _cells(self, lines: Iterable[Line]) -> list[tuple[Place, list[Line], list[Line]]]:
        """Every place with its lines, and with those of other configurations."""
        lines = list(lines)
        return [(place, *current(line for line in lines if _fits(line, place.where))) for place in self.places]


def current(lines: Iterable[Line]) -> tuple[list[Line], list[Line]]:
    """The lines of the configuration that ran last, by seed, and those of others."""
    by_cell: dict[str, list[Line]] = {}
    for line in lines:
        by_cell.setdefault(line["cell"], []).append(line)
    if not by_cell:
        return [], []
    newest = max(by_cell, key=lambda cell: (max(line["finished_at"] for line in by_cell[cell]), cell))
    kept = sorted(by_cell.pop(newest), key=lambda line: line["seed"])
    return kept, [line for others in by_cell.values() for line in others]


def _fits(line: Line, where: Mapping[str, Any]) -> bool:
    return all(line.get(name) == value for name, value in where.items())


def _references(place: Place, lines: list[Line]) -> tuple[Reference, ...]:
    """What a number is compared with: first what was run here, then what is published."""
    here = [_measured(rival, place, lines) for rival in place.rivals]
    return (*(reference for reference in here if reference), *place.references)


def _measured(rival: Rival, place: Place, lines: list[Line]) -> Reference | None:
    found, _ = current(line for line in lines if _fits(line, rival.where) and "error" not in line)
    values = [place.value(line) for line in found]
    if not values:
        return None
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Reference(f"{rival.name}, run here", statistics.fmean(values), deviation, len(values))


def _record(place: Place, lines: list[Line], references: Iterable[Reference]) -> dict[str, Any]:
    good = [line for line in lines if "error" not in line]
    return {
        "row": list(place.row),
        "column": place.column,
        "values": [place.value(line) for line in good],
        "failed": len(lines) - len(good),
        "references": [vars(reference) for reference in references],
        **({} if place.higher_is_better is None else {"higher_is_better": place.higher_is_better}),
    }


def _compared(claim: Claim, rows: Mapping[tuple[str, ...], tuple[Place, list[Line]]]) -> dict[str, Any]:
    """Both rows' values of every seed that both have; the numbers that the paper compared."""
    both = [rows[row] for row in (claim.better, claim.worse) if row in rows]
    sides = [{line["seed"]: place.value(line) for line in lines if "error" not in line} for place, lines in both]
    seeds = sorted(sides[0].keys() & sides[1].keys()) if len(sides) == 2 else []
    return {
        "text": claim.text,
        "better": claim.better[0],
        "worse": claim.worse[0],
        "pairs": [[side[seed] for side in sides] for seed in seeds],
        "published": [place.references[0].mean for place, _ in both],
        "looks": list(claim.looks),
    }


def _fewer_seeds(cells: list[tuple[Place, list[Line]]]) -> list[str]:
    """Cells that are not finished, and how many runs they have; each is named once, whatever it is measured by."""
    most = max((len(lines) for _, lines in cells), default=0)
    some: dict[tuple[str, ...], str] = {}
    for place, lines in cells:
        if 0 < len(lines) < most:
            title = ", ".join([*place.row, place.column])
            some.setdefault(tuple(line["key"] for line in lines), f"{title} {len(lines)}")
    return [f"Fewer seeds so far: {'; '.join(some.values())}."] if some else []


def _notes(lines: list[Line], outdated: int) -> list[str]:
    """What the reader of the numbers must know of the runs."""
    if not lines:
        return []
    recipes = sorted({line["recipe"] for line in lines})
    epochs = sorted({line["settings"]["epochs"] for line in lines})
    seeds = len({line["seed"] for line in lines})
    molecules = {line["data_options"].get("molecules") for line in lines} - {None}
    notes = [
        f"Recipe {_listed(recipes)}, {_listed(epochs)} epochs at most, {seeds} "
        f"seed{'s' if seeds != 1 else ''}"
        + (f", {_listed(sorted(molecules))} molecules only" if molecules else "")
        + "."
    ]
    if outdated:
        notes.append(f"{outdated} runs with settings that have since changed are left out.")
    return notes


def _listed(things: Iterable[Any]) -> str:
    *others, last = map(str, things)
    return f"{', '.join(others)} and {last}" if others else last
