"""Trials of a network, one after another, in a study on disk: each is chosen by those before it.

A study is an SQLite file, which survives a kill at any moment. A trial that was running then is left aside and comes
again: the sampler of a trial has a seed of its own, made of how many trials are finished, so that a search that was
killed finds what it would have found. A trial trains every split, and its value is the mean of the customary metric of
their validation items. Nothing here reads a metric of test items.
"""

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.pool import NullPool
from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.job import Job, JobSpec, job_of, run_jobs
from lanczosnet.training.metrics import METRICS
from lanczosnet.training.state import EpochReport
from lanczosnet.tuning.space import Space

if TYPE_CHECKING:
    from lightning.fabric import Fabric

STUDY = "study.sqlite"
STARTUP = 10  # trials that are drawn at random before the sampler learns from them
FIRST_UNPRUNED = 5  # trials that always run to their end
REPORTS = 20  # of a run, at most, that a pruner looks at
PRUNERS = ("median", "none")
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
FAULT = "fault"  # why a trial failed; one without was killed


@dataclass(frozen=True)
class Search:
    """What is to be searched, and how."""

    space: Space
    specs: Sequence[JobSpec]  # splits and seeds of a trial, with the fixed settings
    trials: int
    seed: int = 0
    pruner: str = "median"

    def identity(self, jobs: Sequence[Job]) -> str:
        """What must be the same for a search to go on; more trials are more of the same."""
        first = jobs[0].identity()
        data = {key: first[key] for key in ("targets", "inputs", "recipe")}
        splits = [(job.split.hash, job.spec.seed) for job in jobs]
        described = {"space": self.space.described(), "data": data, "splits": splits, "scaling": first.get("scaling")}
        return json.dumps(described | {"seed": self.seed, "pruner": self.pruner}, sort_keys=True)


def tune(
    search: Search,
    data: Data | PackedGraphs,
    folder: Path,
    fabric: "Fabric | None" = None,
    on_trial: Callable[[optuna.Study, FrozenTrial], None] = lambda study, trial: None,
) -> optuna.Study:
    """Run the trials that are missing; `on_trial` gets every one that ends. The study holds all of them."""
    jobs = [job_of(spec, data) for spec in search.specs]  # mistakes are noticed once, and here
    study = _study(search, jobs, folder)
    run = partial(_run_trial, search, data, study, fabric)
    while (done := len(finished(study))) < search.trials:
        study.sampler = optuna.samplers.TPESampler(seed=_seed(search.seed, done), n_startup_trials=STARTUP)
        trial = study.ask()
        run(trial, {} if done == 0 else search.space.suggested(trial))
        on_trial(study, study.trials[trial.number])
    return study


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """The trials that count: those that ended by themselves, well or not."""
    ended = study.get_trials(deepcopy=False, states=FINISHED)
    return [trial for trial in ended if trial.state != TrialState.FAIL or FAULT in trial.user_attrs]


def best_of(study: optuna.Study) -> FrozenTrial:
    """The best trial that ran to its end."""
    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        faults = {trial.user_attrs.get(FAULT, "") for trial in finished(study)}
        raise TrainingError(f"no trial of {study.study_name} ran to its end: {'; '.join(sorted(faults))}")
    return study.best_trial


def _study(search: Search, jobs: Sequence[Job], folder: Path) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folder.mkdir(parents=True, exist_ok=True)
    study = optuna.create_study(
        storage=_storage(folder / STUDY),
        study_name=search.space.name,
        direction="maximize" if METRICS[jobs[0].task.metric].higher_is_better else "minimize",
        pruner=_pruner(search.pruner, jobs[0].recipe.epochs * len(jobs)),
        load_if_exists=True,
    )
    identity = search.identity(jobs)
    if study.user_attrs.setdefault("identity", identity) != identity:
        raise TrainingError(
            f"{folder} holds another search of {search.space.name}: its data, splits, space or settings differ. "
            "Choose another folder, or pass overwrite=True to start over"
        )
    study.set_user_attr("identity", identity)
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING, TrialState.WAITING)):
        study.tell(trial.number, state=TrialState.FAIL)  # its process was killed
    return study


def _storage(path: Path) -> optuna.storages.RDBStorage:
    """A database whose connections are closed after each use, and not when the interpreter ends."""
    return optuna.storages.RDBStorage(f"sqlite:///{path}", engine_kwargs={"poolclass": NullPool})


def _pruner(name: str, epochs: int) -> optuna.pruners.BasePruner:
    if name not in PRUNERS:
        raise TrainingError(f"there is no pruner {name!r}; known are {', '.join(PRUNERS)}")
    if name == "none":
        return optuna.pruners.NopPruner()
    return optuna.pruners.MedianPruner(n_startup_trials=FIRST_UNPRUNED, n_warmup_steps=epochs // 4)


def _run_trial(
    search: Search,
    data: Data | PackedGraphs,
    study: optuna.Study,
    fabric: "Fabric | None",
    trial: optuna.Trial,
    values: dict[str, Any],
) -> None:
    begin = perf_counter()
    try:
        specs = [replace(spec, settings={**spec.settings, **values}) for spec in search.specs]
        results = _trained(trial, [job_of(spec, data) for spec in specs], fabric)
    except optuna.TrialPruned:
        _end(study, trial, begin, state=TrialState.PRUNED)
    except (TrainingError, ValueError, ArithmeticError) as error:
        trial.set_user_attr(FAULT, " ".join(f"{error}".split()))
        _end(study, trial, begin, state=TrialState.FAIL)
    else:
        trial.set_user_attr("by_split", results)
        _end(study, trial, begin, value=statistics.fmean(results))


def _end(study: optuna.Study, trial: optuna.Trial, begin: float, **outcome: Any) -> None:
    trial.set_user_attr("seconds", round(perf_counter() - begin, 3))
    study.tell(trial, outcome.get("value"), state=outcome.get("state"))


def _trained(trial: optuna.Trial, jobs: Sequence[Job], fabric: "Fabric | None") -> list[float]:
    """The validation metric of every split."""
    watch = _Watch(trial, jobs)
    metric = jobs[0].task.metric
    return [outcome.result().metrics["val"][metric] for outcome in run_jobs(jobs, fabric, watch.note)]


class _Watch:
    """Reports how a trial is doing, and ends it where the pruner says so."""

    def __init__(self, trial: optuna.Trial, jobs: Sequence[Job]) -> None:
        self.trial, self.metric = trial, jobs[0].task.metric
        self.interval = max(1, jobs[0].recipe.epochs * len(jobs) // REPORTS)
        self.better = max if METRICS[self.metric].higher_is_better else min
        self.best: dict[int, float] = {}  # by the run's place
        self.epochs = 0  # of all runs together

    def note(self, place: int, report: EpochReport) -> None:
        self.epochs += 1
        value = report.metrics[self.metric]
        self.best[place] = self.better(value, self.best.get(place, value))
        if self.epochs % self.interval == 0:
            self.trial.report(statistics.fmean(self.best.values()), self.epochs)
            if self.trial.should_prune():
                raise optuna.TrialPruned


def _seed(seed: int, done: int) -> int:
    """Of the sampler, after so many trials."""
    return int(np.random.SeedSequence([seed, done]).generate_state(1)[0])
