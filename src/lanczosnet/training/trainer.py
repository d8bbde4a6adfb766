"""The steps and epochs of one run, and the weights of its best epoch.

An epoch is queued first and concluded when its numbers have arrived, so that several runs share a GPU: all of them are
queued, then the host waits once. Whether steps are called or replayed is the executor's business.
"""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lanczosnet.graphs import Split
from lanczosnet.training.averaging import WeightAverage, snapshot
from lanczosnet.training.consistency import disagreement
from lanczosnet.training.engine.devices import evaluation_batch_size
from lanczosnet.training.engine.executor import Executor, can_capture, executor_for
from lanczosnet.training.engine.loaders import Loader, Shapes, Share, Step
from lanczosnet.training.engine.precision import OpaqueInputs, at_least_single, loss_scaler, opaque, use_scaler
from lanczosnet.training.errors import DIVERGED, DivergenceError, TrainingError
from lanczosnet.training.measures import Measures, answers_of, measured, names_of
from lanczosnet.training.metrics import METRICS
from lanczosnet.training.recipes import Recipe
from lanczosnet.training.schedule import StepHyperparameters, consistency_weight, learning_rate, mixed_seed
from lanczosnet.training.state import EpochReport, FitResult, TrainState
from lanczosnet.training.tasks import Task, mean_of_known, with_metric

if TYPE_CHECKING:
    from lightning.fabric import Fabric

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
RESTART = (0, 1)  # beside seed and epoch: zeros alone would be those of the epoch


