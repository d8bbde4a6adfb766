"""One run: its steps, its epochs, and the weights of the best of them.

An epoch is queued first and concluded when its numbers have arrived, so that several runs share a GPU: all of them are
queued, then the host waits once. Nothing here knows whether steps are called (`Called`) or replayed (`Replayed`).
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from lanczosnet.graphs import Split
from lanczosnet.training.averaging import WeightAverage, snapshot
from lanczosnet.training.consistency import disagreement
from lanczosnet.training.errors import DivergenceError
from lanczosnet.training.examples import Examples, Step
from lanczosnet.training.recipes import Recipe
from lanczosnet.training.recording import OwnRandomNumbers, Recording, kept, waits_for_the_host
from lanczosnet.training.tasks import Task

if TYPE_CHECKING:
    from lightning.fabric import Fabric

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
EVALUATED_AT_ONCE = 1024  # graphs, on a GPU, where small batches leave most of it idle


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

    @torch.no_grad()
    def keep_best(self) -> None:
        weights = self.weights
        torch._foreach_copy_(list(self.best.values()), [weights[name] for name in self.best])


class Dials(NamedTuple):
    """The numbers of a recipe that change from step to step."""

    rate: float | Tensor  # of learning
    share: float | Tensor  # of the new weights in their average
    consistency: float | Tensor = 0.0  # weight of the views' disagreement


class Trainer:
    """One run: what stays the same beside what changes."""

    def __init__(
        self,
        model: nn.Module,
        examples: Examples,
        split: Split,
        task: Task,
        recipe: Recipe,
        seed: int,
        fabric: "Fabric",
    ) -> None:
        self.examples, self.split, self.task, self.recipe = examples, split, task, recipe
        self.seed, self.fabric = seed, fabric
        self.steps_per_epoch = examples.num_steps(len(split.train), recipe.batch_size)
        self.val = split.val.to(fabric.device)
        self.may_replay = _may_replay(examples, fabric)
        optimizer = _optimizer(model, recipe, fabric.device, for_replay=self.may_replay)
        average = WeightAverage(model, recipe.averaging) if recipe.averaging else None
        self.run = Run(model, optimizer, average, snapshot(model.state_dict()))
        self.module = fabric.setup_module(model)
        self.optimizer: Any = fabric.setup_optimizers(optimizer)
        self.way: Way | None = None  # chosen at the first epoch: a checkpoint may be restored before

    def queue_epoch(self) -> Tensor:
        """Train on every training item once, then validate: `[training loss, validation loss, metric...]`."""
        if self.way is None:
            self.way = Replayed(self) if self.may_replay else Called(self)
            if isinstance(self.way, Replayed) and not self.way.is_possible:
                self.way = Called(self)
        number = self.run.progress.epoch + 1
        self.way.seed(mixed_seed(self.seed, number, self.fabric.global_rank))
        return self.way.epoch(self._order(number), [self._dials() for _ in range(self.steps_per_epoch)])

    def conclude_epoch(self, values: Sequence[float]) -> EpochReport:
        """Decide about the epoch by the numbers that were queued."""
        train_loss, val_loss, *measures = values
        if not (math.isfinite(train_loss) and math.isfinite(val_loss)):
            raise self._diverged()
        metrics = dict(zip(self.task.measured, measures, strict=True))
        is_best = self.run.progress.tick(val_loss, self._rank(val_loss, metrics))
        if is_best:
            with self.place:
                self.run.keep_best()
        rate = learning_rate(self.recipe, self.run.step - 1, self.steps_per_epoch)
        return EpochReport(self.run.progress.epoch, train_loss, val_loss, metrics, rate, is_best)

    def finish(self, reason: str) -> Fitted:
        """Give the model its best weights and measure them."""
        self.run.model.load_state_dict(self.run.best)
        self.run.average = None
        progress, task = self.run.progress, self.task
        (val_output, val_y), (output, y) = self._outputs(self.val), self._outputs(self.split.test)
        metrics = {
            "val": task.metrics(task.predicted(val_output), val_y),
            "test": task.metrics(task.predicted(output), y),
        }
        self.run.model.eval()
        return Fitted(progress.best_epoch, progress.epoch, reason, metrics, task.by_target(task.predicted(output), y))

    def release(self) -> None:
        """Give the memory of recorded steps back."""
        self.way = None

    @property
    def place(self) -> AbstractContextManager[Any]:
        """Where this run's kernels are queued."""
        return nullcontext() if self.way is None else self.way.place()

    def steps(self, items: Tensor) -> Iterator[Step]:
        return self.examples.steps(items, self.recipe.batch_size, self.fabric.global_rank, self.fabric.world_size)

    def step(self, step: Step, dials: Dials) -> Tensor:
        """Change the weights; the loss before."""
        self.module.train()
        for group in self.run.optimizer.param_groups:  # the wrapper would not see groups that a checkpoint brought
            _turn(group, dials.rate)
        self.run.optimizer.zero_grad()
        loss = self.loss(step, dials.consistency)
        self.fabric.backward(loss)
        if self.recipe.clip_norm:
            self.fabric.clip_gradients(
                self.module, self.optimizer, max_norm=self.recipe.clip_norm, error_if_nonfinite=False
            )
        self.optimizer.step()
        if self.run.average:
            self.run.average.update(self.run.model, dials.share)
        return loss.detach()

    def loss(self, step: Step, consistency: float | Tensor = 0.0) -> Tensor:
        """The mean over the known targets of the whole batch; processes average their gradients, hence the factor."""
        views = [self.module(step.inputs) for _ in range(self.recipe.views)]
        count = self.task.known(step.batch_y).sum().clamp(min=1) * len(views)
        sums = [self.task.losses(_rows(view, step.rows), step.y).sum() for view in views]
        loss = sum(sums[1:], start=sums[0]) / count * self.fabric.world_size
        if self.recipe.consistency:
            loss = loss + consistency * disagreement(self.task, views, self.recipe)
        return loss

    def validate(self) -> Tensor:
        """`[loss, metric...]` of the validation items, on the device."""
        output, y = self._outputs(self.val)
        loss = self.task.losses(output, y).sum() / self.task.known(y).sum().clamp(min=1)
        return torch.cat([loss.double().view(1), self.task.measures(self.task.predicted(output), y)])

    @torch.no_grad()
    def _outputs(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """With the weights that would be kept, and with the targets; all of them in every process."""
        self.module.eval()
        size = self.recipe.batch_size
        if self.fabric.device.type == "cuda":
            size = max(size, EVALUATED_AT_ONCE)
        with _weights_of(self.run):
            steps = self.examples.steps(items, size)
            pairs = [(_rows(self.module(step.inputs), step.rows), step.y) for step in steps]
        return torch.cat([pair[0] for pair in pairs]), torch.cat([pair[1] for pair in pairs])

    def _order(self, epoch: int) -> Tensor:
        """The training items of an epoch, the same in all processes; in one step their order does not matter."""
        items = self.split.train
        if self.steps_per_epoch == 1:
            return items
        generator = torch.Generator().manual_seed(mixed_seed(self.seed, epoch))
        return items[torch.randperm(len(items), generator=generator)]

    def _dials(self) -> Dials:
        """Those of the next step, which is counted."""
        rate = learning_rate(self.recipe, self.run.step, self.steps_per_epoch)
        self.run.step += 1
        share = self.run.average.next_share() if self.run.average else 0.0
        return Dials(rate, share, consistency_weight(self.recipe, self.run.step - 1, self.steps_per_epoch))

    def _rank(self, val_loss: float, metrics: dict[str, float]) -> tuple[float, float]:
        """Larger is better; equal metrics are told apart by their loss."""
        metric = metrics[self.task.metric] if self.task.higher_is_better else -metrics[self.task.metric]
        return (metric, -val_loss) if self.recipe.choose_by == "metric" else (-val_loss, metric)

    def _diverged(self) -> DivergenceError:
        best = self.finish("diverged") if self.run.progress.best_epoch else None
        return DivergenceError(self.run.progress.epoch + 1, self.recipe.learning_rate, best)


class Way(Protocol):
    """How the steps of an epoch come about."""

    def seed(self, number: int) -> None: ...

    def epoch(self, items: Tensor, dials: Sequence[Dials]) -> Tensor: ...

    def place(self) -> AbstractContextManager[Any]: ...


class Called:
    """Every step is a call."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer

    def seed(self, number: int) -> None:
        torch.manual_seed(number)

    def place(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def epoch(self, items: Tensor, dials: Sequence[Dials]) -> Tensor:
        trainer = self.trainer
        losses = [trainer.step(*each) for each in zip(trainer.steps(items), dials, strict=True)]
        mean = trainer.fabric.all_reduce(torch.stack(losses).mean(), reduce_op="mean")
        assert isinstance(mean, Tensor)
        return torch.cat([mean.double().view(1), trainer.validate()])


class Replayed:
    """The kernels of a step are recorded once for each size of a batch. Which items it takes, and its dials, it looks
    up on the device by the number of the step, which it then raises itself."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        device = trainer.fabric.device
        _make_replayable(trainer.run.optimizer, device)
        self.stream = torch.cuda.Stream(device)
        self.random = OwnRandomNumbers(device)
        self.number = torch.zeros(1, dtype=torch.long, device=device)
        self.items = trainer.split.train.to(device)
        self.dials = torch.zeros(trainer.steps_per_epoch, len(Dials._fields), device=device)
        self.turned: list[Dials] = []  # what `dials` holds
        self.losses = torch.zeros(trainer.steps_per_epoch, device=device)
        num_items = len(self.items)
        size = num_items if trainer.steps_per_epoch == 1 else trainer.recipe.batch_size
        self.sizes = [min(size, num_items - begin) for begin in range(0, num_items, size)]
        self.steps = {size: torch.arange(size, device=device) for size in sorted(set(self.sizes))}
        self.recordings: dict[int, Recording] = {}
        self.is_possible = self._record()

    def seed(self, number: int) -> None:
        self.random.seed(number)

    @contextmanager
    def place(self) -> Iterator[None]:
        self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        with torch.cuda.stream(self.stream):
            yield
        torch.cuda.current_stream(self.stream.device).wait_stream(self.stream)

    def epoch(self, items: Tensor, dials: Sequence[Dials]) -> Tensor:
        # Not `place`: the caller's stream must not wait yet, or runs would queue up behind each other.
        self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        with torch.cuda.stream(self.stream):
            if len(self.sizes) > 1:
                self.items.copy_(items)
            if self.turned != dials:
                self.dials.copy_(torch.tensor(dials))
                self.turned = list(dials)
            self.number.zero_()
            for size in self.sizes:
                self.recordings[size].replay()
            self.validation.replay()
        return self.values

    def _record(self) -> bool:
        """Whether it could be: a step that waits for the host cannot."""
        with self._unchanged(), self.random.in_use():
            self.random.seed(0)
            self.dials.zero_()
            for size in self.steps:
                self.number.zero_()
                self._step(size)  # libraries set themselves up, and constants are copied, in the first call
                self.number.zero_()
                if waits_for_the_host(lambda size=size: self._step(size)):  # type: ignore[misc]
                    return False
            self._validate()
            if waits_for_the_host(self._validate):
                return False
            for size in self.steps:
                self.recordings[size] = Recording(lambda size=size: self._step(size))  # type: ignore[misc]
            self.validation = Recording(self._validate)
        return True

    def _step(self, size: int) -> None:
        trainer = self.trainer
        items = self.items.index_select(0, self.number * self.sizes[0] + self.steps[size])
        dials = Dials(*self.dials.index_select(0, self.number).squeeze(0))
        loss = trainer.step(trainer.examples.step(items), dials)
        self.losses.index_copy_(0, self.number, loss.float().view(1))
        self.number += 1

    def _validate(self) -> None:
        self.values = torch.cat([self.losses.double().mean().view(1), self.trainer.validate()])

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """What trial steps do to weights and optimizer is undone."""
        run = self.trainer.run
        states = run.optimizer.state
        is_new = not states
        tensors = [*run.model.state_dict().values(), *(run.average.weights.values() if run.average else ())]
        tensors += [tensor for state in states.values() for tensor in state.values()]
        with self.place(), kept(tensors):
            yield
            if is_new:
                for state in states.values():
                    for tensor in state.values():
                        tensor.zero_()
            torch.cuda.current_stream(self.stream.device).synchronize()


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """A linear rise, then constant or half a cosine down to zero; `step` counts from 0."""
    warmup = round(recipe.warmup_epochs * steps_per_epoch)
    if step < warmup:
        return recipe.learning_rate * (step + 1) / warmup
    if recipe.decay == "none":
        return recipe.learning_rate
    share = (step - warmup) / max(1, recipe.epochs * steps_per_epoch - warmup)
    return recipe.learning_rate * 0.5 * (1.0 + math.cos(math.pi * min(1.0, share)))


def consistency_weight(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """A linear rise, then constant; `step` counts from 0."""
    warmup = round(recipe.consistency_warmup_epochs * steps_per_epoch)
    return recipe.consistency * (min(1.0, (step + 1) / warmup) if warmup else 1.0)


def mixed_seed(*numbers: int) -> int:
    """One seed from several, by NumPy's seed sequence, which is the same everywhere."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def _may_replay(examples: Examples, fabric: "Fabric") -> bool:
    is_scaled = fabric._precision.precision == "16-mixed"  # whose scale the host adapts after every step
    return examples.is_fixed and fabric.device.type == "cuda" and fabric.world_size == 1 and not is_scaled


def _optimizer(model: nn.Module, recipe: Recipe, device: torch.device, *, for_replay: bool) -> torch.optim.Optimizer:
    make, decay = OPTIMIZERS[recipe.optimizer], recipe.weight_decay
    if not for_replay:
        return make(model.parameters(), lr=recipe.learning_rate, weight_decay=decay)
    rate = torch.tensor(recipe.learning_rate, device=device)
    return make(model.parameters(), lr=rate, weight_decay=decay, fused=True, capturable=True)


def _make_replayable(optimizer: torch.optim.Optimizer, device: torch.device) -> None:
    """Again, after a checkpoint: it holds numbers where tensors are needed, and may come from another device."""
    for group in optimizer.param_groups:
        group["lr"] = torch.as_tensor(group["lr"], device=device)
        group["fused"], group["capturable"], group["foreach"] = True, True, None
    for state in optimizer.state.values():
        state["step"] = state["step"].to(device)


def _turn(group: dict[str, Any], rate: float | Tensor) -> None:
    if not isinstance(group["lr"], Tensor):
        group["lr"] = rate
    elif isinstance(rate, Tensor):
        group["lr"].copy_(rate)
    else:
        group["lr"].fill_(rate)


def _rows(output: Tensor, rows: Tensor | slice) -> Tensor:
    return (output[rows] if isinstance(rows, slice) else output.index_select(0, rows)).float()


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
