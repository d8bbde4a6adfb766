"""The numbers of a table: means, deviations, and the tests that mark a cell or a conclusion."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lanczosnet.report.claims import ClaimTest, claims_head
from lanczosnet.report.measurement import LEVEL, Comparison, Measurement


@dataclass(frozen=True)
class Table:
    """A table as `lanczosnet.experiments` describes it."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[tuple[str, ...], str], Measurement]
    comparisons: Mapping[tuple[tuple[str, ...], str], tuple[Comparison, ...]]
    digits: int
    higher_is_better: bool | None  # None where the rows differ in that
    notes: tuple[str, ...]
    runs: int
    failed: int
    seconds: float
    claims: tuple[ClaimTest, ...] = ()

    @classmethod
    def from_records(cls, data: Mapping[str, Any]) -> "Table":
        cells, comparisons = {}, {}
        for record in data["cells"]:
            place = tuple(record["row"]), record["column"]
            higher = record.get("higher_is_better", data["higher_is_better"])
            cell = cells[place] = Measurement(tuple(record["values"]), record["failed"])
            references = record["references"]
            comparisons[place] = tuple(Comparison(**r, cell=cell, higher_is_better=higher) for r in references)
        places = {
            "rows": tuple(dict.fromkeys(row for row, _ in cells)),
            "columns": tuple(dict.fromkeys(column for _, column in cells)),
        }
        claims = tuple(
            ClaimTest(
                **claim
                | {"pairs": tuple(map(tuple, claim["pairs"]))}
                | {name: tuple(claim.get(name, ())) for name in ("published", "looks")},
                higher_is_better=data["higher_is_better"],
            )
            for claim in data.get("claims", ())
        )
        texts = {name: tuple(data[name]) for name in ("heads", "notes")}
        return cls(**{**data, **texts, **places, "cells": cells, "comparisons": comparisons, "claims": claims})

    def names_of(self, row: tuple[str, ...]) -> list[str]:
        """The names of what a row is compared with."""
        return list(dict.fromkeys(c.name for column in self.columns for c in self.comparisons.get((row, column), ())))

    def comparison(self, row: tuple[str, ...], column: str, name: str) -> Comparison | None:
        return next((c for c in self.comparisons.get((row, column), ()) if c.name == name), None)

    @property
    def direction(self) -> str:
        """Which numbers are better; empty where the rows differ in that."""
        return {True: "higher", False: "lower", None: ""}[self.higher_is_better]

    def legend(self) -> list[str]:
        """What the numbers and marks mean."""
        better = self.direction or "by its metric"
        return [
            *self.notes,
            "Mean and sample deviation (n - 1) over the seeds. Below ours stand the numbers that it is compared with: "
            f"+ ours is better ({better}), = within, - worse, by a two-sided t test at {LEVEL:.0%}, Welch's where a "
            "deviation was published, else of our runs against the number.",
        ]

    def summary(self) -> list[str]:
        """How many cells reach the number that they are compared with, for each name."""
        every = [comparison for found in self.comparisons.values() for comparison in found if comparison.cell.values]
        better, worse = ("above", "below") if self.higher_is_better else ("better", "worse")
        less = {True: "less", False: "plus", None: "but for"}[self.higher_is_better]
        texts = []
        for name in dict.fromkeys(comparison.name for comparison in every):
            here = [comparison for comparison in every if comparison.name == name]
            marks = [comparison.mark for comparison in here]
            text = (
                f"{name}: of {len(here)} cells {marks.count('+')} {better} (+), {marks.count('=')} within (=), "
                f"{marks.count('-')} {worse} (-); {sum(c.reaches_mean for c in here)} reach the mean"
            )
            if all(c.deviation is not None for c in here):
                text += f", {sum(c.reaches_deviation for c in here)} the mean {less} a deviation"
            texts.append(f"{text}.")
        failed = f", of which {self.failed} failed" if self.failed else ""
        return [*texts, f"{self.runs} runs{failed}; {duration(self.seconds)} of training in total."]

    def _repr_html_(self) -> str:
        from lanczosnet.report.formats import as_html

        return as_html(self)

    def conclusions(self) -> list[str]:
        """What the paper concludes from the table, and what ours says about it."""
        if not self.claims:
            return []
        return [claims_head(self.claims), *(claim.sentence(self.digits) for claim in self.claims)]


def duration(seconds: float) -> str:
    """In words of at most two units."""
    minutes, hours = seconds / 60, seconds / 3600
    if hours >= 1:
        return f"{int(hours)} h {int(minutes) % 60} min"
    return f"{int(minutes)} min {int(seconds) % 60} s" if minutes >= 1 else f"{seconds:.1f} s"
