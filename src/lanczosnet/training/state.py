"""The state of a training, its history, and its result."""

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from lanczosnet.training.averaging import WeightAverage
from lanczosnet.training.engine.fused_adam import FusedAdam, can_fuse
from lanczosnet.training.engine.precision import restart_scaler
from lanczosnet.training.notebook import fit_html
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
class FitResult:
    """The outcome of a run; the model holds the weights of the best epoch."""

    best_epoch: int
    epochs: int
    stopped: str  # why it ended
    metrics: dict[str, dict[str, float]]  # of the validation and the test items
    by_target: dict[str, dict[str, float]]  # the metric that epochs are chosen by of every target, of the same items
    metrics_by_target: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)  # part, target, metric

    def _repr_html_(self) -> str:
        return fit_html(self)


@dataclass
class History:
    """The epochs of a run; early stopping and the choice of the best epoch look at nothing else."""

    epoch: int = 0
    best_epoch: int = 0
    best_rank: tuple[float, float] | None = None
    val_losses: list[float] = field(default_factory=list)
    curves: dict[str, list[float]] = field(default_factory=dict)  # losses and metrics after every epoch, by name
    seconds: float = 0.0  # its share of the time, including the time before it was resumed

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
class TrainState:
    """Everything that changes from step to step."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    average: WeightAverage | None
    best: dict[str, Tensor]
    history: History = field(default_factory=History)
    step: int = 0
    fused: FusedAdam | None = None  # takes the optimizer's steps, where it is
    scaler: torch.amp.GradScaler | None = None  # of the loss, in 16-mixed

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
        """Draw new first weights, in the same memory; the best weights stay."""
        self.model.reset_parameters()  # type: ignore[operator]
        for state in self.optimizer.state.values():
            for tensor in state.values():
                tensor.zero_()
        if self.scaler:
            restart_scaler(self.scaler)
        if self.average:
            self.average.restart(self.model)

    def fuse(self) -> None:
        """Move parameters, their averages and the optimizer's state into one vector each, if possible."""
        if can_fuse(self.optimizer):
            self.fused = FusedAdam(self.optimizer)
            if self.average:
                self.average.flatten(self.model, self.fused.parameters)

    def unfuse(self) -> None:
        """Give every tensor its own memory again."""
        if self.fused:
            self.fused.release()
            self.fused = None
            if self.average:
                self.average.unflatten()
            for module in self.model.modules():
                if isinstance(module, nn.RNNBase):
                    module.flatten_parameters()  # cuDNN warns of weights that are not contiguous
