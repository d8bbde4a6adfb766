"""The loop: epochs of steps, validation after each, the best weights at the end.

All randomness of an epoch comes from the seed and the epoch's number. A run that is resumed after any epoch therefore
goes on as if it had never stopped, and nothing but weights, optimizer and the record of epochs has to be kept.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import torch
from torch import nn
from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs, Split
from lanczosnet.training.devices import best_device
from lanczosnet.training.errors import DivergenceError, TrainingError
from lanczosnet.training.examples import examples_of
from lanczosnet.training.recipes import Recipe
from lanczosnet.training.tasks import Task
from lanczosnet.training.trainer import EpochReport, Fitted, Run, Trainer

if TYPE_CHECKING:
    from lightning.fabric import Fabric


class Checkpoints(Protocol):
    """Where a run is kept; see `lanczosnet.training.checkpoint`."""

    def restore(self, run: Run) -> None: ...

    def keep(self, run: Run) -> None: ...


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
    (device, precision, processes), by default one process on the best device. On one GPU the step is recorded and
    replayed, where the model and its data allow it.
    """
    fabric = fabric or best_device()
    with explained(recipe), random_state_kept(fabric.device):
        model.to(fabric.device)
        trainer = Trainer(model, examples_of(model, data, fabric.device), split, task, recipe, seed, fabric)
        if checkpoints:
            checkpoints.restore(trainer.run)
        reason = trainer.run.progress.reason_to_stop(recipe) if trainer.run.progress.epoch else None
        while reason is None:
            (report,) = advance([trainer])
            if isinstance(report, DivergenceError):
                raise report
            on_epoch(report)
            reason = trainer.run.progress.reason_to_stop(recipe)
            if checkpoints and fabric.is_global_zero:
                checkpoints.keep(trainer.run)
        return trainer.finish(reason)


def advance(trainers: Sequence[Trainer]) -> list[EpochReport | DivergenceError]:
    """One epoch of each; on a GPU all are queued before the host waits for any."""
    queued = [trainer.queue_epoch() for trainer in trainers]
    for trainer in trainers:
        with trainer.place:
            pass  # from here on the current stream has waited for the trainer's
    return [_concluded(*each) for each in zip(trainers, torch.stack(queued).tolist(), strict=True)]


def _concluded(trainer: Trainer, values: list[float]) -> EpochReport | DivergenceError:
    try:
        return trainer.conclude_epoch(values)
    except DivergenceError as error:
        return error


@contextmanager
def random_state_kept(device: torch.device) -> Iterator[None]:
    """Training seeds torch's generators; the caller finds them as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield


@contextmanager
def explained(recipe: Recipe) -> Iterator[None]:
    """Out of memory becomes a message that says what to do."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not isinstance(error, torch.OutOfMemoryError | MemoryError) and "can't allocate memory" not in str(error):
            raise
        raise TrainingError(
            f"out of memory with batches of {recipe.batch_size}: try batch_size={max(1, recipe.batch_size // 2)}, "
            "a smaller hidden_channels, or another device"
        ) from error
