"""What the validation part says of predictions: how wide an interval has to be, and what a probability is worth.

Intervals are split conformal ones: of n validation items that are as likely as new ones, the k-th smallest error,
k = ceil((n + 1) level), is exceeded by a new item with a chance of at most 1 - level, whatever the model. The
validation part also chooses the epoch, which makes its errors a little smaller than those of new items.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lanczosnet._extras import require
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.predict import Predictions
from lanczosnet.training.reference import ModelReference
from lanczosnet.training.tasks import Classification, Task

BINS = 10  # of probabilities, for the expected calibration error
ABSENT = (
    "this model has no answers on its validation part, as those of earlier versions and with halved weights: train it "
    "again"
)
OF_NODES = "intervals and calibrated probabilities are for models of graphs, such as molecules: this one predicts nodes"


@dataclass(frozen=True)
class Calibration:
    """Targets and answers on validation items, and how far the models of an ensemble disagree there."""

    task: Task
    y: Tensor  # [item, target], NaN where unknown
    answers: Tensor  # [item, column]
    spread: Tensor | None = None  # [item, target]; None of one model, and where each item is known to one alone

    def half_widths(self, level: float, spread: Tensor | None) -> Tensor:
        """Of intervals that hold a share `level` of new items, `[item or 1, target]`; infinite with too few items.

        The spread of an ensemble is their scale, so that they are wide where its models disagree.
        """
        errors = (self.y - self.answers).abs().double() / self._scale(self.spread)
        return conformal_quantile(errors, level) * self._scale(None if self.spread is None else spread)

    @property
    def num_known(self) -> int:
        """Validation items of the target that has most."""
        return int((~(self.y.isnan() | self.answers.isnan())).sum(0).max())

    def suffices(self, level: float) -> bool:
        """Whether intervals of a target are finite."""
        return self.num_known >= _needed(level)

    def lack(self, level: float) -> str:
        """What intervals of this level need that there is not."""
        return (
            f"intervals of level {level:g} need {_needed(level)} validation items with a target, but there are "
            f"{self.num_known}: use a lower level, or more data"
        )

    def probabilities(self, tables: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Those of every target, `[item, class]`, as often right as they say on the validation items."""
        assert isinstance(self.task, Classification)
        sizes = [len(names) for names in self.task.classes]
        columns = zip(tables, self.answers.split(sizes, dim=1), self.y.unbind(1), strict=True)
        return tuple(_calibrated(*column) for column in columns)

    def _scale(self, spread: Tensor | None) -> Tensor:
        """The spread and its median over the validation items, below which it says little; 1 without one."""
        if spread is None or self.spread is None:
            return torch.ones(1, 1, dtype=torch.float64)
        median = self.spread.double().nanmedian(0).values
        return spread.double() + torch.where(median > 0, median, 1.0)


def calibration_of(task: Task, references: Sequence[ModelReference | None]) -> Calibration:
    """Of one model or of several: of their mean where all have one validation part, as seeds have.

    Else, as with folds, of the answers that each gives on its own, which the others were trained on.
    """
    if task.level == "node":
        raise TrainingError(OF_NODES)
    known = [reference for reference in references if reference is not None]
    if len(known) < len(references):
        raise TrainingError(ABSENT)
    first = known[0]
    if len(known) > 1 and all(_same_items(each, first) for each in known):
        answers = torch.stack([each.answers for each in known])
        spread = None if isinstance(task, Classification) else answers.std(0)
        return Calibration(task, first.y, answers.mean(0), spread)
    return Calibration(task, torch.cat([each.y for each in known]), torch.cat([each.answers for each in known]))


def _same_items(one: ModelReference, other: ModelReference) -> bool:
    return torch.equal(one.items, other.items) and torch.equal(one.y.nan_to_num(), other.y.nan_to_num())


def conformal_quantile(scores: Tensor, level: float) -> Tensor:
    """The k-th smallest known score of every column, k = ceil((n + 1) level); infinite where there is none."""
    ordered = torch.where(scores.isnan(), torch.inf, scores).sort(0).values
    places = [math.ceil(round((n + 1) * level, 9)) for n in (~scores.isnan()).sum(0).tolist()]
    return torch.stack(
        [
            column[k - 1] if k <= len(column) else column.new_tensor(torch.inf)
            for column, k in zip(ordered.unbind(1), places, strict=True)
        ]
    )


