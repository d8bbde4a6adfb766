"""Watching a table being made: a bar on a terminal, lines in a pipe."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lanczosnet.report.table import duration

if TYPE_CHECKING:
    from lanczosnet.experiments.grid import Cell
    from lanczosnet.experiments.status import Status
    from lanczosnet.training import EpochReport

SECONDS_BETWEEN_LINES = 2.0


class GridProgress:
    """What the workers tell: that lines or claims have changed, and what they are at."""

    def __init__(self, look: Callable[[], "Status"], show: Callable[["Status", str], None]) -> None:
        self._look, self._show = look, show
        self._status = look()
        self._now = ""

    def changed(self) -> None:
        self._status = self._look()
        self._show(self._status, self._now)

    def epoch(self, cell: "Cell", report: "EpochReport") -> None:
        self._now = f"{cell.name}, epoch {report.epoch}/{cell.settings['epochs']}"
        self._show(self._status, self._now)


@contextmanager
def watching_grid(look: Callable[[], "Status"], *, quiet: bool = False) -> Iterator[GridProgress]:
    """Everything goes to standard error."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield GridProgress(look, lambda status, now: None)
    elif console.is_terminal:
        from rich.live import Live
        from rich.text import Text

        with Live(console=console, transient=True, refresh_per_second=4) as live:
            yield GridProgress(
                look, lambda status, now: live.update(Text(f"{_bar(status)} {described(status)}\n{now}"))
            )
    else:
        yield GridProgress(look, _lines(console.file.write))


def described(status: "Status") -> str:
    """Cells done, running and to come, runs, and the time that is left."""
    failed = f", {status.failed} failed" if status.failed else ""
    left = "" if not status.seconds_left else f"; about {duration(status.seconds_left)} left"
    return (
        f"cells: {status.cells_done} done, {status.cells_running} running, {status.cells_to_come} to come; "
        f"runs: {status.runs_done} of {status.runs}{failed}{left}"
    )


def _bar(status: "Status", width: int = 30) -> str:
    filled = width * status.runs_done // max(1, status.runs)
    return "[" + "#" * filled + "." * (width - filled) + "]"


def _lines(write: Callable[[str], object]) -> Callable[["Status", str], None]:
    last, shown = -float("inf"), -1

    def show(status: "Status", now: str) -> None:
        nonlocal last, shown
        is_over = status.runs_done == status.runs
        if status.runs_done == shown or (not is_over and time.monotonic() - last < SECONDS_BETWEEN_LINES):
            return
        last, shown = time.monotonic(), status.runs_done
        write(f"{described(status)}\n")

    return show
