"""What a search leaves: a table of all trials, and the best configuration as a file that `train --config` takes."""

import csv
import io
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna

from lanczosnet.files import atomic_write
from lanczosnet.schemas.run_config import run_config_text
from lanczosnet.tuning.search import FAULT, Search, best_of, by_place
from lanczosnet.tuning.space import values_of

TABLE = "trials.csv"
HEAD = ("network", "trial", "state", "value", "deviation", "seconds")


def rows_of(search: Search, study: optuna.Study) -> list[dict[str, Any]]:
    """A row of plain values for every trial that counts; the first has the defaults."""
    return [_row(search, place, trial) for place, trial in by_place(study).items()]


def _row(search: Search, place: int, trial: optuna.trial.FrozenTrial) -> dict[str, Any]:
    values = trial.user_attrs.get("by_split", [])
    return {
        "network": search.space.name,
        "trial": place,
        "state": trial.state.name.lower(),
        "value": trial.value if trial.value is not None else "",
        "deviation": statistics.stdev(values) if len(values) > 1 else "",
        "seconds": trial.user_attrs.get("seconds", ""),
        **values_of(trial.params, search.space.dimensions),
        FAULT: trial.user_attrs.get(FAULT, ""),
    }


def write_table(rows: Sequence[Mapping[str, Any]], folder: Path) -> Path:
    """All trials of all networks."""
    settings = list(dict.fromkeys(name for row in rows for name in row if name not in (*HEAD, FAULT)))
    text = io.StringIO()
    writer = csv.DictWriter(text, [*HEAD, *settings, FAULT], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path = folder / TABLE
    with atomic_write(path) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8")
    return path


def best_settings(search: Search, study: optuna.Study) -> dict[str, Any]:
    """The fixed settings, and the best values of the others."""
    return {**search.specs[0].settings, **values_of(best_of(study).params, search.space.dimensions)}


def write_best(search: Search, study: optuna.Study, options: Mapping[str, Any], metric: str, path: Path) -> None:
    """The best configuration; `options` are the others of the command, by the names that they have in the file."""
    best, count = best_of(study), len(by_place(study))
    splits = f" over {len(search.specs)} runs" if len(search.specs) > 1 else ""
    about = f"lanczosnet tune: the best of {count} trials, validation {metric} {best.value:.4g}{splits}"
    document = dict(options) | {"model": search.space.model, "settings": best_settings(search, study)}
    with atomic_write(path) as temporary:
        temporary.write_text(run_config_text(document, about), encoding="utf-8")
