"""Executors of an epoch's steps: eager calls, or CUDA graphs captured once and replayed."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from lanczosnet.training.engine.cuda_graph import CapturedGraph, PrivateGenerator, restored, synchronizes
from lanczosnet.training.schedule import StepHyperparameters

if TYPE_CHECKING:
    from lightning.fabric import Fabric

    from lanczosnet.training.engine.loaders import Loader
    from lanczosnet.training.trainer import Trainer


class Executor(Protocol):
    """Runs the steps of an epoch."""

    def seed(self, number: int) -> None: ...

    def epoch(self, items: Tensor, steps: Sequence[StepHyperparameters]) -> Generator[None, None, Tensor]:
        """Return the losses and metrics of an epoch; pause wherever another run's step may be queued."""

    def stream(self) -> AbstractContextManager[Any]:
        """Queue kernels where this run's are queued."""


def can_capture(loader: "Loader", fabric: "Fabric", model: nn.Module) -> bool:
    """Whether steps of this network on this data may be captured here."""
    is_scaled = fabric._precision.precision == "16-mixed"  # whose scale the host adapts after every step
    # For the second forward pass the host reads the state of the random numbers.
    waits = is_scaled or getattr(model, "checkpoint_activations", False)
    return loader.is_fixed and fabric.device.type == "cuda" and fabric.world_size == 1 and not waits


def executor_for(trainer: "Trainer") -> Executor:
    """CUDA graphs where the steps can be captured, else eager calls."""
    if trainer.may_capture:
        executor = CudaGraphExecutor(trainer)
        if executor.is_captured:
            return executor
        trainer.release()
    return EagerExecutor(trainer)


