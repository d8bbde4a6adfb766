"""The training loop: epochs of steps, validation after each, the best weights at the end.

All randomness of an epoch comes from the seed and the epoch's number. A resumed run therefore goes on as if it had
never stopped, and only weights, optimizer and history have to be saved.

Several runs of one configuration (the same data, network and recipe, other seeds and splits) share a GPU: each has
its captured step and its stream, and does what it would do alone. On the CPU they run one after the other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import torch
from torch import nn
from torch_geometric.data import Data

from lanczosnet.backends.processes import processes_here
from lanczosnet.graphs import PackedGraphs, Split
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.training.engine.concurrent import free_memory, in_turn, side_by_side, training_on, wait_for
from lanczosnet.training.engine.devices import best_device
from lanczosnet.training.engine.loaders import Loader, loader_for
from lanczosnet.training.engine.shard_loader import ShardLoader
from lanczosnet.training.errors import DivergenceError, TrainingError
from lanczosnet.training.recipes import Recipe
from lanczosnet.training.state import EpochReport, FitResult, History, TrainState
from lanczosnet.training.tasks import Task
from lanczosnet.training.trainer import Trainer

if TYPE_CHECKING:
    from lightning.fabric import Fabric


class Checkpoints(Protocol):
    """Where the state of a run is kept; see `lanczosnet.training.checkpoint`."""

    def restore(self, state: TrainState) -> None: ...

    def keep(self, state: TrainState) -> None: ...


@dataclass(frozen=True)
class Trial:
    """One run: a network with its first weights, a split, and the seed of everything random after that."""

    model: nn.Module
    split: Split
    task: Task
    seed: int
    checkpoints: Checkpoints | None = None


@dataclass(frozen=True)
class Outcome:
    """A run that is over, and its share of the time. A run that diverged has its best epoch before that, if any."""

    fitted: FitResult | None
    seconds: float
    error: DivergenceError | None = None
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)  # losses and metrics after every epoch

    def result(self) -> FitResult:
        """The result; raises the error of a run that diverged."""
        if self.error is not None:
            raise self.error
        assert self.fitted is not None
        return self.fitted


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
) -> FitResult:
    """Train the model; at the end it holds the weights of the epoch that was best on the validation items.

    `seed` orders the graphs and drives dropout; the model's first weights are the caller's. `fabric` says where
    (device, precision, processes, determinism), by default one deterministic process on the best device. On one GPU
    the step is captured as a CUDA graph and replayed, where the model and its data allow it.
    """
    trial = Trial(model, split, task, seed, checkpoints)
    (outcome,) = fit_concurrent([trial], data, recipe, fabric=fabric, on_epoch=lambda place, report: on_epoch(report))
    return outcome.result()


def fit_concurrent(
    trials: Sequence[Trial],
    data: Data | PackedGraphs,
    recipe: Recipe,
    *,
    fabric: "Fabric | None" = None,
    on_epoch: Callable[[int, EpochReport], None] = lambda place, report: None,
    on_end: Callable[[int, Outcome], None] = lambda place, outcome: None,
) -> list[Outcome]:
    """Train all of them; every model ends with the weights of its best epoch, as with `fit`.

    The networks must have equal options: the data are prepared once for all of them. `on_epoch` and `on_end` get the
    trial's place in the list, and the report of its epoch or its outcome.
    """
    if not trials:
        return []
    fabric = fabric or best_device()
    with training_on(fabric, _memory_advice(data, recipe, len(trials))):
        outcomes = _EpochLoop(trials, data, recipe, fabric, on_epoch, on_end).run()
    free_memory(fabric.device)
    return outcomes


class _EpochLoop:
    """The epochs of all runs, and when each of them ends."""

    def __init__(
        self,
        trials: Sequence[Trial],
        data: Data | PackedGraphs,
        recipe: Recipe,
        fabric: "Fabric",
        on_epoch: Callable[[int, EpochReport], None],
        on_end: Callable[[int, Outcome], None],
    ) -> None:
        begin = perf_counter()
        for trial in trials:
            fabric._precision.convert_module(trial.model.to(fabric.device))  # first: data are prepared in its type
        loader = _loader(trials[0].model, data, fabric, recipe)
        self.trials, self.fabric, self.on_epoch, self.on_end = trials, fabric, on_epoch, on_end
        self.trainers = [Trainer(t.model, loader, t.split, t.task, recipe, t.seed, fabric) for t in trials]
        self.outcomes: dict[int, Outcome] = {}
        self._charged = perf_counter()  # all time until then is some run's
        self._preparation = (self._charged - begin) / len(trials)

    def run(self) -> list[Outcome]:
        every = list(range(len(self.trials)))
        try:
            for places in [every] if side_by_side(self.fabric) else [[place] for place in every]:
                self._train(places)
        finally:
            wait_for(self.fabric.device)
            for trainer in self.trainers:
                trainer.release()
        return [self.outcomes[place] for place in every]

    def _train(self, places: Sequence[int]) -> None:
        """All epochs of these runs, in step."""
        for place in places:
            checkpoints = self.trials[place].checkpoints
            if checkpoints:
                checkpoints.restore(self.trainers[place].state)
            self._history(place).seconds += self._preparation
        while running := self._still_running(places):
            reports = advance([self.trainers[place] for place in running])
            self._charge(running)
            for place, report in zip(running, reports, strict=True):
                self._note(place, report)

    def _still_running(self, places: Sequence[int]) -> list[int]:
        running = []
        for place in places:
            if place in self.outcomes:
                continue
            trainer, history = self.trainers[place], self._history(place)
            reason = history.reason_to_stop(trainer.recipe) if history.epoch else None
            if reason is None:
                running.append(place)
            else:
                fitted = trainer.finish(reason)
                self._charge([place])
                self._end(place, Outcome(fitted, history.seconds, curves=history.curves))
        return running

    def _note(self, place: int, report: EpochReport | DivergenceError) -> None:
        if isinstance(report, DivergenceError):
            self._end(place, Outcome(report.best, self._history(place).seconds, report))
            return
        self.on_epoch(place, report)
        checkpoints = self.trials[place].checkpoints
        if checkpoints and self.fabric.is_global_zero:
            checkpoints.keep(self.trainers[place].state)

    def _end(self, place: int, outcome: Outcome) -> None:
        self.trainers[place].release()
        self.outcomes[place] = outcome
        self.on_end(place, outcome)

    def _history(self, place: int) -> History:
        return self.trainers[place].state.history

    def _charge(self, places: Sequence[int]) -> None:
        """The time since the last charge is theirs."""
        now = perf_counter()
        for place in places:
            self._history(place).seconds += (now - self._charged) / len(places)
        self._charged = now


def _loader(model: nn.Module, data: Data | PackedGraphs, fabric: "Fabric", recipe: Recipe) -> Loader:
    """Many processes share one stored graph out; of other data each has all."""
    host_features = getattr(fabric, "host_features", None)
    if fabric.world_size > 1 and isinstance(data, StoredGraph):
        if host_features:
            raise TrainingError("processes that share a graph have its features on the device: leave host_features out")
        return ShardLoader(model, data, fabric.device, processes_here())
    return loader_for(model, data, fabric.device, recipe.views, host_features)


def advance(trainers: Sequence[Trainer]) -> list[EpochReport | DivergenceError]:
    """One epoch of each; on a GPU all are queued before the host waits for any."""
    queued = in_turn([trainer.queue_epoch() for trainer in trainers])
    for trainer in trainers:
        with trainer.stream:
            pass  # from here on the current stream has waited for the trainer's
    return [_concluded(*each) for each in zip(trainers, torch.stack(queued).tolist(), strict=True)]


def _concluded(trainer: Trainer, values: list[float]) -> EpochReport | DivergenceError:
    try:
        return trainer.conclude_epoch(values)
    except DivergenceError as error:
        return error


def _memory_advice(data: Data | PackedGraphs, recipe: Recipe, num_runs: int) -> str:
    if isinstance(data, PackedGraphs):
        size = recipe.batch_size
        return f"out of memory with batches of {size}: try batch_size={max(1, size // 2)}"
    return "out of memory: try one run at a time" if num_runs > 1 else "out of memory: try fewer num_steps"
