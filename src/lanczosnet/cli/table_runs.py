"""What `lanczosnet table` runs: a grid, more seeds of it, or some of its lines again."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lanczosnet.cli.printing import print_rows
from lanczosnet.cli.selection import Selection

if TYPE_CHECKING:
    from lanczosnet.experiments.grid import Grid
    from lanczosnet.experiments.store import Line


def run_until_decided(
    selection: Selection,
    grid: "Grid",
    path: Path,
    options: dict[str, Any],
    workers: int,
    retry_failed: bool,
    *,
    quiet: bool,
) -> "tuple[Grid, bool]":
    """Runs of the comparisons that are not decided, look by look; the grid of all that may have run."""
    from lanczosnet.experiments.grid import Grid
    from lanczosnet.experiments.tables.qm8_tables import LOOKS, MORE_SEEDS, SEEDS, undecided_cells
    from lanczosnet.report import Table

    every = Grid(grid.cells, SEEDS + MORE_SEEDS)
    for look in LOOKS[1:]:
        lines = lines_of(every, path)
        claims = Table.from_records(selection.spec(recipe_of(lines)).filled(lines)).claims
        undecided = sum(not claim.is_decided for claim in claims)
        if not undecided:
            break
        stage = undecided_cells(grid, recipe_of(lines), [claim.is_decided for claim in claims], look)
        if not quiet:
            are = "comparison is" if undecided == 1 else "comparisons are"
            typer.echo(f"{undecided} {are} not decided: {look} seeds of {len(stage.cells)} rows", err=True)
        if not run_grid(stage, path, options, workers, retry_failed, quiet=quiet):
            return every, False
    return every, True


def verify_lines(lines: "list[Line]", count: int, options: dict[str, Any], as_json: bool) -> None:
    """Repeat a number of random runs; the exit code is 1 if one of them differs."""
    import random

    from lanczosnet.experiments.runner import RunOptions
    from lanczosnet.experiments.verify import comparable, verify
    from lanczosnet.graphs.progress import progress_bar

    known = comparable(lines, options["device"])
    chosen = random.sample(known, min(count, len(known)))
    with progress_bar(f"Repeating {len(chosen)} of {len(known)} runs", len(chosen)) as advance:
        verdicts = list(verify(chosen, RunOptions(**options), on_end=lambda: advance(1)))
    rows = [
        {
            "run": " ".join(filter(None, (line["dataset"], line["split"], line["model"], line["label"]))),
            "seed": str(line["seed"]),
            "key": line["key"],
            "torch": line["versions"]["torch"],
            "outcome": f"differs in {', '.join(differing)}" if differing else "the same bits",
        }
        for line, differing in verdicts
    ]
    print_rows(rows, as_json)
    if any(differing for _, differing in verdicts):
        raise typer.Exit(1)


def list_cells(grid: "Grid", path: Path, as_json: bool) -> None:
    from lanczosnet.cli.watch_grid import described
    from lanczosnet.experiments.status import pending_of, status
    from lanczosnet.experiments.store import Store

    store = Store(path)
    rows = [
        {
            "cell": cell.name,
            "recipe": cell.recipe,
            "runs": str(len(grid.seeds)),
            "done": str(len(grid.seeds) - len(pending_of(grid.runs_of(cell), store))),
            "key": cell.key,
        }
        for cell in grid.cells
    ]
    print_rows(rows, as_json)
    if not as_json:
        typer.echo(described(status(grid, store)))


def run_grid(
    grid: "Grid", path: Path, options: dict[str, Any], workers: int, retry_failed: bool, *, quiet: bool
) -> bool:
    """Do what is to be done; whether no worker died."""
    from lanczosnet.cli.watch_grid import watching_grid
    from lanczosnet.experiments.status import pending_of, status
    from lanczosnet.experiments.store import Store

    retry_before = datetime.now(UTC).isoformat() if retry_failed else ""
    store = Store(path)
    if not pending_of(grid.runs, store, retry_before):
        return True
    from lanczosnet.experiments.runner import RunOptions, work  # loads torch

    run_options = RunOptions(**options, retry_before=retry_before)
    with watching_grid(lambda: status(grid, store, workers, retry_before), quiet=quiet) as watch:
        if workers == 1:
            work(grid, store, run_options, on_change=watch.changed, on_epoch=watch.epoch)
            return True
        from lanczosnet.experiments.workers import work_in_processes

        codes = work_in_processes(grid, path, run_options, workers, watch.changed)
        watch.changed()
        return not any(codes)


def lines_of(grid: "Grid", path: Path) -> "list[Line]":
    from lanczosnet.experiments.store import Store

    keys = grid.keys
    return [line for key, line in Store(path).lines().items() if key in keys]


def recipe_of(lines: "list[Line]") -> str:
    from lanczosnet.experiments.grid import recipes_in

    return next(iter(recipes_in(lines)), "paper")
