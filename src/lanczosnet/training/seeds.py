"""Several seeds or splits of one job at once. Every run is trained exactly as it would be alone, whatever the network.

On a CUDA device one process trains them side by side; elsewhere each has a process.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from torch_geometric.data import Data

from lanczosnet.files import only_writer
from lanczosnet.graphs import PackedGraphs, load
from lanczosnet.processes import begin_worker, interrupts_ignored, num_cores
from lanczosnet.training.engine.devices import fabric_for, is_cuda
from lanczosnet.training.errors import DivergenceError, TrainingError
from lanczosnet.training.job import Job, JobSpec, job_of, prepare, run, run_jobs
from lanczosnet.training.loop import Outcome
from lanczosnet.training.model_folder import as_it_ended, begin_anew, finished_before
from lanczosnet.training.state import EpochReport, FitResult

if TYPE_CHECKING:
    from lightning.fabric import Fabric

SIDE_BY_SIDE = 10  # on a GPU, whose memory they share


def run_seeds(spec: JobSpec, seeds: Sequence[int], folder: Path, **options: Any) -> list[FitResult]:
    """Train every seed into `folder/seed-0`, ...; the results, in the seeds' order. Options as in `run_specs`."""
    return run_specs({f"seed-{seed}": replace(spec, seed=seed) for seed in seeds}, folder, **options)


def run_specs(
    specs: Mapping[str, JobSpec],
    folder: Path,
    *,
    data: Data | PackedGraphs | None = None,
    at_once: int | None = None,
    concurrent: bool | None = None,
    device: str = "auto",
    precision: str = "32-true",
    deterministic: bool = True,
    host_features: bool | None = None,
    resume: bool = False,
    overwrite: bool = False,
    checkpoint_seconds: float = 10.0,
    data_dir: Path | None = None,
    on_progress: Callable[[float], None] = lambda share: None,
) -> list[FitResult]:
    """Train specs that differ in seed and split alone, each into a folder of its own, as `run` does.

    Args:
        specs: by the names of their folders in `folder`.
        data: those of the specs, where the caller has loaded them.
        at_once: how many train at a time; by default as many as there are cores, or ten on a GPU.
        concurrent: whether they train in this process; the default on a CUDA device.
        on_progress: gets every share of a run's work that is done.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise TrainingError("several seeds are not trained by torchrun: leave it out, or train one seed")
    first = next(iter(specs.values()))
    data = load(first.source, data_dir=data_dir, **first.data_options) if data is None else data
    job = job_of(first, data)  # mistakes are noticed once, and here
    fabric = partial(fabric_for, device, precision, deterministic=deterministic, host_features=host_features)
    runs = {folder / name: spec for name, spec in specs.items()}
    with only_writer(folder):
        if overwrite and not resume:
            with _only_writer_of(filter(Path.exists, runs)):
                begin_anew(job, list(runs))
            resume = True
        if is_cuda(device) if concurrent is None else concurrent:
            with _only_writer_of(runs):
                made = fabric()
                jobs = {path: job_of(spec, data) for path, spec in runs.items()}
                saved = {path: job.saved_in(path, checkpoint_seconds, made) for path, job in jobs.items()}
                return _side_by_side(saved, made, at_once or SIDE_BY_SIDE, resume, on_progress)
        one = partial(_run_one, fabric, data_dir, {"resume": resume, "checkpoint_seconds": checkpoint_seconds})
        return _results(list(_in_processes(one, list(runs.items()), at_once, on_progress)))


@contextmanager
def _only_writer_of(folders: Iterable[Path]) -> Iterator[None]:
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context(only_writer(folder))
        yield


def _side_by_side(
    jobs: dict[Path, Job], fabric: "Fabric", at_once: int, resume: bool, on_progress: Callable[[float], None]
) -> list[FitResult]:
    """Everything that can be trained is trained and saved before a divergence is reported."""
    results = {path: finished_before(job, resume) for path, job in jobs.items()}
    pending = [path for path, result in results.items() if result is None]
    on_progress(float(len(jobs) - len(pending)))
    outcomes: dict[Path, Outcome] = {}
    for begin in range(0, len(pending), at_once):
        group = pending[begin : begin + at_once]
        outcomes |= zip(group, _group([jobs[path] for path in group], fabric, on_progress), strict=True)
    return _results([_end_of(result, outcomes.get(path), jobs[path]) for path, result in results.items()])


def _end_of(result: FitResult | None, outcome: Outcome | None, job: Job) -> FitResult | DivergenceError:
    """Of a run that was found done, or else of one that was trained."""
    try:
        return outcome.result() if outcome else as_it_ended(job, result)  # type: ignore[arg-type]  # it has either
    except DivergenceError as error:
        return error


def _group(jobs: Sequence[Job], fabric: "Fabric", on_progress: Callable[[float], None]) -> list[Outcome]:
    epochs = jobs[0].recipe.epochs
    done = [job.outputs.checkpoint.epoch() if job.outputs.checkpoint else 0 for job in jobs]

    def on_epoch(place: int, report: EpochReport) -> None:
        done[place] = report.epoch
        on_progress(1 / epochs)

    on_progress(sum(done) / epochs)
    outcomes = run_jobs(jobs, fabric, on_epoch)
    on_progress(len(jobs) - sum(done) / epochs)  # of runs that stopped early
    return outcomes


def _in_processes(
    one: Callable[[tuple[Path, JobSpec]], FitResult | DivergenceError],
    runs: Sequence[tuple[Path, JobSpec]],
    at_once: int | None,
    on_progress: Callable[[float], None],
) -> Iterator[FitResult | DivergenceError]:
    cores = num_cores()
    workers = at_once or min(len(runs), cores)
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, begin_worker, (max(1, cores // workers),))
    try:
        with interrupts_ignored():
            futures = [pool.submit(one, place) for place in runs]
        for future in futures:
            result = future.result()
            on_progress(1.0)
            yield result
    except BrokenProcessPool as error:
        raise TrainingError(
            "a process that trained a run died: it was killed, or there is too little memory. What is finished is "
            "kept: pass resume=True to continue"
        ) from error
    finally:
        _end(pool)


def _end(pool: ProcessPoolExecutor) -> None:
    """At once, even in the middle of a run. The pool's own thread waits for its processes: two would be in each other's
    way."""
    for worker in list((pool._processes or {}).values()):
        worker.terminate()
    pool.shutdown(cancel_futures=True)


def _run_one(
    fabric: Callable[[], "Fabric"], data_dir: Path | None, options: dict[str, Any], place: tuple[Path, JobSpec]
) -> FitResult | DivergenceError:
    folder, spec = place
    job = prepare(spec, data_dir)
    try:
        return run(job, folder, fabric=fabric(), **options)
    except DivergenceError as error:
        return error


def _results(ends: Sequence[FitResult | DivergenceError]) -> list[FitResult]:
    """A divergence is reported when all are done."""
    for end in ends:
        if isinstance(end, DivergenceError):
            raise end
    return cast("list[FitResult]", ends)
