"""Searches of several networks on the same data, splits and number of trials, and what all of them leave."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import optuna
from torch_geometric.data import Data

from lanczosnet.files import atomic_write, only_writer
from lanczosnet.graphs import PackedGraphs
from lanczosnet.training.job import job_of
from lanczosnet.training.metrics import METRICS
from lanczosnet.tuning.outcome import best_settings, rows_of, write_best, write_table
from lanczosnet.tuning.search import STUDY, Search, best_of, by_place, tune
from lanczosnet.tuning.workers import TrialWorkers

if TYPE_CHECKING:
    from lightning.fabric import Fabric

BEST = "best.toml"
OnTrial = Callable[[str, int, optuna.trial.FrozenTrial, float | None], None]


class Found(NamedTuple):
    """The best of one network's trials."""

    network: str
    trials: int
    value: float  # of the validation items
    metric: str
    settings: dict[str, Any]
    config: Path  # for `train --config`


def tune_networks(
    searches: Sequence[Search],
    data: Data | PackedGraphs,
    folder: Path,
    options: Mapping[str, Any],
    fabric: "Fabric | None" = None,
    *,
    overwrite: bool = False,
    on_trial: OnTrial = lambda network, count, trial, best: None,
    workers: TrialWorkers | None = None,
) -> list[Found]:
    """Run all searches; the folder then has every trial in a table, and each network's best configuration.

    Args:
        options: of the command, by their names in a configuration file.
        overwrite: begin anew.
        on_trial: gets the network, the number of its finished trials, the trial that ended, and the best value so far.
        workers: train several trials of a network at once.
    """
    with only_writer(folder):
        if overwrite:
            (folder / STUDY).unlink(missing_ok=True)
        rows: dict[str, list[dict[str, Any]]] = {}
        found = [_found(search, data, folder, options, fabric, on_trial, rows, workers) for search in searches]
        with atomic_write(folder / BEST) as temporary:
            temporary.write_bytes(_better(found).config.read_bytes())
    return found


def _found(
    search: Search,
    data: Data | PackedGraphs,
    folder: Path,
    options: Mapping[str, Any],
    fabric: "Fabric | None",
    on_trial: OnTrial,
    rows: dict[str, list[dict[str, Any]]],
    workers: TrialWorkers | None,
) -> Found:
    name = search.space.name

    def after(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        rows[name] = rows_of(search, study)
        write_table([row for held in rows.values() for row in held], folder)
        on_trial(name, len(rows[name]), trial, _value(study))

    study = tune(search, data, folder, fabric, after, workers)
    rows[name] = rows_of(search, study)
    write_table([row for held in rows.values() for row in held], folder)
    metric = job_of(search.specs[0], data).task.metric
    path = folder / f"best-{name}.toml"
    write_best(search, study, options, metric, path)
    best = best_of(study)
    assert best.value is not None
    return Found(name, len(by_place(study)), best.value, metric, best_settings(search, study), path)


def _value(study: optuna.Study) -> float | None:
    done = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    return study.best_value if done else None


def _better(found: Sequence[Found]) -> Found:
    choose = max if METRICS[found[0].metric].higher_is_better else min
    return choose(found, key=lambda one: one.value)
