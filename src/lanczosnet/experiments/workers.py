"""Several workers on one machine; each is a process that could as well run elsewhere, on the same store."""

import multiprocessing
import multiprocessing.connection
import os
import signal
from collections.abc import Callable
from pathlib import Path

from lanczosnet.experiments.grid import Grid
from lanczosnet.experiments.runner import How, work
from lanczosnet.experiments.store import Store

SECONDS_BETWEEN_LOOKS = 1.0


def work_in_processes(grid: Grid, path: Path, how: How, workers: int, on_look: Callable[[], None]) -> list[int]:
    """The exit codes of all workers, once they are done; `on_look` is called now and then meanwhile."""
    context = multiprocessing.get_context("spawn")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(1, cores // workers)
    processes = [context.Process(target=_work, args=(grid, path, how, threads), daemon=True) for _ in range(workers)]
    try:
        for process in processes:
            process.start()
        while any(process.is_alive() for process in processes):
            on_look()
            multiprocessing.connection.wait([p.sentinel for p in processes if p.is_alive()], SECONDS_BETWEEN_LOOKS)
    finally:
        # All before any is waited for: on a shared GPU the end of one can fail the others, which would note that.
        for process in processes:
            if process.is_alive():
                process.kill()  # what it has finished is on the disk
        for process in processes:
            if process.pid is not None:
                process.join()
    return [process.exitcode or 0 for process in processes]


def _work(grid: Grid, path: Path, how: How, threads: int) -> None:
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then ends its children
    torch.set_num_threads(threads)
    work(grid, Store(path), how)