def with_intervals(found: Predictions, calibration: Calibration, level: float) -> Predictions:
    """Predictions with `lower` and `upper`, NaN for a target of which too few validation items are known."""
    if isinstance(found.task, Classification):
        raise TrainingError("intervals are for numbers: of classes, ask for calibrated probabilities")
    if not 0 < level < 1:
        raise TrainingError(f"the level of intervals lies between 0 and 1, but is {level}")
    if not calibration.suffices(level):
        raise TrainingError(calibration.lack(level))
    half = calibration.half_widths(level, found.uncertainty).to(found.values.dtype)
    half = torch.where(half.isfinite(), half, torch.nan)
    return replace(found, lower=found.values - half, upper=found.values + half)


def with_calibrated(found: Predictions, calibration: Calibration) -> Predictions:
    """Predictions with calibrated probabilities, and the classes that are likeliest by these."""
    if not isinstance(found.task, Classification):
        raise TrainingError("probabilities are of classes: of numbers, ask for intervals")
    tables = calibration.probabilities(found.probabilities)
    good = torch.tensor([not error for error in found.errors], dtype=torch.bool)
    codes = [torch.where(good, table.nan_to_num().argmax(1), -1) for table in tables]
    return replace(found, probabilities=tables, values=torch.stack(codes, 1))


def _needed(level: float) -> int:
    """The fewest items with a k-th smallest error."""
    return math.ceil(round(level / (1 - level), 9))


def _calibrated(table: Tensor, answers: Tensor, y: Tensor) -> Tensor:
    """One target's probabilities; as they are where the validation items have one class alone."""
    known = ~y.isnan() & ~answers.isnan().any(1)
    answers, y = answers[known], y[known].long()
    if len(y.unique()) < 2:
        return table
    if table.shape[1] == 2:
        first = isotonic(answers[:, 1], y == 1)(table[:, 1])
        return torch.stack([1 - first, first], 1)
    columns = [isotonic(answers[:, code], y == code)(table[:, code]) for code in range(table.shape[1])]
    each = torch.stack(columns, 1)
    return each / each.sum(1, keepdim=True)


@dataclass(frozen=True)
class Knots:
    """A rising function, linear between its knots and constant beyond them."""

    x: np.ndarray
    y: np.ndarray

    def __call__(self, scores: Tensor) -> Tensor:
        return torch.from_numpy(np.interp(scores.double().numpy(), self.x, self.y)).to(scores.dtype)


def isotonic(scores: Tensor, is_true: Tensor) -> Knots:
    """How often a score comes true, never certain: of n items, between 1 / (n + 2) and (n + 1) / (n + 2)."""
    require("sklearn", to="to calibrate probabilities")
    from sklearn.isotonic import IsotonicRegression

    least = 1 / (len(scores) + 2)
    curve: Any = IsotonicRegression(y_min=least, y_max=1 - least)
    curve.fit(scores.double().numpy(), is_true.double().numpy())
    return Knots(curve.X_thresholds_, curve.y_thresholds_)


def interval_measures(found: Predictions, y: Tensor) -> dict[str, dict[str, float]]:
    """By target: which share of the known values lies in its interval, and how wide intervals are on average."""
    assert found.lower is not None
    assert found.upper is not None
    known = ~(y.isnan() | found.lower.isnan())
    inside = torch.where(known, ((y >= found.lower) & (y <= found.upper)).double(), torch.nan).nanmean(0)
    width = torch.where(known, (found.upper - found.lower).double(), torch.nan).nanmean(0)
    named = {"interval_coverage": inside, "interval_width": width}
    return {name: dict(zip(found.task.targets, values.tolist(), strict=True)) for name, values in named.items()}


def calibration_errors(found: Predictions, y: Tensor) -> dict[str, float]:
    """By target the expected calibration error: how far the probability of the answer is from its share of hits."""
    columns = zip(found.probabilities, found.values.unbind(1), y.unbind(1), strict=True)
    return dict(zip(found.task.targets, (_calibration_error(*column) for column in columns), strict=True))


def _calibration_error(table: Tensor, answer: Tensor, y: Tensor) -> float:
    known = (y >= 0) & (answer >= 0)
    told, is_right = table[known].double().amax(1), (answer == y)[known].double()
    place = (told * BINS).long().clamp(max=BINS - 1)
    gaps = torch.zeros(BINS, dtype=torch.float64).index_add_(0, place, told - is_right)
    return float(gaps.abs().sum() / len(told)) if len(told) else math.nan
