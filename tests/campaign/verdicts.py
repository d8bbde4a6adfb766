"""What is wrong with a run of a command on a hostile file."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from campaign.mutants import Mutant
from campaign.sandbox import MEMORY, Ran

CANARY = "EXECUTED"  # the file that every payload would create
EXITS = (0, 1, 2)
LONGEST = 4000  # letters of a message
NOTICE = re.compile(
    r"warn|error|cannot|damaged|ignor|torn|skip|left out|not (a|the|read)|without|missing", re.IGNORECASE
)
NO_MEMORY = re.compile(
    r"MemoryError|Unable to allocate|can't allocate memory|not enough memory|out of memory", re.IGNORECASE
)


@dataclass(frozen=True)
class Observed:
    """A run, and the answer that it gave: what it printed, or files that it wrote."""

    ran: Ran
    answer: str


@dataclass(frozen=True)
class Failure:
    kind: str
    class_name: str
    number: int
    what: str  # was done to the file
    command: str
    shown: str  # the end of what the command said

    @property
    def signature(self) -> tuple[str, str, str]:
        """Failures that differ in numbers and quoted texts alone are one fault."""
        return (
            self.kind,
            self.class_name,
            re.sub(r"'[^']*'|\"[^\"]*\"|[\d.e+-]*\d|0x[0-9a-f]+|/\S+", "#", self.shown)[:100],
        )


Oracle = Callable[[Mutant, Observed, Observed], str | None]
"""What is wrong with an answer that was given with exit 0, if this can be known: mutant, undisturbed, disturbed."""


def faults(
    mutant: Mutant, good: Observed, bad: Observed, folder: Path, oracle: Oracle, names: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Every kind of failure of one run, and what shows it."""
    ran = bad.ran
    shown = _last_lines(ran)
    names_file = any(name in ran.err + ran.out for name in names)
    found = {
        "executed": (folder / CANARY).exists() or (folder / "home" / CANARY).exists(),
        "hang": ran.hangs,
        "memory": ran.peak > MEMORY or (bool(NO_MEMORY.search(ran.err)) and not names_file),
        "traceback": ran.shows_traceback,
        "died": ran.status not in EXITS and not ran.hangs and not ran.shows_traceback,
        "silent": ran.status in (1, 2) and not (ran.err + ran.out).strip(),
        "flood": len(ran.err) > LONGEST and not ran.shows_traceback,
        "vague": ran.status == 1 and not ran.shows_traceback and not names_file,
    }
    failures = [(kind, shown) for kind, failed in found.items() if failed]
    if ran.status == 0 and (reason := oracle(mutant, good, bad)):
        failures.append(("wrong answer", reason))
    return failures


def same_or_said(mutant: Mutant, good: Observed, bad: Observed) -> str | None:
    """A damaged file gives the undisturbed answer, or a notice says that it was damaged.

    Blind to plausible mutants, to damage whose answer is the same by chance, and to whether a notice is the right one.
    """
    if mutant.effect == "plausible" or bad.answer == good.answer or notices(good, bad):
        return None
    return f"exit 0, and another answer without a notice: {_difference(good.answer, bad.answer)}"


def same(mutant: Mutant, good: Observed, bad: Observed) -> str | None:
    """The answer must not depend on the file at all."""
    return None if bad.answer == good.answer else f"exit 0, and another answer: {_difference(good.answer, bad.answer)}"


def refused(mutant: Mutant, good: Observed, bad: Observed) -> str | None:
    """No such file may be accepted."""
    return None if mutant.effect == "plausible" or notices(good, bad) else "exit 0: the file was accepted"


def finite(mutant: Mutant, good: Observed, bad: Observed) -> str | None:
    """No number of the answer may be NaN or infinite without a notice; blind to everything else."""
    odd = re.search(r"(?<![\w.])-?(nan|inf|Infinity)(?!\w)", bad.answer, re.IGNORECASE)
    already = re.search(r"(?<![\w.])-?(nan|inf|Infinity)(?!\w)", good.answer, re.IGNORECASE)
    return f"exit 0, and {odd[0]} in the answer" if odd and not already and not notices(good, bad) else None


def notices(good: Observed, bad: Observed) -> bool:
    """Whether standard error has a notice that the undisturbed run did not have."""
    return any(NOTICE.search(line) for line in set(bad.ran.err.splitlines()) - set(good.ran.err.splitlines()))


def _difference(good: str, bad: str) -> str:
    pairs = zip(good.splitlines(), bad.splitlines(), strict=False)
    old, new = next(((a, b) for a, b in pairs if a != b), (f"{len(good)} letters", f"{len(bad)} letters"))
    return f"{old!r:.60} became {new!r:.60}"


def _last_lines(ran: Ran) -> str:
    last = [line for line in ran.err.strip().splitlines() if line.strip()][-1:]
    return f"exit {ran.status}, {ran.seconds:.1f} s, {ran.peak >> 20} MiB: {' '.join(last)[:300]}"
