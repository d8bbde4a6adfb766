"""What changes while a run goes on, and what is told of it."""

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from lanczosnet.training.averaging import WeightAverage
from lanczosnet.training.engine.fused_adam import FlatAdam, can_be_flat
from lanczosnet.training.recipes import Recipe


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
    by_target: dict[str, dict[str, float]]  # the main metric of every target, of the same items


@dataclass
class Progress:
    """The record of a run, from which stopping and choosing are decided."""

    epoch: int = 0
    best_epoch: int = 0
    best_rank: tuple[float, float] | None = None
    val_losses: list[float] = field(default_factory=list)
    curves: dict[str, list[float]] = field(default_factory=dict)  # what was measured after every epoch, by name
    seconds: float = 0.0  # its share of the time, with what it took before a kill

    def note(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.curves.setdefault(name, []).append(value)

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
    flat: FlatAdam | None = None  # takes the optimizer's steps, where it is

    @property
    def weights(self) -> dict[str, Tensor]:
        """Those that are validated and kept."""
        return self.average.weights if self.average else self.model.state_dict()

    @torch.no_grad()
    def keep_best(self) -> None:
        weights = self.weights
        torch._foreach_copy_(list(self.best.values()), [weights[name] for name in self.best])

    @torch.no_grad()
    def restart(self) -> None:
        """From other first weights, in the same memory; what was best stays."""
        self.model.reset_parameters()  # type: ignore[operator]
        for state in self.optimizer.state.values():
            for tensor in state.values():
                tensor.zero_()
        if self.average:
            self.average.restart(self.model)

    def flatten(self) -> None:
        """Parameters, their averages and what the optimizer knows of them move into one vector each, if they can."""
        if can_be_flat(self.optimizer):
            self.flat = FlatAdam(self.optimizer)
            if self.average:
                self.average.flatten(self.model, self.flat.parameters)

    def unflatten(self) -> None:
        """Everything has memory of its own again."""
        if self.flat:
            self.flat.release()
            self.flat = None
            if self.average:
                self.average.unflatten()
            for module in self.model.modules():
                if isinstance(module, nn.RNNBase):
                    module.flatten_parameters()  # cuDNN warns of weights that do not stand in one piece
