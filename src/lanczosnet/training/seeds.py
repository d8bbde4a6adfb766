"""Several seeds of one plan at once. Every one is trained exactly as it would be alone, whatever the network.

On a CUDA device one process trains them side by side, with their steps recorded; elsewhere each has a process.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lanczosnet.training.engine.concurrent import Outcome
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.job import Plan, Prepared, Record, finished_before, prepare, run, trained
from lanczosnet.training.state import EpochReport, Fitted

if TYPE_CHECKING:
    from lightning.fabric import Fabric

SIDE_BY_SIDE = 10  # on a GPU, whose memory they share


def seed_folder(folder: Path, seed: int) -> Path:
    return folder / f"seed-{seed}"


def run_seeds(
    plan: Plan,
    seeds: Sequence[int],
    folder: Path,
    *,
    prepared: Prepared | None = None,
    at_once: int | None = None,
    together: bool | None = None,
    device: str = "auto",
    precision: str = "32-true",
    any_order: bool = False,
    data_dir: Path | None = None,
    on_progress: Callable[[float], None] = lambda share: None,
    **how: Any,
) -> list[Fitted]:
    """Train every seed into a folder of its own, as `run` does with these `how`; the outcomes, in the seeds' order.

    `prepared` is the plan with its data where the caller has loaded them.
    `at_once` of them train at a time: as many as there are cores, or ten on a GPU. `together`, in this process, is the
    default on a CUDA device. `on_progress` hears of every share of a seed's work that is done.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise TrainingError("several seeds are not trained by torchrun: leave it out, or train one seed")
    prepared = prepared or prepare(plan, data_dir)  # mistakes are noticed, and caches made, once and here
    if together is None:
        together = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    fabric = partial(fabric_for, device, precision, any_order=any_order)
    if together:
        return _side_by_side(prepared, seeds, folder, fabric(), at_once or SIDE_BY_SIDE, on_progress, **how)
    one = partial(_run_one, plan, folder, fabric, data_dir, how)
    return list(_in_processes(one, seeds, at_once, on_progress))


def _side_by_side(
    prepared: Prepared,
    seeds: Sequence[int],
    folder: Path,
    fabric: "Fabric",
    at_once: int,
    on_progress: Callable[[float], None],
    *,
    resume: bool = False,
    checkpoint_seconds: float = 10.0,
) -> list[Fitted]:
    """All that can be trained is trained and saved before one that diverged is reported."""
    runs = {seed: replace(prepared, plan=replace(prepared.plan, seed=seed)) for seed in seeds}
    fitted = {seed: finished_before(runs[seed], seed_folder(folder, seed), resume) for seed in seeds}
    pending = [seed for seed in seeds if fitted[seed] is None]
    on_progress(float(len(seeds) - len(pending)))
    errors = []
    for begin in range(0, len(pending), at_once):
        group = pending[begin : begin + at_once]
        records = [
            Record(runs[seed], seed_folder(folder, seed), checkpoint_seconds=checkpoint_seconds) for seed in group
        ]
        outcomes = _trained(records, fabric, on_progress)
        fitted |= {seed: outcome.fitted for seed, outcome in zip(group, outcomes, strict=True)}
        errors += [outcome.error for outcome in outcomes if outcome.error]
    if errors:
        raise errors[0]
    return [result for result in fitted.values() if result]


def _trained(records: Sequence[Record], fabric: "Fabric", on_progress: Callable[[float], None]) -> list[Outcome]:
    epochs = records[0].prepared.recipe.epochs
    done = [record.checkpoint.epoch() for record in records]

    def on_epoch(place: int, report: EpochReport) -> None:
        done[place] = report.epoch
        on_progress(1 / epochs)

    on_progress(sum(done) / epochs)
    outcomes = trained(records, fabric, on_epoch)
    on_progress(len(records) - sum(done) / epochs)  # of runs that stopped early
    return outcomes


def _in_processes(
    one: Callable[[int], Fitted], seeds: Sequence[int], at_once: int | None, on_progress: Callable[[float], None]
) -> Iterator[Fitted]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = at_once or min(len(seeds), cores)
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _begin, (max(1, cores // workers),))
    try:
        for fitted in pool.map(one, seeds):
            on_progress(1.0)
            yield fitted
    except BrokenProcessPool as error:
        raise TrainingError(
            "a process that trained a seed died: it was killed, or there is too little memory. What is finished is "
            "kept: give the command again with --resume"
        ) from error
    finally:
        _end(pool)


def _end(pool: ProcessPoolExecutor) -> None:
    """At once, even in the middle of a run. The pool's own thread waits for its processes: two would be in each other's
    way."""
    for worker in list((pool._processes or {}).values()):
        worker.terminate()
    pool.shutdown(cancel_futures=True)


def _begin(num_threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then ends its children
    torch.set_num_threads(num_threads)


def _run_one(
    plan: Plan, folder: Path, fabric: Callable[[], "Fabric"], data_dir: Path | None, how: dict[str, Any], seed: int
) -> Fitted:
    prepared = prepare(replace(plan, seed=seed), data_dir)
    return run(prepared, seed_folder(folder, seed), fabric=fabric(), **how)
