"""The trials of a network, in a study on disk: each is chosen by those before it.

A study is an SQLite file, which survives a kill at any moment. A trial that was running then is left aside and comes
again: every trial has a place among those that are wanted, and the sampler a seed of its own for each place. Trials
that run one after another are therefore the same whether the search was killed or not. Those of several workers also
depend on which ended first. A trial trains every split, and its value is the mean of the customary metric of their
validation items. Nothing here reads a metric of test items.
"""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.pool import NullPool
from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.job import Job, JobSpec, job_of
from lanczosnet.training.metrics import METRICS
from lanczosnet.tuning.space import Space
from lanczosnet.tuning.trial import TrialEnd, run_trial
from lanczosnet.tuning.workers import TrialWorkers

if TYPE_CHECKING:
    from lightning.fabric import Fabric

STUDY = "study.sqlite"
STARTUP = 10  # trials that are drawn at random before the sampler learns from them
FIRST_UNPRUNED = 5  # trials that always run to their end
PRUNERS = ("median", "none")
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
FAULT = "fault"  # why a trial failed; one without was killed
PLACE = "place"  # of a trial among those of its search; studies of earlier versions leave it out


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
    workers: TrialWorkers | None = None,
) -> optuna.Study:
    """Run the trials that are missing; `on_trial` gets every one that ends. The study holds all of them.

    `workers` train several at once, on their own copies of the data; else they run here, one after another.
    """
    jobs = [job_of(spec, data) for spec in search.specs]  # mistakes are noticed once, and here
    study = _study(search, jobs, folder)
    missing = _Missing(search, study, on_trial)
    if workers is not None:
        workers.run(missing)
        return study
    while asked := missing.ask():
        missing.tell(asked, run_trial(asked.specs, asked.values, data, fabric, asked))
    return study


@dataclass(eq=False)
class _Asked:
    """A trial of the study that is to be run, and its pruner."""

    trial: optuna.Trial
    specs: Sequence[JobSpec]
    values: Mapping[str, Any]
    attempts: int = 0
    epochs: int = 0  # after which it was reported last

    def is_poor(self, value: float, epochs: int) -> bool:
        if epochs > self.epochs:  # else it is run again
            self.trial.report(value, epochs)
            self.epochs = epochs
        return self.trial.should_prune()


class _Missing:
    """The trials of a search that the study does not have yet."""

    def __init__(
        self, search: Search, study: optuna.Study, on_trial: Callable[[optuna.Study, FrozenTrial], None]
    ) -> None:
        self.search, self.study, self.on_trial = search, study, on_trial
        done = by_place(study)
        self.places = [place for place in range(search.trials) if place not in done]

    def ask(self) -> _Asked | None:
        """The next one; the first of a search has the defaults."""
        if not self.places:
            return None
        place = self.places.pop(0)
        seed = _seed(self.search.seed, place)
        self.study.sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        trial = self.study.ask()
        trial.set_user_attr(PLACE, place)
        return _Asked(trial, self.search.specs, {} if place == 0 else self.search.space.suggested(trial))

    def tell(self, asked: _Asked, end: TrialEnd) -> None:
        trial, value = asked.trial, None
        trial.set_user_attr("seconds", end.seconds)
        if end.fault:
            trial.set_user_attr(FAULT, end.fault)
        if end.state == "complete":
            trial.set_user_attr("by_split", end.by_split)
            value = statistics.fmean(end.by_split)
        self.study.tell(trial, value, state=TrialState[end.state.upper()])
        self.on_trial(self.study, self.study.trials[trial.number])


def by_place(study: optuna.Study) -> dict[int, FrozenTrial]:
    """The trials that count, by their places in rising order: those that ended by themselves, well or not."""
    ended = study.get_trials(deepcopy=False, states=FINISHED)
    counted = [trial for trial in ended if trial.state != TrialState.FAIL or FAULT in trial.user_attrs]
    return dict(sorted((trial.user_attrs.get(PLACE, number), trial) for number, trial in enumerate(counted)))


def best_of(study: optuna.Study) -> FrozenTrial:
    """The best trial that ran to its end."""
    if not study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        faults = {trial.user_attrs.get(FAULT, "") for trial in by_place(study).values()}
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


def _seed(seed: int, place: int) -> int:
    """Of the sampler, for the trial of this place."""
    return int(np.random.SeedSequence([seed, place]).generate_state(1)[0])
