"""Watching a training: a bar on a terminal, lines in a pipe."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from lanczosnet.training import EpochReport

SECONDS_BETWEEN_LINES = 2.0


@contextmanager
def watching(epochs: int, metric: str, *, quiet: bool = False) -> Iterator[Callable[["EpochReport"], None]]:
    """Give a function that shows an epoch; everything goes to standard error."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield lambda report: None
    elif console.is_terminal:
        with _bar(console, epochs, metric) as show:
            yield show
    else:
        yield _lines(console, epochs, metric)


@contextmanager
def _bar(console: "Console", epochs: int, metric: str) -> Iterator[Callable[["EpochReport"], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    texts = [TextColumn(f"{{task.fields[{name}]}}") for name in ("loss", "metric", "best", "rate")]
    columns = (TextColumn("epoch"), MofNCompleteColumn(), BarColumn(), *texts, TimeRemainingColumn())
    best = _Best(metric)
    begin, first = time.monotonic(), 0
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=epochs, loss="", metric="", best="", rate="")

        def show(report: "EpochReport") -> None:
            nonlocal first
            first = first or report.epoch - 1
            rate = (report.epoch - first) / max(time.monotonic() - begin, 1e-9)
            progress.update(
                bar,
                completed=report.epoch,
                loss=f"loss {report.train_loss:.4g}",
                metric=f"{metric} {report.metrics[metric]:.4g}",
                best=f"best {best(report)}",
                rate=f"{rate:.3g}/s",
            )

        yield show


def _lines(console: "Console", epochs: int, metric: str) -> Callable[["EpochReport"], None]:
    best = _Best(metric)
    last = -float("inf")

    def show(report: "EpochReport") -> None:
        nonlocal last
        text = best(report)
        if report.epoch < epochs and time.monotonic() - last < SECONDS_BETWEEN_LINES:
            return
        last = time.monotonic()
        console.print(
            f"epoch {report.epoch}/{epochs}  loss {report.train_loss:.4g}  validation loss {report.val_loss:.4g}  "
            f"{metric} {report.metrics[metric]:.4g}  best {text}",
            soft_wrap=True,
            highlight=False,
        )

    return show


class _Best:
    """The metric of the best epoch, as a text."""

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self.text = "-"

    def __call__(self, report: "EpochReport") -> str:
        if report.is_best:
            self.text = f"{report.metrics[self.metric]:.4g} ({report.epoch})"
        return self.text
