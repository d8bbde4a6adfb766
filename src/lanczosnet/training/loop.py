"""The loop: epochs of steps, validation after each, the best weights at the end.

All randomness of an epoch comes from the seed and the epoch's number. A run that is resumed after any epoch therefore
goes on as if it had never stopped, and nothing but weights, optimizer and the record of epochs has to be kept.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import nn
from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs, Split
from lanczosnet.training.engine.concurrent import Checkpoints, Trial, fit_together
from lanczosnet.training.recipes import Recipe
from lanczosnet.training.state import EpochReport, Fitted
from lanczosnet.training.tasks import Task

if TYPE_CHECKING:
    from lightning.fabric import Fabric


def fit(
    model: nn.Module,
    data: Data | PackedGraphs,
    split: Split,
    task: Task,
    recipe: Recipe,
    *,
    seed: int = 0,
    fabric: "Fabric | None" = None,
    on_epoch: Callable[[EpochReport], None] = lambda report: None,
    checkpoints: Checkpoints | None = None,
) -> Fitted:
    """Train the model; at the end it holds the weights of the epoch that was best on the validation items.

    `seed` orders the graphs and drives dropout; the model's first weights are the caller's. `fabric` says where
    (device, precision, processes, order of additions), by default one process on the best device, in one order. On one
    GPU the step is recorded and replayed, where the model and its data allow it.
    """
    trial = Trial(model, split, task, seed, checkpoints)
    (outcome,) = fit_together([trial], data, recipe, fabric=fabric, on_epoch=lambda place, report: on_epoch(report))
    if outcome.error is not None:
        raise outcome.error
    assert outcome.fitted is not None
    return outcome.fitted
