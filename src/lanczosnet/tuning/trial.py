"""One trial: its splits and seeds are trained with some settings; nothing here knows what a study is."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Protocol

from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.job import Job, JobSpec, job_of, run_jobs
from lanczosnet.training.metrics import METRICS
from lanczosnet.training.state import EpochReport

if TYPE_CHECKING:
    from lightning.fabric import Fabric

REPORTS = 20  # of a run, at most, that a pruner looks at


class Pruner(Protocol):
    """Is told how a trial is doing, and may end it."""

    def is_poor(self, value: float, epochs: int) -> bool: ...


@dataclass(frozen=True)
class TrialEnd:
    """How a trial ended by itself."""

    state: Literal["complete", "pruned", "fail"]
    by_split: list[float] = field(default_factory=list)  # the validation metric of every run
    fault: str = ""
    seconds: float = 0.0


class _PoorTrialError(Exception):
    """The pruner has ended the trial."""


def run_trial(
    specs: Sequence[JobSpec],
    values: Mapping[str, Any],
    data: Data | PackedGraphs,
    fabric: "Fabric | None",
    pruner: Pruner,
) -> TrialEnd:
    """Train all runs with these settings over those that are fixed."""
    begin = perf_counter()
    end = _run(specs, values, data, fabric, pruner)
    return replace(end, seconds=round(perf_counter() - begin, 3))


def _run(
    specs: Sequence[JobSpec],
    values: Mapping[str, Any],
    data: Data | PackedGraphs,
    fabric: "Fabric | None",
    pruner: Pruner,
) -> TrialEnd:
    try:
        changed = [replace(spec, settings={**spec.settings, **values}) for spec in specs]
        return TrialEnd("complete", _trained([job_of(spec, data) for spec in changed], fabric, pruner))
    except _PoorTrialError:
        return TrialEnd("pruned")
    except (TrainingError, ValueError, ArithmeticError) as error:
        return TrialEnd("fail", fault=" ".join(f"{error}".split()))


def _trained(jobs: Sequence[Job], fabric: "Fabric | None", pruner: Pruner) -> list[float]:
    """The validation metric of every split."""
    watch = _Watch(jobs, pruner)
    metric = jobs[0].task.metric
    return [outcome.result().metrics["val"][metric] for outcome in run_jobs(jobs, fabric, watch.note)]


class _Watch:
    """Tells the pruner how a trial is doing, and ends it where the pruner says so."""

    def __init__(self, jobs: Sequence[Job], pruner: Pruner) -> None:
        self.pruner, self.metric = pruner, jobs[0].task.metric
        self.interval = max(1, jobs[0].recipe.epochs * len(jobs) // REPORTS)
        self.better = max if METRICS[self.metric].higher_is_better else min
        self.best: dict[int, float] = {}  # by the run's place
        self.epochs = 0  # of all runs together

    def note(self, place: int, report: EpochReport) -> None:
        self.epochs += 1
        value = report.metrics[self.metric]
        if math.isnan(value):
            raise TrainingError(
                f"{self.metric} is not defined on the validation items, as with one class alone: use another split, or "
                "another metric with choose_by"
            )
        self.best[place] = self.better(value, self.best.get(place, value))
        if self.epochs % self.interval == 0 and self.pruner.is_poor(statistics.fmean(self.best.values()), self.epochs):
            raise _PoorTrialError
