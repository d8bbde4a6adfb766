"""Runs of a grid: claimed, trained, written. Any number of workers may do so on one store."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch_geometric.data import Data

from lanczosnet.experiments.forest import MODEL as FOREST
from lanczosnet.experiments.forest import forest_result
from lanczosnet.experiments.grid import Cell, Grid, Run
from lanczosnet.experiments.provenance import commit, versions
from lanczosnet.experiments.status import pending_of
from lanczosnet.experiments.store import Line, Store
from lanczosnet.graphs import PackedGraphs, Split, load, pack
from lanczosnet.training import EpochReport, Outcome
from lanczosnet.training.checkpoint import CheckpointFile
from lanczosnet.training.engine.concurrent import side_by_side
from lanczosnet.training.engine.devices import fabric_for, hardware
from lanczosnet.training.errors import ArchitectureError
from lanczosnet.training.job import Job, Outputs, job_of, run_jobs
from lanczosnet.training.splitting import split_of

if TYPE_CHECKING:
    from lightning.fabric import Fabric

CHECKPOINT_SECONDS = 30.0  # at least, between two of one run
KEPT = ("targets", "units", "task", "atom_types", "edge_types")  # what is known of all molecules together


@dataclass(frozen=True)
class RunOptions:
    """Where and how a grid is run; none of it changes a result by more than rounding."""

    device: str = "auto"
    data_dir: Path | None = None
    concurrent: int = 10  # seeds of one cell that a GPU trains at once
    keep_models: bool = False  # leave a model directory of every run in the store
    retry_before: str = ""  # failures that are older, by their time of day, are tried again


def work(
    grid: Grid,
    store: Store,
    options: RunOptions,
    *,
    on_change: Callable[[], None] = lambda: None,
    on_epoch: Callable[[Cell, EpochReport], None] = lambda cell, report: None,
) -> None:
    """Do every run of the grid that is neither done nor another worker's; each line is on the disk at once."""
    fabrics = {precision: fabric_for(options.device, precision) for precision in {c.precision for c in grid.cells}}
    store.tidy()
    size = options.concurrent if any(map(side_by_side, fabrics.values())) else 1
    for runs in _groups(grid, size):
        fabric = fabrics[runs[0].cell.precision]
        pending = pending_of(runs, store, options.retry_before)
        if not pending:
            continue
        with store.claiming(run.key for run in pending) as keys:
            # Once more: another worker may have finished between the look and the claim.
            mine = pending_of([run for run in pending if run.key in keys], store, options.retry_before)
            on_change()
            for line in results(mine, fabric, options, store, on_epoch) if mine else ():
                store.append(line)
                _checkpoint(store.checkpoints, line["key"]).path.unlink(missing_ok=True)
        on_change()


def _groups(grid: Grid, size: int) -> Iterator[list[Run]]:
    for cell in grid.cells:
        runs = grid.runs_of(cell)
        yield from (runs[i : i + size] for i in range(0, len(runs), size))


def results(
    runs: Sequence[Run],
    fabric: "Fabric",
    options: RunOptions,
    store: Store,
    on_epoch: Callable[[Cell, EpochReport], None] = lambda cell, report: None,
) -> Iterator[Line]:
    """A line for each of the runs, all of one cell. If they fail when run at once, each is tried alone."""
    cell = runs[0].cell
    data = _loaded(cell.dataset, tuple(cell.data_options.items()), options.data_dir)
    if cell.model == FOREST:
        yield from (_forest_line(run, data, fabric) for run in runs)
        return
    jobs = [_job(run, data, options, store) for run in runs]
    begin = time.perf_counter()
    try:
        outcomes = run_jobs(jobs, fabric, on_epoch=lambda place, report: on_epoch(cell, report))
    except ArchitectureError:
        raise  # of every run of the cell
    except Exception as error:  # whatever ends a run is its result, and says so in the table
        if isinstance(error, torch.AcceleratorError) and _is_broken(fabric.device):
            raise  # no run's result: the device serves this process no more, and others may go on
        if len(runs) > 1:
            for run in runs:
                yield from results([run], fabric, options, store, on_epoch)
            return
        yield _line(runs[0], jobs[0].split, fabric, time.perf_counter() - begin) | _failure(error)
        return
    for run, job, outcome in zip(runs, jobs, outcomes, strict=True):
        measured = _failure(outcome.error) if outcome.error else _measured(outcome, data)
        yield _line(run, job.split, fabric, outcome.seconds) | measured


