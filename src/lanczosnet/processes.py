"""Worker processes: they start quietly, and end with the process that started them.

This module loads in milliseconds, so that a worker watches its parent while it still imports the rest.
"""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C waits until the block ends. Processes that start in it inherit this, and never see Ctrl-C."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker(num_threads: int) -> None:
    """Set up a process that works beside others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then ends its children
    _end_with_parent()
    import torch  # takes seconds

    torch.set_num_threads(num_threads)


def work_for_parent(num_threads: int, pickled: bytes) -> None:
    """The target of a worker process: `pickled` is a function without arguments, read once the worker is set up."""
    begin_worker(num_threads)
    function: Callable[[], Any] = pickle.loads(pickled)  # of the parent, through a pipe of its own
    function()


def _end_with_parent() -> None:
    """However the parent ends, also by SIGKILL: its end of a pipe closes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_outlive, args=(parent,), daemon=True).start()


def _outlive(parent: Any) -> None:
    parent.join()
    os._exit(1)
