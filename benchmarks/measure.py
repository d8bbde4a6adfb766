"""How the benchmarks measure: interleaved repetitions, the best of each, ratios within one run."""

import contextlib
import ctypes
import gc
import multiprocessing
import resource
import time
from collections.abc import Callable, Mapping

import torch
from rich.console import Console
from rich.table import Table

Function = Callable[[], object]


def best_times(functions: Mapping[str, Function], repeats: int = 5, calls: int = 1) -> dict[str, float]:
    """Seconds of processor time per call: the best of `repeats` rounds, in which the functions take turns."""
    best = dict.fromkeys(functions, float("inf"))
    for function in functions.values():
        function()
    for _ in range(repeats):
        for name, function in functions.items():
            begin = time.process_time()
            for _ in range(calls):
                function()
            best[name] = min(best[name], (time.process_time() - begin) / calls)
    return best


def cuda_time(function: Function, repeats: int = 20) -> float:
    """Median seconds on the device, by events, after warm-up."""
    for _ in range(3):
        function()
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return sorted(times)[len(times) // 2]


def peak_memory(function: Function) -> float:
    """MiB that one call needs at its peak, above what was there before; measured in a child process of its own."""
    _return_free_memory()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        function()
        sender.send((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)

    process = context.Process(target=child)
    process.start()
    process.join()
    if process.exitcode != 0:
        raise RuntimeError(f"the measured function failed with exit code {process.exitcode}")
    return receiver.recv()


def _return_free_memory() -> None:
    """Give freed memory back to the system, which a child would otherwise use unseen."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # glibc has it, other libraries need not
        ctypes.CDLL(None).malloc_trim(0)


def show(title: str, columns: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=140).print(table)


def verdict(value: float, bar: float, at_most: bool = False) -> str:
    """A ratio beside the bar it should reach."""
    reached = value <= bar if at_most else value >= bar
    return f"{value:.2f} ({'at most' if at_most else 'at least'} {bar:g}: {'reached' if reached else 'MISSED'})"