class EagerExecutor:
    """Calls every step. Its random numbers are the process' own, so it does not pause between steps."""

    def __init__(self, trainer: "Trainer") -> None:
        self.trainer = trainer

    def seed(self, number: int) -> None:
        torch.manual_seed(number)

    def stream(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def epoch(self, items: Tensor, steps: Sequence[StepHyperparameters]) -> Generator[None, None, Tensor]:
        trainer = self.trainer
        losses = [trainer.step(*each) for each in zip(trainer.steps(items), steps, strict=True)]
        mean = trainer.fabric.all_reduce(torch.stack(losses).mean(), reduce_op="mean")
        assert isinstance(mean, Tensor)
        values = torch.cat([mean.double().view(1), trainer.validate()])
        yield
        return values


StepShape = tuple[int, Any]  # how many items, and what `Loader.shapes` says of them


class CudaGraphExecutor:
    """Captures a step once for each shape of a batch, and replays it.

    A step looks up its items and hyperparameters on the device by its number, which it then raises itself.
    """

    def __init__(self, trainer: "Trainer") -> None:
        self.trainer = trainer
        device = trainer.fabric.device
        _make_capturable(trainer.state.optimizer, device)
        trainer.state.fuse()
        self.queue = torch.cuda.Stream(device)
        self.random = PrivateGenerator(device)
        self.number = torch.zeros(1, dtype=torch.long, device=device)
        order = trainer.next_order()
        self.items = order.to(device, copy=True)
        self.hyperparameters = torch.zeros(trainer.steps_per_epoch, len(StepHyperparameters._fields), device=device)
        self.copied: list[StepHyperparameters] = []  # what `hyperparameters` holds
        self.losses = torch.zeros(trainer.steps_per_epoch, device=device)
        num_items = len(self.items)
        size = num_items if trainer.steps_per_epoch == 1 else trainer.recipe.batch_size
        self.sizes = [min(size, num_items - begin) for begin in range(0, num_items, size)]
        self.offsets = torch.arange(self.sizes[0], device=device)
        self.graphs: dict[StepShape, CapturedGraph] = {}
        self.is_captured = self._capture(order)

    def seed(self, number: int) -> None:
        self.number_of_seed = number
        self.random.seed(number)

    @contextmanager
    def stream(self) -> Iterator[None]:
        self.queue.wait_stream(torch.cuda.current_stream(self.queue.device))
        with torch.cuda.stream(self.queue):
            yield
        torch.cuda.current_stream(self.queue.device).wait_stream(self.queue)

    def epoch(self, items: Tensor, steps: Sequence[StepHyperparameters]) -> Generator[None, None, Tensor]:
        shapes = self._shapes(items)
        if any(shape not in self.graphs for shape in shapes):
            self._capture(items)
            self.random.seed(self.number_of_seed)
        # Not `stream`: the caller's stream must not wait yet, or runs would queue up behind each other.
        self.queue.wait_stream(torch.cuda.current_stream(self.queue.device))
        with torch.cuda.stream(self.queue):
            if len(self.sizes) > 1:
                self.items.copy_(items)
            if self.copied != steps:
                self.hyperparameters.copy_(torch.tensor(steps))
                self.copied = list(steps)
            self.number.zero_()
        for graph in [*(self.graphs[shape] for shape in shapes), self.validation]:
            with torch.cuda.stream(self.queue):
                graph.replay()
            yield
        return self.values

    def _shapes(self, items: Tensor) -> list[StepShape]:
        """Of every step of an epoch on these items."""
        return list(zip(self.sizes, self.trainer.loader.shapes(items, self.sizes[0]), strict=True))

    def _capture(self, items: Tensor) -> bool:
        """Capture the steps of an epoch on these items that are new; False if a step synchronizes with the host."""
        batches = dict(zip(self._shapes(items), items.split(self.sizes[0]), strict=True))
        new = [shape for shape in batches if shape not in self.graphs]
        is_first = not self.graphs
        with self._restored(), self.random.in_use():
            self.random.seed(0)
            self.hyperparameters.zero_()
            self.copied = []
            for shape in new:
                self.items[: len(batches[shape])].copy_(batches[shape])  # which have this shape
                self.number.zero_()
                self._step(shape)  # libraries set themselves up, and constants are copied, in the first call
                self.number.zero_()
                if synchronizes(lambda shape=shape: self._step(shape)):  # type: ignore[misc]
                    return False
            if is_first:
                self._validate()
                if synchronizes(self._validate):
                    return False
            for shape in new:
                self.graphs[shape] = CapturedGraph(lambda shape=shape: self._step(shape))  # type: ignore[misc]
            if is_first:
                self.validation = CapturedGraph(self._validate)
        return True

    def _step(self, shape: StepShape) -> None:
        trainer, (size, width) = self.trainer, shape
        items = self.items.index_select(0, self.number * self.sizes[0] + self.offsets[:size])
        hyperparameters = StepHyperparameters(*self.hyperparameters.index_select(0, self.number).squeeze(0))
        loss = trainer.step(trainer.loader.step(items, width, trainer.recipe.views), hyperparameters)
        self.losses.index_copy_(0, self.number, loss.float().view(1))
        self.number += 1

    def _validate(self) -> None:
        self.values = torch.cat([self.losses.double().mean().view(1), self.trainer.validate()])

    @contextmanager
    def _restored(self) -> Iterator[None]:
        """Undo what trial steps do to weights and optimizer."""
        state = self.trainer.state
        slots = state.optimizer.state
        is_new = not slots
        tensors = [*state.model.state_dict().values(), *(state.average.weights.values() if state.average else ())]
        tensors += [tensor for slot in slots.values() for tensor in slot.values()]
        with self.stream(), restored(tensors):
            yield
            if is_new:
                for slot in slots.values():
                    for tensor in slot.values():
                        tensor.zero_()
            torch.cuda.current_stream(self.queue.device).synchronize()


def _make_capturable(optimizer: torch.optim.Optimizer, device: torch.device) -> None:
    """Again, after a checkpoint: it holds numbers where tensors are needed, and may come from another device."""
    for group in optimizer.param_groups:
        group["lr"] = torch.as_tensor(group["lr"], device=device)
        group["fused"], group["capturable"], group["foreach"] = True, True, None
    for state in optimizer.state.values():
        state["step"] = state["step"].to(device)
