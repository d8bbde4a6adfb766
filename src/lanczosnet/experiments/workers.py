"""Several workers on one machine; each is a process that could as well run elsewhere, on the same store."""

import multiprocessing
import multiprocessing.connection
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lanczosnet.experiments.grid import Grid
from lanczosnet.experiments.runner import RunOptions, work
from lanczosnet.experiments.store import Store
from lanczosnet.processes import end_all, interrupts_ignored, num_cores, work_for_parent

SECONDS_BETWEEN_LOOKS = 1.0


def work_in_processes(
    grid: Grid, path: Path, options: RunOptions, workers: int, on_look: Callable[[], None]
) -> list[int]:
    """The exit codes of all workers, once they are done; `on_look` is called now and then meanwhile."""
    context = multiprocessing.get_context("spawn")
    arguments = max(1, num_cores() // workers), pickle.dumps(partial(_work, grid, path, options))
    processes = [context.Process(target=work_for_parent, args=arguments, daemon=True) for _ in range(workers)]
    try:
        for process in processes:
            with interrupts_ignored():
                process.start()
        while any(process.is_alive() for process in processes):
            on_look()
            multiprocessing.connection.wait([p.sentinel for p in processes if p.is_alive()], SECONDS_BETWEEN_LOOKS)
    finally:
        end_all(processes)
    return [process.exitcode or 0 for process in processes]


def _work(grid: Grid, path: Path, options: RunOptions) -> None:
    work(grid, Store(path), options)
