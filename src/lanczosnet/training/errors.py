"""What can go wrong while a model is trained or used."""

from typing import Any

DIVERGED = "diverged"  # why a run ended, in its result


class TrainingError(ValueError):
    """A run, a setting or a saved model cannot be used; the message says why and what to do."""


class ArchitectureError(TrainingError):
    """No network can be built with these options."""


class DivergenceError(TrainingError):
    """The loss is no longer a number. `best` is what was fitted before, or None; the model holds its weights."""

    def __init__(self, epoch: int, learning_rate: float, best: Any = None) -> None:
        kept = f"; the best weights, of epoch {best.best_epoch}, are kept" if best else ""
        super().__init__(
            f"the loss became NaN or infinite in epoch {epoch}{kept}. Try a smaller learning_rate (now "
            f"{learning_rate:g}), clip_norm=1, or look for extreme values in features and targets"
        )
        self.epoch = epoch
        self.learning_rate = learning_rate
        self.best = best

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.epoch, self.learning_rate, self.best)  # from process to process
