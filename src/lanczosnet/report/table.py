"""The numbers of a table: means, deviations, and the test that marks a cell."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

Mark = Literal["+", "=", "-", ""]
LEVEL = 0.05


@dataclass(frozen=True)
class Measurement:
    """Our runs of one configuration. The deviation is that of the sample: it divides by the number of runs less one."""

    values: tuple[float, ...]
    failed: int = 0

    @cached_property
    def mean(self) -> float | None:
        return statistics.mean(self.values) if self.values else None

    @cached_property
    def deviation(self) -> float | None:
        return statistics.stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Comparison:
    """A number that a cell is compared with."""

    name: str
    mean: float
    deviation: float | None
    runs: int | None
    cell: Measurement
    higher_is_better: bool

    @cached_property
    def p_value(self) -> float | None:
        """Two-sided: Welch's t test where the number has a deviation, else Student's of our runs against it."""
        n, deviation = len(self.cell.values), self.cell.deviation
        if deviation is None:
            return None
        ours, theirs = deviation**2 / n, 0.0
        freedom = n - 1.0
        if self.deviation is not None and self.runs is not None:
            theirs = self.deviation**2 / self.runs
            if ours + theirs > 0:
                freedom = (ours + theirs) ** 2 / (ours**2 / (n - 1) + theirs**2 / (self.runs - 1))
        if ours + theirs == 0:
            return 1.0 if self._gain == 0 else 0.0
        return _two_sided(self._gain / math.sqrt(ours + theirs), freedom)

    @property
    def mark(self) -> Mark:
        """`+` better, `=` within, `-` worse; nothing where one run cannot tell."""
        if self.p_value is None:
            return ""
        if self.p_value >= LEVEL:
            return "="
        return "+" if self._gain > 0 else "-"

    @property
    def reaches_mean(self) -> bool:
        return self.cell.mean is not None and self._gain >= 0

    @property
    def reaches_deviation(self) -> bool:
        """At most one deviation worse than the number."""
        return self.cell.mean is not None and self._gain >= -(self.deviation or 0.0)

    @cached_property
    def _gain(self) -> float:
        assert self.cell.mean is not None
        # Rounded, so that 81.5 reaches 81.5 whatever the sum of ten floats was.
        difference = round(self.cell.mean - self.mean, 9)
        return difference if self.higher_is_better else -difference


@dataclass(frozen=True)
class ClaimTest:
    """What the paper concludes from two rows, tested on ours seed by seed."""

    text: str
    better: str  # the names of the rows
    worse: str
    pairs: tuple[tuple[float, float], ...]  # their values for every seed
    published: tuple[float, ...]  # the numbers that the paper compared
    higher_is_better: bool

    @cached_property
    def gains(self) -> Measurement:
        sign = 1.0 if self.higher_is_better else -1.0
        return Measurement(tuple(sign * round(better - worse, 9) for better, worse in self.pairs))

    @cached_property
    def p_value(self) -> float | None:
        """Two-sided, of a paired t test."""
        if self.gains.mean is None:
            return None
        return Comparison("none", 0.0, None, None, self.gains, higher_is_better=True).p_value

    @property
    def verdict(self) -> str:
        if self.gains.mean is None:
            return "not run"
        if self.p_value is None or self.p_value >= LEVEL:
            return "not decided"
        return "holds" if self.gains.mean > 0 else "the opposite holds"

    def sentence(self, digits: int) -> str:
        """The verdict and its numbers."""
        said = f"{self.text}: {self.verdict}"
        if self.gains.mean is None:
            return f"{said}."
        ours, theirs = (statistics.mean(side) for side in zip(*self.pairs, strict=True))
        gain = f"{self.gains.mean:+.{digits}f}"
        gain += "" if self.gains.deviation is None else f" ± {self.gains.deviation:.{digits}f}"
        p_value = "" if self.p_value is None else f", p = {self.p_value:.2g}"
        return (
            f"{said}. Row {self.better} has {ours:.{digits}f}, row {self.worse} {theirs:.{digits}f}, a gain of {gain} "
            f"({len(self.pairs)} seeds{p_value}); published {' and '.join(f'{x:.{digits}f}' for x in self.published)}."
        )


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
    higher_is_better: bool
    notes: tuple[str, ...]
    runs: int
    failed: int
    seconds: float
    claims: tuple[ClaimTest, ...] = ()

    @classmethod
    def from_records(cls, data: Mapping[str, Any]) -> "Table":
        higher = data["higher_is_better"]
        cells, comparisons = {}, {}
        for record in data["cells"]:
            place = tuple(record["row"]), record["column"]
            cell = cells[place] = Measurement(tuple(record["values"]), record["failed"])
            references = record["references"]
            comparisons[place] = tuple(Comparison(**r, cell=cell, higher_is_better=higher) for r in references)
        places = {
            "rows": tuple(dict.fromkeys(row for row, _ in cells)),
            "columns": tuple(dict.fromkeys(column for _, column in cells)),
        }
        claims = tuple(
            ClaimTest(
                **claim | {"pairs": tuple(map(tuple, claim["pairs"])), "published": tuple(claim["published"])},
                higher_is_better=higher,
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

    def legend(self) -> list[str]:
        """What the numbers and marks mean."""
        better = "higher" if self.higher_is_better else "lower"
        return [
            *self.notes,
            "Mean and sample deviation (n - 1) over the seeds. Below ours stand the numbers that it is compared with: "
            f"+ ours is better ({better}), = within, - worse, by a two-sided t test at {LEVEL:.0%}, Welch's where a "
            "deviation was published, else of our runs against the number.",
        ]

    def summary(self) -> list[str]:
        """How many cells reach what they are compared with, for each name."""
        every = [comparison for found in self.comparisons.values() for comparison in found if comparison.cell.values]
        better, worse = ("above", "below") if self.higher_is_better else ("better", "worse")
        less = "less" if self.higher_is_better else "plus"
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

    def conclusions(self) -> list[str]:
        """What the paper concludes from the table, and what ours says about it."""
        if not self.claims:
            return []
        head = f"What the paper concludes, by a two-sided paired t test over the seeds at {LEVEL:.0%}:"
        return [head, *(claim.sentence(self.digits) for claim in self.claims)]


def duration(seconds: float) -> str:
    """In words of at most two units."""
    minutes, hours = seconds / 60, seconds / 3600
    if hours >= 1:
        return f"{int(hours)} h {int(minutes) % 60} min"
    return f"{int(minutes)} min {int(seconds) % 60} s" if minutes >= 1 else f"{seconds:.1f} s"


def _two_sided(t: float, freedom: float) -> float:
    from scipy.special import stdtr

    return float(2.0 * stdtr(freedom, -abs(t)))
