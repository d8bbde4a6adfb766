"""Several seeds of one plan at once: a process each, sharing the device.

Every process trains exactly as it would alone, whatever the network; the models need not know of it.
"""

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lanczosnet.training.devices import fabric_for
from lanczosnet.training.plan import Plan, prepare, run
from lanczosnet.training.progress import Fitted


def seed_folder(folder: Path, seed: int) -> Path:
    return folder / f"seed-{seed}"


def run_seeds(
    plan: Plan,
    seeds: Sequence[int],
    folder: Path,
    *,
    workers: int | None = None,
    device: str = "auto",
    precision: str = "32-true",
    data_dir: Path | None = None,
    **how: Any,
) -> Iterator[Fitted]:
    """Train every seed into a folder of its own; the outcomes in the order of the seeds.

    `workers` processes work at a time: as many as there are cores on the CPU, all of them on a GPU, which they share.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    on_cpu = device == "cpu" or not (torch.cuda.is_available() or torch.backends.mps.is_available())
    workers = workers or (min(len(seeds), cores) if on_cpu else len(seeds))
    prepare(plan, data_dir)  # mistakes are noticed, and caches made, once and here
    one = partial(_run_one, plan, folder, device, precision, data_dir, how)
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, _begin, (max(1, cores // workers),)) as pool:
        yield from pool.imap(one, seeds)


def _begin(num_threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then ends its children
    torch.set_num_threads(num_threads)


def _run_one(
    plan: Plan, folder: Path, device: str, precision: str, data_dir: Path | None, how: dict[str, Any], seed: int
) -> Fitted:
    prepared = prepare(replace(plan, seed=seed), data_dir)
    return run(prepared, seed_folder(folder, seed), fabric=fabric_for(device, precision), **how)