def _is_broken(device: torch.device) -> bool:
    """Whether the process can do nothing more on the device, as after an access to memory that is not its own."""
    try:
        torch.ones(1, device=device).cpu()
    except torch.AcceleratorError:
        return True
    return False


def _failure(error: Exception) -> dict[str, str]:
    return {"error": " ".join(f"{type(error).__name__}: {error}".split())}


def _job(run: Run, data: Data | PackedGraphs, options: RunOptions, store: Store) -> Job:
    """Runs on many graphs are long, and go on from a checkpoint after a kill; those on one graph begin again."""
    model = store.models / run.key if options.keep_models else None
    checkpoint = _checkpoint(store.checkpoints, run.key) if isinstance(data, PackedGraphs) else None
    outputs = Outputs(model=model, checkpoint=checkpoint, keeps_checkpoint=True)
    return replace(job_of(run.spec(), data), outputs=outputs)


def _checkpoint(folder: Path, key: str) -> CheckpointFile:
    return CheckpointFile(folder / f"{key}.safetensors", {"run": key}, CHECKPOINT_SECONDS)


def _forest_line(run: Run, data: Data | PackedGraphs, fabric: "Fabric") -> Line:
    """On the CPU, whatever the device."""
    assert isinstance(data, PackedGraphs)
    begin, parts = time.perf_counter(), split_of(run.spec(), data)
    result = forest_result(data, parts, run.cell.options, run.seed)
    return _line(run, parts, fabric, time.perf_counter() - begin) | result


def _line(run: Run, parts: Split, fabric: "Fabric", seconds: float) -> Line:
    return {
        "key": run.key,
        **run.cell.facts(),
        "split_hash": parts.hash,
        "split_seed": parts.seed,
        "seed": run.seed,
        "seconds": round(seconds, 3),
        "hardware": hardware(fabric.device),
        "versions": versions(),
        "commit": commit(),
        "finished_at": datetime.now(UTC).isoformat(timespec="microseconds"),
    }


def _measured(outcome: Outcome, data: Data | PackedGraphs) -> dict[str, Any]:
    fitted = outcome.fitted
    assert fitted is not None
    return {
        "metrics": fitted.metrics,
        "by_target": fitted.by_target,
        "best_epoch": fitted.best_epoch,
        "epochs": fitted.epochs,
        "stopped": fitted.stopped,
        # The thousands of short runs on one graph would make long files of them.
        **({"curves": _rounded(outcome.curves)} if isinstance(data, PackedGraphs) else {}),
    }


def _rounded(curves: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    return {name: [float(f"{value:.5g}") for value in values] for name, values in curves.items()}


@lru_cache(maxsize=2)
def _loaded(dataset: str, options: tuple[tuple[str, Any], ...], data_dir: Path | None) -> Data | PackedGraphs:
    """The data, or so many of its graphs, evenly spread; kept, since the next cells mostly have the same.

    Two are kept: a network's row may have options of its own, and the table's come back with the next network.
    """
    given = dict(options)
    count = given.pop("molecules", None)
    data = load(dataset, data_dir=data_dir, **given)
    return data if count is None else some_graphs(data, count)


def some_graphs(graphs: PackedGraphs, count: int) -> PackedGraphs:
    """Evenly spread over the whole set, which is ordered by size."""
    if not 1 <= count <= len(graphs):
        raise ValueError(f"{graphs.name} has {len(graphs):,} graphs: {count:,} of them cannot be taken")
    numbers = [i * len(graphs) // count for i in range(count)]
    return pack(
        [graphs[i] for i in numbers], graphs.name, **{key: graphs.about[key] for key in KEPT if key in graphs.about}
    )
