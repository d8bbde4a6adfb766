"""A progress bar on a terminal, silence elsewhere and without rich."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec


@contextmanager
def progress_bar(description: str, total: int) -> Iterator[Callable[[float], None]]:
    """Give a function that moves the bar forward by so many items, or by a share of one."""
    if find_spec("rich") is None:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task(description, total=total)
        yield lambda count: progress.advance(bar, count)
