"""How far a grid has come, read from its store."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lanczosnet.experiments.grid import Grid, Run
from lanczosnet.experiments.store import Line, Store


@dataclass(frozen=True)
class Status:
    """Numbers of cells and of runs, and the time that is left, where a finished run lets it be guessed."""

    cells_done: int
    cells_running: int
    cells_to_come: int
    runs_done: int
    runs: int
    failed: int
    seconds_left: float | None


def pending_of(runs: Iterable[Run], store: Store, retry_before: str = "") -> list[Run]:
    """Those without a line, or with a failure that is older than `retry_before`."""
    lines = store.lines()
    return [run for run in runs if not _is_done(lines.get(run.key), retry_before)]


def _is_done(line: Line | None, retry_before: str) -> bool:
    return line is not None and not ("error" in line and line["finished_at"] < retry_before)


def status(grid: Grid, store: Store, workers: int = 1, retry_before: str = "") -> Status:
    claimed = store.running()
    pending = pending_of(grid.runs, store, retry_before)
    lines = store.lines()
    open_cells = {run.cell.key for run in pending}
    running = {run.cell.key for run in pending if run.key in claimed}
    every = {cell.key for cell in grid.cells}
    done = [lines[run.key] for run in grid.runs if run.key in lines]
    return Status(
        cells_done=len(every - open_cells),
        cells_running=len(running),
        cells_to_come=len(open_cells - running),
        runs_done=len(grid.runs) - len(pending),
        runs=len(grid.runs),
        failed=sum("error" in line for line in done),
        seconds_left=_seconds_left(pending, done, workers),
    )


def _seconds_left(pending: list[Run], done: list[Line], workers: int) -> float | None:
    """By the mean time of finished runs of the same network on the same data; else of the network; else of all."""
    if not done:
        return None
    means: dict[tuple[Any, ...], float] = {}
    for names in (("dataset", "model"), ("model",), ()):
        groups: dict[tuple[Any, ...], list[float]] = {}
        for line in done:
            groups.setdefault(_fields(line, names), []).append(line["seconds"])
        means |= {group: statistics.fmean(seconds) for group, seconds in groups.items()}
    return sum(_guess(vars(run.cell), means) for run in pending) / workers


def _guess(cell: Mapping[str, Any], means: Mapping[tuple[Any, ...], float]) -> float:
    groups = (_fields(cell, names) for names in (("dataset", "model"), ("model",), ()))
    return next(means[group] for group in groups if group in means)


def _fields(facts: Mapping[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(facts[name] for name in names)
