"""Several runs of one configuration at once: the same data, network and recipe, different seeds and splits.

On a GPU every run has its recorded step and its stream, and the runs of small networks fill the device side by side;
each does what it would do alone. On the CPU they run one after the other.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lanczosnet.graphs import PackedGraphs, Split
from lanczosnet.training.engine.devices import best_device, order_of, products_of
from lanczosnet.training.engine.loaders import examples_of
from lanczosnet.training.errors import DivergenceError, TrainingError
from lanczosnet.training.recipes import Recipe
from lanczosnet.training.state import EpochReport, Fitted, Progress, Run
from lanczosnet.training.tasks import Task
from lanczosnet.training.trainer import Trainer

if TYPE_CHECKING:
    from lightning.fabric import Fabric


class Checkpoints(Protocol):
    """Where a run is kept; see `lanczosnet.training.checkpoint`."""

    def restore(self, run: Run) -> None: ...

    def keep(self, run: Run) -> None: ...


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
    """A run that is over, and its share of the time. One that diverged has what was best before, if anything was."""

    fitted: Fitted | None
    seconds: float
    error: DivergenceError | None = None
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)  # losses and metrics after every epoch


def fit_together(
    trials: Sequence[Trial],
    data: Data | PackedGraphs,
    recipe: Recipe,
    *,
    fabric: "Fabric | None" = None,
    on_epoch: Callable[[int, EpochReport], None] = lambda place, report: None,
    on_end: Callable[[int, Outcome], None] = lambda place, outcome: None,
) -> list[Outcome]:
    """Train all of them; every model ends with the weights of its best epoch, as with `fit`.

    The networks must have equal options: what can be prepared of the data is prepared for all of them at once.
    `on_epoch` and `on_end` hear of the trial's place in the list, and of its epoch or its end.
    """
    if not trials:
        return []
    fabric = fabric or best_device()
    advice = _advice(data, recipe, len(trials))
    with _explained(advice), _random_state_kept(fabric.device), order_of(fabric), products_of(fabric):
        begin = perf_counter()
        for trial in trials:
            trial.model.to(fabric.device)
        examples = examples_of(trials[0].model, data, fabric.device, recipe.views)
        trainers = [Trainer(t.model, examples, t.split, t.task, recipe, t.seed, fabric) for t in trials]
        group = _Group(trials, trainers, begin, on_epoch, on_end)
        try:
            every = list(range(len(trials)))
            for places in [every] if _side_by_side(fabric) else [[place] for place in every]:
                group.train(places)
        finally:
            if fabric.device.type == "cuda":
                # An error leaves steps of other runs on their way: their memory must not serve anyone else yet.
                torch.cuda.synchronize(fabric.device)
            for trainer in trainers:
                trainer.release()
        outcomes = [group.outcomes[place] for place in range(len(trials))]
    if fabric.device.type == "cuda":
        del trainers, group
        # What recordings held can serve nothing else before it is given back.
        torch.cuda.empty_cache()
    return outcomes


def _side_by_side(fabric: "Fabric") -> bool:
    return fabric.device.type == "cuda"


class _Group:
    """Runs that share a device, and when each of them ended."""

    def __init__(
        self,
        trials: Sequence[Trial],
        trainers: Sequence[Trainer],
        begin: float,
        on_epoch: Callable[[int, EpochReport], None],
        on_end: Callable[[int, Outcome], None],
    ) -> None:
        self.trials, self.trainers = trials, trainers
        self.on_epoch, self.on_end = on_epoch, on_end
        self.outcomes: dict[int, Outcome] = {}
        self._charged = perf_counter()  # until when all time is some run's
        self._preparation = (self._charged - begin) / len(trials)

    def train(self, places: Sequence[int]) -> None:
        """All epochs of these, in step."""
        for place in places:
            checkpoints = self.trials[place].checkpoints
            if checkpoints:
                checkpoints.restore(self.trainers[place].run)
            self._progress(place).seconds += self._preparation
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
            trainer, progress = self.trainers[place], self._progress(place)
            reason = progress.reason_to_stop(trainer.recipe) if progress.epoch else None
            if reason is None:
                running.append(place)
            else:
                fitted = trainer.finish(reason)
                self._charge([place])
                self._end(place, Outcome(fitted, progress.seconds, curves=progress.curves))
        return running

    def _note(self, place: int, report: EpochReport | DivergenceError) -> None:
        if isinstance(report, DivergenceError):
            self._end(place, Outcome(report.best, self._progress(place).seconds, report))
            return
        self.on_epoch(place, report)
        checkpoints = self.trials[place].checkpoints
        if checkpoints and self.trainers[place].fabric.is_global_zero:
            checkpoints.keep(self.trainers[place].run)

    def _end(self, place: int, outcome: Outcome) -> None:
        self.trainers[place].release()
        self.outcomes[place] = outcome
        self.on_end(place, outcome)

    def _progress(self, place: int) -> Progress:
        return self.trainers[place].run.progress

    def _charge(self, places: Sequence[int]) -> None:
        """The time since the last charge is theirs."""
        now = perf_counter()
        for place in places:
            self._progress(place).seconds += (now - self._charged) / len(places)
        self._charged = now


def advance(trainers: Sequence[Trainer]) -> list[EpochReport | DivergenceError]:
    """One epoch of each; on a GPU all are queued before the host waits for any."""
    queued = in_turn([trainer.queue_epoch() for trainer in trainers])
    for trainer in trainers:
        with trainer.place:
            pass  # from here on the current stream has waited for the trainer's
    return [_concluded(*each) for each in zip(trainers, torch.stack(queued).tolist(), strict=True)]


def in_turn(epochs: Sequence[Generator[None, None, Tensor]]) -> list[Tensor]:
    """What all of them return, one step of each queued after the other: streams that are filled one by one would run
    one by one."""
    results: dict[int, Tensor] = {}
    while len(results) < len(epochs):
        for place, epoch in enumerate(epochs):
            if place not in results:
                try:
                    next(epoch)
                except StopIteration as end:
                    results[place] = end.value
    return [results[place] for place in range(len(epochs))]


def _concluded(trainer: Trainer, values: list[float]) -> EpochReport | DivergenceError:
    try:
        return trainer.conclude_epoch(values)
    except DivergenceError as error:
        return error


@contextmanager
def _random_state_kept(device: torch.device) -> Iterator[None]:
    """Training seeds torch's generators; the caller finds them as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield


def _advice(data: Data | PackedGraphs, recipe: Recipe, num_runs: int) -> str:
    """What to do where memory is short."""
    if isinstance(data, PackedGraphs):
        size = recipe.batch_size
        return f"out of memory with batches of {size}: try batch_size={max(1, size // 2)}"
    return "out of memory: try one run at a time" if num_runs > 1 else "out of memory: try fewer num_steps"


def _speaks_of_memory(error: Exception) -> bool:
    return any(words in str(error) for words in ("can't allocate memory", "CUDA error: out of memory"))


@contextmanager
def _explained(advice: str) -> Iterator[None]:
    """Out of memory becomes a message that says what to do."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not isinstance(error, torch.OutOfMemoryError | MemoryError) and not _speaks_of_memory(error):
            raise
        raise TrainingError(f"{advice}, a smaller hidden_channels, or another device") from error
