"""How the steps of an epoch come about: every one is called, or their kernels are recorded once and replayed."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from lanczosnet.training.engine.cuda_graph import OwnRandomNumbers, Recording, kept, waits_for_the_host
from lanczosnet.training.schedule import Dials

if TYPE_CHECKING:
    from lanczosnet.training.trainer import Trainer


class Way(Protocol):
    """How the steps of an epoch come about."""

    def seed(self, number: int) -> None: ...

    def epoch(self, items: Tensor, dials: Sequence[Dials]) -> Generator[None, None, Tensor]:
        """The losses and metrics of an epoch, with a pause wherever another run's step may be queued."""

    def place(self) -> AbstractContextManager[Any]: ...


class Called:
    """Every step is a call. Its random numbers are the process' own, so there is no pause between them."""

    def __init__(self, trainer: "Trainer") -> None:
        self.trainer = trainer

    def seed(self, number: int) -> None:
        torch.manual_seed(number)

    def place(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def epoch(self, items: Tensor, dials: Sequence[Dials]) -> Generator[None, None, Tensor]:
        trainer = self.trainer
        losses = [trainer.step(*each) for each in zip(trainer.steps(items), dials, strict=True)]
        mean = trainer.fabric.all_reduce(torch.stack(losses).mean(), reduce_op="mean")
        assert isinstance(mean, Tensor)
        values = torch.cat([mean.double().view(1), trainer.validate()])
        yield
        return values


StepShape = tuple[int, int | None]  # how many items, and what `Examples.shapes` says of them


class Replayed:
    """The kernels of a step are recorded once for each shape of a batch. Which items it takes, and its dials, it looks
    up on the device by the number of the step, which it then raises itself."""

    def __init__(self, trainer: "Trainer") -> None:
        self.trainer = trainer
        device = trainer.fabric.device
        _make_replayable(trainer.run.optimizer, device)
        trainer.run.flatten()
        self.stream = torch.cuda.Stream(device)
        self.random = OwnRandomNumbers(device)
        self.number = torch.zeros(1, dtype=torch.long, device=device)
        order = trainer.next_order()
        self.items = order.to(device, copy=True)
        self.dials = torch.zeros(trainer.steps_per_epoch, len(Dials._fields), device=device)
        self.turned: list[Dials] = []  # what `dials` holds
        self.losses = torch.zeros(trainer.steps_per_epoch, device=device)
        num_items = len(self.items)
        size = num_items if trainer.steps_per_epoch == 1 else trainer.recipe.batch_size
        self.sizes = [min(size, num_items - begin) for begin in range(0, num_items, size)]
        self.places = torch.arange(self.sizes[0], device=device)
        self.recordings: dict[StepShape, Recording] = {}
        self.is_possible = self._record(order)

    def seed(self, number: int) -> None:
        self.number_of_seed = number
        self.random.seed(number)

    @contextmanager
    def place(self) -> Iterator[None]:
        self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        with torch.cuda.stream(self.stream):
            yield
        torch.cuda.current_stream(self.stream.device).wait_stream(self.stream)

    def epoch(self, items: Tensor, dials: Sequence[Dials]) -> Generator[None, None, Tensor]:
        shapes = self._shapes(items)
        if any(shape not in self.recordings for shape in shapes):
            self._record(items)
            self.random.seed(self.number_of_seed)
        # Not `place`: the caller's stream must not wait yet, or runs would queue up behind each other.
        self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        with torch.cuda.stream(self.stream):
            if len(self.sizes) > 1:
                self.items.copy_(items)
            if self.turned != dials:
                self.dials.copy_(torch.tensor(dials))
                self.turned = list(dials)
            self.number.zero_()
        for recording in [*(self.recordings[shape] for shape in shapes), self.validation]:
            with torch.cuda.stream(self.stream):
                recording.replay()
            yield
        return self.values

    def _shapes(self, items: Tensor) -> list[StepShape]:
        """Of every step of an epoch on these items."""
        return list(zip(self.sizes, self.trainer.examples.shapes(items, self.sizes[0]), strict=True))

    def _record(self, items: Tensor) -> bool:
        """The steps of an epoch on these items that are not recorded yet. Whether it could be done: a step that waits
        for the host cannot."""
        batches = dict(zip(self._shapes(items), items.split(self.sizes[0]), strict=True))
        new = [shape for shape in batches if shape not in self.recordings]
        is_first = not self.recordings
        with self._unchanged(), self.random.in_use():
            self.random.seed(0)
            self.dials.zero_()
            self.turned = []
            for shape in new:
                self.items[: len(batches[shape])].copy_(batches[shape])  # which have this shape
                self.number.zero_()
                self._step(shape)  # libraries set themselves up, and constants are copied, in the first call
                self.number.zero_()
                if waits_for_the_host(lambda shape=shape: self._step(shape)):  # type: ignore[misc]
                    return False
            if is_first:
                self._validate()
                if waits_for_the_host(self._validate):
                    return False
            for shape in new:
                self.recordings[shape] = Recording(lambda shape=shape: self._step(shape))  # type: ignore[misc]
            if is_first:
                self.validation = Recording(self._validate)
        return True

    def _step(self, shape: StepShape) -> None:
        trainer, (size, width) = self.trainer, shape
        items = self.items.index_select(0, self.number * self.sizes[0] + self.places[:size])
        dials = Dials(*self.dials.index_select(0, self.number).squeeze(0))
        loss = trainer.step(trainer.examples.step(items, width, trainer.recipe.views), dials)
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


def _make_replayable(optimizer: torch.optim.Optimizer, device: torch.device) -> None:
    """Again, after a checkpoint: it holds numbers where tensors are needed, and may come from another device."""
    for group in optimizer.param_groups:
        group["lr"] = torch.as_tensor(group["lr"], device=device)
        group["fused"], group["capturable"], group["foreach"] = True, True, None
    for state in optimizer.state.values():
        state["step"] = state["step"].to(device)
