"""The schemas of a store: a line per run, and the claim of a worker on a run.

Lines stay as they are written, byte by byte, so they are checked and not turned into objects. A line without `format`
is of format 1.
"""

import math
import statistics
from pathlib import Path
from typing import Annotated, Any

from lanczosnet.schemas.model_config import Metrics
from lanczosnet.schemas.record import (
    LARGEST,
    Count,
    Digest,
    Document,
    FileError,
    Meta,
    Name,
    Positive,
    Record,
    Share,
    checked,
    msgspec,
    parsed,
    up_to_date,
)

FORMAT = 1
REMEDY = "Delete this line"

Scalar = bool | int | float | str | None
Moment = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+[+][0-9:]+)?\\Z")]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]
DEFINED = ("accuracy", "mae", "rmse")  # metrics that are numbers whatever the answers are
SHARES = ("accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision")  # that lie between 0 and 1


class DataOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a table reads of them; the others are the loader's, and change no number of the table."""

    molecules: Positive | None = None  # that were taken


class AnyLine(Record, frozen=True, kw_only=True):
    """What is known of every run, whether it failed or not."""

    format: Positive = FORMAT
    key: Digest
    table: Name
    cell: Digest
    dataset: Name
    data_options: dict[str, Scalar | list[Scalar]]
    split: Name
    fraction: Share | None
    model: Name
    label: str
    options: dict[str, Any]
    recipe: Name
    settings: dict[str, Scalar]
    precision: Name
    features: Name = "none"  # how they were scaled
    public_splits: Count = 0  # where every seed has one of several
    split_hash: Digest
    split_seed: Count | None
    seed: Count
    seconds: Seconds
    hardware: str
    versions: dict[str, str]
    commit: str | None
    finished_at: Moment

    def __post_init__(self) -> None:
        if not 1 <= self.epochs_wanted <= 2**62:
            raise ValueError("settings.epochs: expected a whole number of at least 1 and at most 2^62")

    @property
    def epochs_wanted(self) -> int:
        """0 where the settings do not say."""
        epochs = self.settings.get("epochs")
        return epochs if isinstance(epochs, int) else 0


class FailedLine(AnyLine, frozen=True, kw_only=True):
    """A run that ended without a result."""

    error: str


class ResultLine(AnyLine, frozen=True, kw_only=True):
    """A run and its result."""

    metrics: Metrics
    by_target: Metrics
    best_epoch: Positive
    epochs: Positive
    stopped: str
    curves: dict[str, list[float]] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked(self.data_options, DataOptions, "data_options", "")  # a run that failed may have had any
        if not self.best_epoch <= self.epochs <= self.epochs_wanted:
            raise ValueError(
                f"best_epoch ({self.best_epoch}) and epochs ({self.epochs}) do not fit settings.epochs "
                f"({self.epochs_wanted})"
            )
        for name in ("metrics", "by_target"):
            if set(getattr(self, name)) != {"val", "test"}:
                raise ValueError(f"{name} must have the parts val and test")
        for part in ("val", "test"):
            check_metrics(part, self.metrics[part], self.by_target[part])


class RunClaim(Record, frozen=True, kw_only=True):
    """Who is at a run."""

    host: Name
    process: Annotated[int, Meta(ge=1, le=2**31 - 1)]


def check_line(text: bytes, path: Path, number: int) -> Document:
    """The line in a text, unchanged."""
    where = f"{path}, line {number}"
    line = parsed(text, where, REMEDY)
    document = up_to_date({"format": FORMAT} | line, FORMAT, where, REMEDY)
    checked(document, FailedLine if "error" in line else ResultLine, where, REMEDY)
    return line


def claim_in(text: bytes, path: Path) -> RunClaim | None:
    """The claim in a text; None if it is damaged, and its owner therefore unknown."""
    try:
        return checked(parsed(text, path, ""), RunClaim, path, "")
    except FileError:
        return None


def check_metrics(part: str, metrics: dict[str, float], by_target: dict[str, float]) -> None:
    """Each lies in its range, and the one that epochs are chosen by is the mean of the targets'."""
    for name, value in metrics.items():
        least = 0.0 if name != "r2" else -math.inf
        most = 1 + 1e-9 if name in SHARES else LARGEST
        if name in DEFINED if math.isnan(value) else not least <= value <= most:
            raise ValueError(f"metrics.{part}.{name} is {value}, which it cannot be")
    if {"mae", "rmse"} <= metrics.keys() and metrics["mae"] > metrics["rmse"] * (1 + 1e-6):
        raise ValueError(f"metrics.{part}.mae is larger than the rmse, which it cannot be")
    known = [value for value in by_target.values() if not math.isnan(value)]
    mean = statistics.fmean(known) if known else math.nan
    if known and not any(math.isclose(value, mean, rel_tol=1e-5, abs_tol=1e-9) for value in metrics.values()):
        raise ValueError(f"by_target.{part}: the mean is {mean}, but none of metrics.{part}")
