"""Our runs of one configuration, and the test that compares them with a number."""

import math
import statistics
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

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


def _two_sided(t: float, freedom: float) -> float:
    from scipy.special import stdtr

    return float(2.0 * stdtr(freedom, -abs(t)))
