"""The loop: epochs of steps, validation after each, the best weights at the end.

All randomness of an epoch comes from the seed and the epoch's number. A run that is resumed after any epoch therefore
goes on as if it had never stopped, and nothing but weights, optimizer and the record of epochs has to be kept.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from lightning.fabric import Fabric
from torch import Tensor, nn
from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs, Split
from lanczosnet.training.averaging import WeightAverage, snapshot
from lanczosnet.training.errors import DivergenceError, TrainingError
from lanczosnet.training.examples import Examples, Step, examples_of
from lanczosnet.training.recipes import Recipe
from lanczosnet.training.tasks import Task

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


@dataclass(frozen=True)
class EpochReport:
    """What is known after an epoch."""

    epoch: int
    train_loss: float
    val_loss: float
    metrics: dict[str, float]  # of the validation items, in the units of the data
    learning_rate: float
    is_best: bool

    def as_dict(self) -> dict[str, Any]:
        values = asdict(self)
        return values | {f"val_{key}": value for key, value in values.pop("metrics").items()}


@dataclass(frozen=True)
class Fitted:
    """The outcome of a run; the model holds the weights of the best epoch."""

    best_epoch: int
    epochs: int
    stopped: str  # why it ended
    metrics: dict[str, dict[str, float]]  # of the validation and the test items
    by_target: dict[str, float]  # the main metric of every target on the test items


@dataclass
class Progress:
    """The record of a run, from which stopping and choosing are decided."""

    epoch: int = 0
    best_epoch: int = 0
    best_rank: tuple[float, float] | None = None
    val_losses: list[float] = field(default_factory=list)

    def tick(self, val_loss: float, rank: tuple[float, float]) -> bool:
        """Note an epoch; whether it is the best so far. Of equal epochs the earlier stays."""
        self.epoch += 1
        self.val_losses.append(val_loss)
        is_best = self.best_rank is None or rank > self.best_rank
        if is_best:
            self.best_epoch, self.best_rank = self.epoch, rank
        return is_best

    def reason_to_stop(self, recipe: Recipe) -> str | None:
        window = self.val_losses[-recipe.stop_window - 1 :] if recipe.stop_window else []
        if len(window) > recipe.stop_window > 0 and all(b >= a for a, b in itertools.pairwise(window)):
            return f"the validation loss did not improve {recipe.stop_window} times in a row"
        if recipe.patience and self.epoch - self.best_epoch >= recipe.patience:
            return f"no better epoch in {recipe.patience}"
        return "all epochs done" if self.epoch >= recipe.epochs else None


class Checkpoints(Protocol):
    """Where a run is kept; see `lanczosnet.training.checkpoint`."""

    def restore(self, run: "Run") -> None: ...

    def keep(self, run: "Run") -> None: ...


@dataclass
class Run:
    """Everything that changes from step to step."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    average: WeightAverage | None
    best: dict[str, Tensor]
    progress: Progress = field(default_factory=Progress)
    step: int = 0

    @property
    def weights(self) -> dict[str, Tensor]:
        """Those that are validated and kept."""
        return self.average.weights if self.average else self.model.state_dict()


def fit(
    model: nn.Module,
    data: Data | PackedGraphs,
    split: Split,
    task: Task,
    recipe: Recipe,
    *,
    seed: int = 0,
    fabric: Fabric | None = None,
    on_epoch: Callable[[EpochReport], None] = lambda report: None,
    checkpoints: Checkpoints | None = None,
) -> Fitted:
    """Train the model; at the end it holds the weights of the epoch that was best on the validation items.

    `seed` orders the graphs and drives dropout; the model's first weights are the caller's. `fabric` says where
    (device, precision, processes), by default one process on the best device.
    """
    fabric = fabric or Fabric(devices=1)
    with _explained(recipe), _random_state_kept(fabric.device):
        model.to(fabric.device)
        examples = examples_of(model, data, fabric.device)
        trainer = _Trainer(model, examples, split, task, recipe, seed, fabric)
        if checkpoints:
            checkpoints.restore(trainer.run)
        reason = trainer.run.progress.reason_to_stop(recipe) if trainer.run.progress.epoch else None
        while reason is None:
            on_epoch(trainer.epoch())
            reason = trainer.run.progress.reason_to_stop(recipe)
            if checkpoints and fabric.is_global_zero:
                checkpoints.keep(trainer.run)
        return trainer.finish(reason)