class Trainer:
    """One run: its fixed parts and its state."""

    def __init__(
        self, model: nn.Module, loader: Loader, split: Split, task: Task, recipe: Recipe, seed: int, fabric: "Fabric"
    ) -> None:
        _check_restarts(model, recipe)
        self.loader, self.split, self.recipe = loader, split, recipe
        self.task = with_metric(task, recipe.choose_by)
        self.seed, self.fabric = seed, fabric
        self.steps_per_epoch = loader.num_steps(len(split.train), recipe.batch_size)
        self.evaluation_batch_size = evaluation_batch_size(recipe.batch_size, fabric.device)
        val = loader.reordered(split.val, self.evaluation_batch_size)  # no metric depends on their order
        self.val, self.val_shapes = val.to(fabric.device), loader.shapes(val, self.evaluation_batch_size)
        self.may_capture = can_capture(loader, fabric, model)
        self.module = fabric.setup_module(OpaqueInputs(model))
        optimizer = _optimizer(model, recipe, fabric.device, capturable=self.may_capture)
        average = WeightAverage(model, recipe.averaging) if recipe.averaging else None
        self.state = TrainState(model, optimizer, average, snapshot(model.state_dict()), scaler=loss_scaler(fabric))
        self.optimizer: Any = fabric.setup_optimizers(optimizer)
        self.executor: Executor | None = None  # chosen at the first epoch: a checkpoint may be restored before

    def queue_epoch(self) -> Generator[None, None, Tensor]:
        """Train on every training item once, then validate: `[training loss, validation loss, metric...]`.

        The generator pauses where other runs may queue a step of theirs.
        """
        if self.executor is None:
            self.executor = executor_for(self)
        epoch = self.state.history.epoch
        if self.recipe.restart_epochs and epoch and epoch % self.recipe.restart_epochs == 0:
            torch.manual_seed(mixed_seed(self.seed, epoch, *RESTART))
            with self.stream:
                self.state.restart()
        self.executor.seed(mixed_seed(self.seed, epoch + 1, self.fabric.global_rank))
        steps = [self._next_hyperparameters() for _ in range(self.steps_per_epoch)]
        return (yield from self.executor.epoch(self.next_order(), steps))

    def conclude_epoch(self, values: Sequence[float]) -> EpochReport:
        """Decide about the epoch by the numbers that were queued."""
        train_loss, val_loss, *measures = values
        if not (math.isfinite(train_loss) and math.isfinite(val_loss)):
            raise self._diverged()
        metrics = dict(zip(self.task.measured, measures, strict=True))
        self._check_defined(metrics[self.task.metric])
        measured = {f"val_{name}": value for name, value in metrics.items()}
        history = self.state.history
        history.note({"train_loss": train_loss, "val_loss": val_loss} | measured)
        is_best = history.tick(val_loss, self._rank(val_loss, metrics))
        if is_best:
            with self.stream:
                self.state.keep_best()
        rate = learning_rate(self.recipe, self.state.step - 1, self.steps_per_epoch)
        return EpochReport(history.epoch, train_loss, val_loss, metrics, rate, is_best)

    def finish(self, reason: str) -> FitResult:
        """Give the model its best weights and measure them."""
        self.state.model.load_state_dict(self.state.best)
        self.state.average = None
        history, task = self.state.history, self.task
        outputs = {"val": self._outputs(self.val, self.val_shapes), "test": self._outputs(self.split.test)}
        names = names_of(task)
        measures = {part: Measures(task, answers_of(task, output, names), y) for part, (output, y) in outputs.items()}
        self.state.model.eval()
        return FitResult(
            best_epoch=history.best_epoch,
            epochs=history.epoch,
            stopped=reason,
            metrics={part: found.mean for part, found in measures.items()},
            by_target={part: found.main for part, found in measures.items()},
            metrics_by_target={part: found.by_target for part, found in measures.items()},
        )

    def release(self) -> None:
        """Give the memory of captured steps back; model and optimizer have theirs."""
        self.executor = None
        self.state.optimizer.zero_grad()  # gradients lie in the memory of a capture
        self.state.unfuse()

    @property
    def stream(self) -> AbstractContextManager[Any]:
        """Queue kernels where this run's are queued."""
        return nullcontext() if self.executor is None else self.executor.stream()

    def steps(self, items: Tensor) -> Iterator[Step]:
        share = Share(self.fabric.global_rank, self.fabric.world_size)
        return self.loader.steps(items, self.recipe.batch_size, share, self.recipe.views)

    def step(self, step: Step, hyperparameters: StepHyperparameters) -> Tensor:
        """Change the weights; the loss before."""
        self.module.train()
        use_scaler(self.fabric, self.state.scaler)
        for group in self.state.optimizer.param_groups:  # the wrapper would not see groups that a checkpoint brought
            _set_learning_rate(group, hyperparameters.learning_rate)
        self.state.optimizer.zero_grad()
        loss = self.loss(step, hyperparameters.consistency)
        self.fabric.backward(loss)
        self._change_weights()
        if self.state.average:
            self.state.average.update(self.state.model, hyperparameters.averaging_share)
        return loss.detach()

    def _change_weights(self) -> None:
        """By their gradients."""
        max_norm = self.recipe.clip_norm
        if self.state.fused:
            self.state.fused.step(max_norm)
            return
        if max_norm:
            self.fabric.clip_gradients(self.module, self.optimizer, max_norm=max_norm, error_if_nonfinite=False)
        self.optimizer.step()

    def output(self, step: Step) -> Tensor:
        """What the network makes of a step's inputs."""
        output: Tensor = self.module(opaque(step.inputs))()
        return output

    def loss(self, step: Step, consistency: float | Tensor = 0.0) -> Tensor:
        """The mean over the known targets of the whole batch; processes average their gradients, hence the factor."""
        passes = [self.output(step) for _ in range(self.recipe.views // step.copies)]
        views = [view for output in passes for view in output.chunk(step.copies)] if step.copies > 1 else passes
        if len(views) == 1 and step.batch_y is step.y and not self.recipe.consistency:
            return self.task.mean_loss(_rows(views[0], step.rows), step.y)
        count = self.task.known(step.batch_y).sum().clamp(min=1) * len(views)
        sums = [self.task.losses(_rows(view, step.rows), step.y).sum() for view in views]
        loss = sum(sums[1:], start=sums[0]) / count * self.fabric.world_size
        if self.recipe.consistency:
            loss = loss + consistency * disagreement(self.task, views, step.batch_y, self.recipe)
        return loss

    def validate(self) -> Tensor:
        """`[loss, metric...]` of the validation items, on the device."""
        output, y = self._outputs(self.val, self.val_shapes)
        loss = mean_of_known(self.task, output, y)
        return torch.cat([loss.double().view(1), measured(self.task, output, y)])

    @torch.no_grad()
    def _outputs(self, items: Tensor, shapes: Shapes | None = None) -> tuple[Tensor, Tensor]:
        """With the weights that would be kept, and with the targets; all of them in every process."""
        self.module.eval()
        with _weights_of(self.state):
            steps = self.loader.steps(items, self.evaluation_batch_size, shapes=shapes)
            pairs = [(_rows(self.output(step), step.rows), step.batch_y) for step in steps]
        output, y = (torch.cat(parts) for parts in zip(*pairs, strict=True))
        return self.loader.of_all(items, output), y

    def next_order(self) -> Tensor:
        """The training items of the next epoch, the same in all processes; in one step their order does not matter."""
        items = self.split.train
        if self.steps_per_epoch > 1:
            generator = torch.Generator().manual_seed(mixed_seed(self.seed, self.state.history.epoch + 1))
            items = items[torch.randperm(len(items), generator=generator)]
        return self.loader.reordered(items, self.recipe.batch_size)

    def _next_hyperparameters(self) -> StepHyperparameters:
        """Those of the next step, which is counted."""
        rate = learning_rate(self.recipe, self.state.step, self.steps_per_epoch)
        self.state.step += 1
        share = self.state.average.next_share() if self.state.average else 0.0
        return StepHyperparameters(
            rate, share, consistency_weight(self.recipe, self.state.step - 1, self.steps_per_epoch)
        )

    def _rank(self, val_loss: float, metrics: dict[str, float]) -> tuple[float, float]:
        """Larger is better; equal metrics are told apart by their loss."""
        name = self.task.metric
        metric = metrics[name] if METRICS[name].higher_is_better else -metrics[name]
        return (-val_loss, metric) if self.recipe.choose_by == "loss" else (metric, -val_loss)

    def _check_defined(self, value: float) -> None:
        if math.isnan(value) and self.recipe.choose_by != "loss":
            raise TrainingError(
                f"{self.task.metric} is not defined on the validation items, as with one class alone: use another "
                "split, or choose_by=loss"
            )

    def _diverged(self) -> DivergenceError:
        best = self.finish(DIVERGED) if self.state.history.best_epoch else None
        return DivergenceError(self.state.history.epoch + 1, self.recipe.learning_rate, best)


def _check_restarts(model: nn.Module, recipe: Recipe) -> None:
    if not recipe.restart_epochs:
        return
    if not hasattr(model, "reset_parameters"):
        kind = type(model).__name__
        raise TrainingError(f"restart_epochs needs a model with reset_parameters(), which {kind} has not")
    if recipe.stop_window or recipe.patience:
        # They would end a run with the start that went wrong.
        raise TrainingError("restart_epochs needs all epochs: set stop_window=0 and patience=0")


def _optimizer(model: nn.Module, recipe: Recipe, device: torch.device, *, capturable: bool) -> torch.optim.Optimizer:
    make, decay = OPTIMIZERS[recipe.optimizer], recipe.weight_decay
    if not capturable:
        return make(model.parameters(), lr=recipe.learning_rate, weight_decay=decay)
    rate = torch.tensor(recipe.learning_rate, device=device)
    return make(model.parameters(), lr=rate, weight_decay=decay, fused=True, capturable=True)


def _set_learning_rate(group: dict[str, Any], rate: float | Tensor) -> None:
    if not isinstance(group["lr"], Tensor):
        group["lr"] = rate
    elif isinstance(rate, Tensor):
        group["lr"].copy_(rate)
    else:
        group["lr"].fill_(rate)


def _rows(output: Tensor, rows: Tensor | None) -> Tensor:
    return at_least_single(output if rows is None else output.index_select(0, rows))  # in which it is added up


@contextmanager
def _weights_of(state: TrainState) -> Iterator[None]:
    """The average in place of the model's weights."""
    if state.average is None:
        yield
        return
    own = snapshot(state.model.state_dict())
    state.model.load_state_dict(state.average.weights)
    try:
        yield
    finally:
        state.model.load_state_dict(own)
