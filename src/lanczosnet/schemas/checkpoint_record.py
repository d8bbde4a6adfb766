"""The schema of the record in `checkpoint.safetensors`, which says all of an interrupted run but its tensors.

Files of format 1 have no checksum, and hold the optimizer's groups, which follow from the recipe.
"""

from pathlib import Path
from typing import Annotated, Any

from lanczosnet.schemas.record import (
    Count,
    Document,
    Finite,
    Meta,
    Positive,
    PositiveFinite,
    Record,
    checked,
    field,
    kind_of,
    parsed,
    up_to_date,
)

FORMAT = 2
REMEDY = "Delete it and start again"


class ProgressRecord(Record, frozen=True, kw_only=True):
    """The epochs of a run."""

    epoch: Count
    best_epoch: Count
    best_rank: tuple[float, float] | None
    val_losses: tuple[Finite, ...]
    curves: dict[str, tuple[float, ...]] = field(default_factory=dict)
    seconds: Annotated[float, Meta(ge=0, le=1e12)] = 0.0

    def __post_init__(self) -> None:
        if self.best_epoch > self.epoch:
            raise ValueError(f"best_epoch is {self.best_epoch}, but there were {self.epoch} epochs")
        if (self.best_rank is None) != (self.best_epoch == 0):
            raise ValueError(f"best_rank does not fit best_epoch, which is {self.best_epoch}")
        if len(self.val_losses) != self.epoch:
            raise ValueError(f"val_losses must have one value per epoch ({self.epoch}), but has {len(self.val_losses)}")
        if self.best_rank is not None and -self.val_losses[self.best_epoch - 1] not in self.best_rank:
            raise ValueError("best_rank does not hold the validation loss of best_epoch")


class ScalerRecord(Record, frozen=True, kw_only=True):
    """How a loss is scaled in 16-mixed."""

    scale: PositiveFinite
    growth_tracker: Count


class CheckpointRecord(Record, frozen=True, kw_only=True):
    """Where a run stood, and which run it is."""

    format: Positive
    identity: dict[str, Any]
    progress: ProgressRecord
    step: Count
    averaged: Count
    scaler: ScalerRecord | None = None

    def __post_init__(self) -> None:
        settings = self.identity.get("recipe", {})
        if not isinstance(settings, dict):
            raise ValueError(f"identity.recipe: expected an object, but got {kind_of(settings)}")
        epochs = self.progress.epoch
        if (self.step == 0) != (epochs == 0) or (epochs and self.step % epochs) or self.averaged > self.step:
            raise ValueError(f"step ({self.step}) and averaged ({self.averaged}) do not fit {epochs} epochs")


def checkpoint_record(text: str, path: Path) -> CheckpointRecord:
    """The record in a text."""
    document = up_to_date(parsed(text, path, REMEDY), FORMAT, path, REMEDY, {1: _without_groups})
    return checked(document, CheckpointRecord, path, REMEDY)


def _without_groups(document: Document) -> Document:
    return {key: value for key, value in document.items() if key != "groups"}