class _Trainer:
    """One run: what stays the same beside what changes."""

    def __init__(
        self,
        model: nn.Module,
        examples: Examples,
        split: Split,
        task: Task,
        recipe: Recipe,
        seed: int,
        fabric: Fabric,
    ) -> None:
        self.examples, self.split, self.task, self.recipe = examples, split, task, recipe
        self.seed, self.fabric = seed, fabric
        self.steps_per_epoch = examples.num_steps(len(split.train), recipe.batch_size)
        optimizer = OPTIMIZERS[recipe.optimizer](
            model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )
        average = WeightAverage(model, recipe.averaging) if recipe.averaging else None
        self.run = Run(model, optimizer, average, snapshot(model.state_dict()))
        self.module = fabric.setup_module(model)
        self.optimizer: Any = fabric.setup_optimizers(optimizer)

    def epoch(self) -> EpochReport:
        """Train on every training item once, then validate."""
        number = self.run.progress.epoch + 1
        order = self._reseed(number)
        losses = [self._step(step) for step in self._steps(self.split.train[order])]
        train_loss = float(self.fabric.all_reduce(torch.stack(losses).mean(), reduce_op="mean"))  # type: ignore[arg-type]
        if not math.isfinite(train_loss):
            raise self._diverged(number)
        val_loss, metrics, _ = self._evaluate(self.split.val)
        if not math.isfinite(val_loss):
            raise self._diverged(number)
        is_best = self.run.progress.tick(val_loss, self._rank(val_loss, metrics))
        if is_best:
            self.run.best = snapshot(self.run.weights)
        rate = self.run.optimizer.param_groups[0]["lr"]
        return EpochReport(number, train_loss, val_loss, metrics, rate, is_best)

    def finish(self, reason: str) -> Fitted:
        """Give the model its best weights and measure them."""
        self.run.model.load_state_dict(self.run.best)
        self.run.average = None
        _, val, _ = self._evaluate(self.split.val)
        _, test, by_target = self._evaluate(self.split.test)
        self.run.model.eval()
        progress = self.run.progress
        return Fitted(progress.best_epoch, progress.epoch, reason, {"val": val, "test": test}, by_target)

    def _reseed(self, epoch: int) -> Tensor:
        """Start the epoch's random numbers; the order of its items, the same in all processes."""
        torch.manual_seed(_mixed(self.seed, epoch, self.fabric.global_rank))
        order = torch.Generator().manual_seed(_mixed(self.seed, epoch))
        return torch.randperm(len(self.split.train), generator=order)

    def _steps(self, items: Tensor) -> Iterator[Step]:
        return self.examples.steps(items, self.recipe.batch_size, self.fabric.global_rank, self.fabric.world_size)

    def _step(self, step: Step) -> Tensor:
        self.module.train()
        for group in self.run.optimizer.param_groups:  # the wrapper would not see groups that a checkpoint brought
            group["lr"] = learning_rate(self.recipe, self.run.step, self.steps_per_epoch)
        self.run.optimizer.zero_grad()
        loss = self.loss(step)
        self.fabric.backward(loss)
        if self.recipe.clip_norm:
            self.fabric.clip_gradients(
                self.module, self.optimizer, max_norm=self.recipe.clip_norm, error_if_nonfinite=False
            )
        self.optimizer.step()
        self.run.step += 1
        if self.run.average:
            self.run.average.update(self.run.model)
        return loss.detach()

    def loss(self, step: Step) -> Tensor:
        """The mean over the known targets of the whole batch; processes average their gradients, hence the factor."""
        output = self.module(step.inputs)[step.rows].float()
        count = self.task.known(step.batch_y).sum().clamp(min=1)
        return self.task.losses(output, step.y).sum() / count * self.fabric.world_size

    @torch.no_grad()
    def _evaluate(self, items: Tensor) -> tuple[float, dict[str, float], dict[str, float]]:
        """Loss, metrics and the metric of every target with the weights that would be kept; all in every process."""
        self.module.eval()
        with _weights_of(self.run):
            steps = self.examples.steps(items, self.recipe.batch_size)
            pairs = [(self.module(step.inputs)[step.rows].float(), step.y) for step in steps]
        output, y = torch.cat([pair[0] for pair in pairs]), torch.cat([pair[1] for pair in pairs])
        loss = self.task.losses(output, y).sum() / self.task.known(y).sum().clamp(min=1)
        predicted = self.task.predicted(output)
        return float(loss), self.task.metrics(predicted, y), self.task.by_target(predicted, y)

    def _rank(self, val_loss: float, metrics: dict[str, float]) -> tuple[float, float]:
        """Larger is better; equal metrics are told apart by their loss."""
        metric = metrics[self.task.metric] if self.task.higher_is_better else -metrics[self.task.metric]
        return (metric, -val_loss) if self.recipe.choose_by == "metric" else (-val_loss, metric)

    def _diverged(self, epoch: int) -> DivergenceError:
        best = self.finish("diverged") if self.run.progress.best_epoch else None
        return DivergenceError(epoch, self.recipe.learning_rate, best)


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """A linear rise, then constant or half a cosine down to zero; `step` counts from 0."""
    warmup = round(recipe.warmup_epochs * steps_per_epoch)
    if step < warmup:
        return recipe.learning_rate * (step + 1) / warmup
    if recipe.decay == "none":
        return recipe.learning_rate
    share = (step - warmup) / max(1, recipe.epochs * steps_per_epoch - warmup)
    return recipe.learning_rate * 0.5 * (1.0 + math.cos(math.pi * min(1.0, share)))


def _mixed(*numbers: int) -> int:
    """One seed from several, by NumPy's seed sequence, which is the same everywhere."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


@contextmanager
def _weights_of(run: Run) -> Iterator[None]:
    """The average in place of the model's weights."""
    if run.average is None:
        yield
        return
    own = snapshot(run.model.state_dict())
    run.model.load_state_dict(run.average.weights)
    try:
        yield
    finally:
        run.model.load_state_dict(own)


@contextmanager
def _random_state_kept(device: torch.device) -> Iterator[None]:
    """Training seeds torch's generators; the caller finds them as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield


@contextmanager
def _explained(recipe: Recipe) -> Iterator[None]:
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
