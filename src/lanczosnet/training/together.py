"""Several runs of one configuration at once: the same data and recipe, different seeds and splits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from lightning.fabric import Fabric
from torch import nn
from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs, Split
from lanczosnet.training.loop import EpochReport, Fitted, fit
from lanczosnet.training.recipes import Recipe
from lanczosnet.training.tasks import Task


@dataclass(frozen=True)
class Trial:
    """One run: a network with its first weights, a split, and the seed of everything random after that."""

    model: nn.Module
    split: Split
    task: Task
    seed: int


@dataclass(frozen=True)
class Outcome:
    """A run that is over, and its share of the time."""

    fitted: Fitted
    seconds: float


def fit_together(
    trials: Sequence[Trial],
    data: Data | PackedGraphs,
    recipe: Recipe,
    *,
    fabric: Fabric | None = None,
    on_epoch: Callable[[int, EpochReport], None] = lambda place, report: None,
) -> list[Outcome]:
    """Train all of them; every model ends with the weights of its best epoch, as with `fit`.

    `on_epoch` hears of the trial's place in the list and of its epoch.
    """
    outcomes = []
    for place, trial in enumerate(trials):
        begin = perf_counter()

        def report(epoch: EpochReport, place: int = place) -> None:
            on_epoch(place, epoch)

        fitted = fit(
            trial.model, data, trial.split, trial.task, recipe, seed=trial.seed, fabric=fabric, on_epoch=report
        )
        outcomes.append(Outcome(fitted, perf_counter() - begin))
    return outcomes
