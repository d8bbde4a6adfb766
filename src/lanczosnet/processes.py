"""Worker processes: they start quietly, and end with the process that started them.

This module loads in milliseconds, so that a worker watches its parent while it still imports the rest.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from mmap import mmap
from typing import Any

SECONDS_BETWEEN_LOOKS = 1.0  # at a parent
NO_MEMORY = (
    "allocate memory",
    "out of memory",
    "bad_alloc",
    "Unable to allocate",
    "bad allocation",
    "malloc of size",
    "create a primitive",
    "can't start new thread",
    "failed to map segment",  # of a library that is imported
)
FOR_A_THREAD = 2**20  # bytes


def num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_exists(process: int) -> bool:
    """Whether this machine has a process of this number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this is what a library raises where it gets no memory; they have no class in common."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)


def check_memory(num_bytes: int) -> None:
    """A MemoryError where so much cannot be had. safetensors is in Rust, and would end the process instead."""
    bytearray(num_bytes)


def check_memory_to_save(tensors: Mapping[str, Any]) -> None:
    """The same for what safetensors makes of arrays or tensors: the content of the file, and Python's copy of it."""
    check_memory(2 * sum(tensor.nbytes for tensor in tensors.values()))


def begin_thread(work: Callable[..., None], *arguments: Any) -> threading.Thread:
    """It does not keep the process from ending. Python waits for ever for a thread that gets no memory to begin."""
    try:
        mmap(-1, FOR_A_THREAD).close()  # its first memory is new pages, and none that were freed
    except OSError as error:
        raise MemoryError from error
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Processes that start in this block never see Ctrl-C, not even while they import."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # masks would be undone by the start of resource trackers
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def begin_worker(num_threads: int) -> None:
    """Set up a process that works beside others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then ends its children
    _end_with_parent()
    import torch  # takes seconds

    torch.set_num_threads(num_threads)


def work_for_parent(num_threads: int, pickled: bytes, *arguments: Any) -> None:
    """The target of a worker process: `pickled` is a function of the arguments, read once the worker is set up."""
    begin_worker(num_threads)
    function: Callable[..., Any] = pickle.loads(pickled)  # of the parent, through a pipe of its own
    function(*arguments)


def end_all(processes: Sequence[Any]) -> None:
    """Kill worker processes; what they have finished is on the disk.

    All before any is waited for: on a shared GPU the end of one can fail the others, which would note that.
    """
    for process in processes:
        if process.is_alive():
            process.kill()
    for process in processes:
        if process.pid is not None:
            process.join()


def called_for(parent: int, pickled: bytes) -> Any:
    """What a function without arguments returns; in a worker that another library started, which ends with `parent`."""
    if os.getpid() != parent:
        _end_with(parent)
    return pickle.loads(pickled)()


@cache
def _end_with(parent: int) -> None:
    _watch(partial(_wait_for_another_parent, parent))


def _end_with_parent() -> None:
    """However the parent ends, also by SIGKILL: its end of a pipe closes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        _watch(parent.join)


def _watch(wait: Callable[[], None]) -> None:
    begin_thread(_exit_after, wait)


def _exit_after(wait: Callable[[], None]) -> None:
    wait()
    os._exit(1)


def _wait_for_another_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS_BETWEEN_LOOKS)
