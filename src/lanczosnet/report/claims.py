"""What the paper concludes from two rows of a table, tested on ours by a sequential paired t test."""

import math
import statistics
from dataclasses import dataclass
from functools import cached_property

from lanczosnet.report.measurement import Comparison, Measurement

LEVEL = 0.01
CLAIM_HEADS = (
    *("the paper concludes", "rows", "published", "here", "gain"),
    *("99 % interval", "effect size", "seeds", "p", "verdict"),
)


@dataclass(frozen=True)
class ClaimTest:
    """A comparison of two rows, seed by seed.

    It is tested after every number of seeds in `looks`, and ends with the first test below 1 %. Seeds that came later
    do not count. Without looks it is tested once, on all seeds.
    """

    text: str
    better: str  # the names of the rows
    worse: str
    pairs: tuple[tuple[float, float], ...]  # their values for every seed, in the order of the runs
    published: tuple[float, ...]  # the numbers that the paper compared
    higher_is_better: bool
    looks: tuple[int, ...] = ()

    @cached_property
    def num_seeds(self) -> int:
        """How many seeds the verdict rests on."""
        reached = [look for look in self.looks if look <= len(self.pairs)]
        decided = (look for look in reached if self._p_value(look) < LEVEL)
        return next(decided, reached[-1] if reached else len(self.pairs))

    @cached_property
    def gains(self) -> Measurement:
        return self._gains(self.num_seeds)

    @property
    def p_value(self) -> float | None:
        """Two-sided; None of one seed."""
        return None if self.gains.deviation is None else self._p_value(self.num_seeds)

    @property
    def is_decided(self) -> bool:
        is_tested = not self.looks or self.num_seeds in self.looks
        return is_tested and self.p_value is not None and self.p_value < LEVEL

    @property
    def verdict(self) -> str:
        if self.gains.mean is None:
            return "not run"
        if not self.is_decided:
            return "not decided"
        return "holds" if self.gains.mean > 0 else "the opposite holds"

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the mean gain, at 99 %: it leaves zero out where the test is below 1 %."""
        from scipy.special import stdtrit

        if self.gains.mean is None or self.gains.deviation is None:
            return None
        half = float(stdtrit(self.num_seeds - 1, 1 - LEVEL / 2)) * self.gains.deviation / math.sqrt(self.num_seeds)
        return self.gains.mean - half, self.gains.mean + half

    @property
    def effect_size(self) -> float | None:
        """The mean gain in standard deviations of the gain (Cohen's d of pairs)."""
        return self.gains.mean / self.gains.deviation if self.gains.mean is not None and self.gains.deviation else None

    @property
    def means(self) -> tuple[float, float] | None:
        """Of both rows over the seeds of the verdict."""
        if self.gains.mean is None:
            return None
        better, worse = (statistics.mean(side) for side in zip(*self.pairs[: self.num_seeds], strict=True))
        return better, worse

    def sentence(self, digits: int) -> str:
        """The verdict and its numbers."""
        said = f"{self.text}: {self.verdict}"
        if self.means is None:
            return f"{said}."
        ours, theirs = self.means
        numbers = [f"{self.num_seeds} seed{'s' if self.num_seeds != 1 else ''}"]
        if self.interval:
            numbers.insert(0, "99 % interval {:+.{digits}f} to {:+.{digits}f}".format(*self.interval, digits=digits))
        numbers += [] if self.effect_size is None else [f"effect size {self.effect_size:.1f}"]
        numbers += [] if self.p_value is None else [f"p = {self.p_value:.2g}"]
        return (
            f"{said}. Row {self.better} has {ours:.{digits}f}, row {self.worse} {theirs:.{digits}f}, a gain of "
            f"{self.gains.mean:+.{digits}f} ({', '.join(numbers)}); "
            f"published {' and '.join(f'{x:.{digits}f}' for x in self.published)}."
        )

    def _gains(self, num_seeds: int) -> Measurement:
        sign = 1.0 if self.higher_is_better else -1.0
        return Measurement(tuple(sign * round(better - worse, 9) for better, worse in self.pairs[:num_seeds]))

    def _p_value(self, num_seeds: int) -> float:
        """Of a two-sided paired t test."""
        test = Comparison("none", 0.0, None, None, self._gains(num_seeds), higher_is_better=True)
        return 1.0 if test.p_value is None else test.p_value


def claims_head(claims: tuple[ClaimTest, ...]) -> str:
    """How the claims of one table are tested."""
    looks = claims[0].looks
    after = f", after {', '.join(map(str, looks[:-1]))} and {looks[-1]} seeds" if looks else " over the seeds"
    return f"What the paper concludes, by a two-sided paired t test at {LEVEL:.0%}{after}:"


def claims_count(claims: tuple[ClaimTest, ...]) -> str:
    """How many are decided."""
    decided = sum(claim.is_decided for claim in claims)
    return f"{decided} of {len(claims)} comparisons {'is' if decided == 1 else 'are'} decided"


def claims_markdown(claims: tuple[ClaimTest, ...], digits: int) -> str:
    """The claims as a table, the verdict last."""
    rule = ["---", *["---:"] * (len(CLAIM_HEADS) - 2), "---"]
    rows = [CLAIM_HEADS, rule, *(claim_row(claim, digits) for claim in claims)]
    shown = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{claims_head(claims)}\n\n{shown}\n\n{claims_count(claims)}.\n"


def claim_row(claim: ClaimTest, digits: int) -> list[str]:
    """One text for each of `CLAIM_HEADS`."""

    def number(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    low, high = claim.interval or (None, None)
    means = claim.means or ()
    return [
        claim.text,
        f"{claim.better}, {claim.worse}",
        " / ".join(f"{value:.{digits}f}" for value in claim.published),
        " / ".join(f"{value:.{digits}f}" for value in means),
        number(claim.gains.mean, f"+.{digits}f"),
        "" if low is None else f"{number(low, f'+.{digits}f')} to {number(high, f'+.{digits}f')}",
        number(claim.effect_size, ".1f"),
        str(claim.num_seeds),
        number(claim.p_value, ".2g"),
        claim.verdict,
    ]
