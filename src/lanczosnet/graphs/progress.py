"""A progress bar on a terminal, silence elsewhere and without rich."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_is_shown = ContextVar("is_shown", default=False)  # one bar at a time: that of the whole, not of its parts


@contextmanager
def progress_bar(description: str, total: int | None) -> Iterator[Callable[[float], None]]:
    """Return a function that advances the bar by a number of items, or by a share of one; None is an unknown total."""
    console = None if _is_shown.get() else _terminal()
    if console is None:
        yield lambda count: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(description, total=total)
        before = _is_shown.set(True)
        try:
            yield lambda count: progress.advance(bar, count)
        finally:
            _is_shown.reset(before)


@contextmanager
def steps_shown() -> Iterator[Callable[[str], Callable[[float], None]]]:
    """Give a function that begins a step with its own bar, and returns one that takes the share that is done."""
    console = _terminal()
    if console is None:
        yield lambda text: lambda share: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:

        def on_step(text: str) -> Callable[[float], None]:
            bar = progress.add_task(text, total=1.0)
            return lambda share: progress.update(bar, completed=share)

        yield on_step


def _terminal() -> "Console | None":
    """Standard error where that is a terminal; elsewhere even a disabled bar of rich 13 writes an empty line."""
    if find_spec("rich") is None:
        return None
    from rich.console import Console

    console = Console(stderr=True)
    return console if console.is_terminal else None
