"""Metrics of classification and regression, equal to scikit-learn's.

They are computed on the device of their arguments and never make the host wait. Items with an unknown target (negative
for classes, NaN for numbers) do not count. A metric that is not defined is NaN, for instance a ROC-AUC of one class.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Needs = Literal["scores", "classes", "numbers"]


def accuracy(predicted: Tensor, target: Tensor, num_classes: int) -> Tensor:
    """The share of right classes."""
    counts = _confusion(predicted, target, num_classes)
    return counts.diagonal().sum() / counts.sum()


def balanced_accuracy(predicted: Tensor, target: Tensor, num_classes: int) -> Tensor:
    """The mean over the classes that occur in `target` of the share of right items."""
    counts = _confusion(predicted, target, num_classes)
    return (counts.diagonal() / counts.sum(1)).nanmean()


def f1(predicted: Tensor, target: Tensor, num_classes: int) -> Tensor:
    """F1 of class 1 where there are two classes, else the mean over the classes that occur in either argument."""
    counts = _confusion(predicted, target, num_classes)
    by_class = 2 * counts.diagonal() / (counts.sum(0) + counts.sum(1))
    return by_class[1] if num_classes == 2 else by_class.nanmean()


def roc_auc(scores: Tensor, target: Tensor) -> Tensor:
    """Area under the ROC curve: the chance that a positive item has a higher score than a negative one.

    Scores are `[item]` or `[item, 2]` (logits or probabilities) of class 1, or probabilities `[item, class]`. More than
    two classes are compared one against the rest, and their areas averaged.
    """
    return _areas(_rank(scores, target)).mean()


def average_precision(scores: Tensor, target: Tensor) -> Tensor:
    """The mean over the positive items of the precision at their scores. Arguments as in `roc_auc`."""
    return _precisions(_rank(scores, target)).mean()


def column_roc_auc(scores: Tensor, target: Tensor) -> Tensor:
    """`roc_auc` of every column: scores of class 1 and targets, `[item, target]` each."""
    return _areas(_rank_columns(scores.double().t().contiguous(), target.t()))


def column_average_precision(scores: Tensor, target: Tensor) -> Tensor:
    """`average_precision` of every column, as `column_roc_auc`."""
    return _precisions(_rank_columns(scores.double().t().contiguous(), target.t()))


def mae(predicted: Tensor, target: Tensor) -> Tensor:
    """Mean absolute error. The columns of `[item, target]` with a known target are averaged, here and below."""
    return _mean(_by_column(predicted, target, torch.abs), ~target.isnan().all(0))


def rmse(predicted: Tensor, target: Tensor) -> Tensor:
    """Root mean square error."""
    return _mean(_by_column(predicted, target, torch.square).sqrt(), ~target.isnan().all(0))


def r2(predicted: Tensor, target: Tensor) -> Tensor:
    """Share of the target's variance that the prediction explains; undefined for a constant target."""
    target = target.double()
    mean = target.nanmean(0)
    variance = _by_column(mean.expand_as(target), target, torch.square)
    explained = 1 - _by_column(predicted, target, torch.square) / variance
    return _mean(explained, ~_is_constant(target))


class Metric(NamedTuple):
    """A function, what it needs of a model, and whether more is better.

    "classes": `function(predicted, target, num_classes)`. "scores" and "numbers": `function(prediction, target)`.
    """

    function: Callable[..., Tensor]
    needs: Needs
    higher_is_better: bool


METRICS: dict[str, Metric] = {
    "accuracy": Metric(accuracy, "classes", True),
    "balanced_accuracy": Metric(balanced_accuracy, "classes", True),
    "f1": Metric(f1, "classes", True),
    "roc_auc": Metric(roc_auc, "scores", True),
    "average_precision": Metric(average_precision, "scores", True),
    "mae": Metric(mae, "numbers", False),
    "rmse": Metric(rmse, "numbers", False),
    "r2": Metric(r2, "numbers", True),
}


def _confusion(predicted: Tensor, target: Tensor, num_classes: int) -> Tensor:
    """Numbers of items `[target class, predicted class]`."""
    known = target >= 0
    cell = torch.where(known, target * num_classes + predicted, 0).long()
    counts = torch.zeros(num_classes**2, dtype=torch.long, device=target.device)
    return counts.scatter_add_(0, cell, known.long()).view(num_classes, num_classes).double()


class _Ranked(NamedTuple):
    """Items in the order of their scores, `[class, item]`, and how many known ones have lower or equal scores."""

    positive: Tensor
    positives_below: Tensor
    negatives_below: Tensor
    negatives_tied: Tensor
    num_positive: Tensor  # [class]
    num_negative: Tensor
    nan: Tensor  # [class], 0, or NaN if the score of a known item is


def _areas(ranked: _Ranked) -> Tensor:
    """Under the ROC curve, `[class]`."""
    wins = torch.where(ranked.positive, 2 * ranked.negatives_below + ranked.negatives_tied, 0).sum(-1).double() / 2
    return wins / ranked.num_positive / ranked.num_negative + ranked.nan


def _precisions(ranked: _Ranked) -> Tensor:
    """On average over the positive items, `[class]`."""
    positives = ranked.num_positive.unsqueeze(-1) - ranked.positives_below
    negatives = ranked.num_negative.unsqueeze(-1) - ranked.negatives_below
    precision = torch.where(ranked.positive, positives.double() / (positives + negatives), 0.0)
    return precision.sum(-1) / ranked.num_positive + ranked.nan


def _rank(scores: Tensor, target: Tensor) -> _Ranked:
    columns, wanted = _one_against_rest(scores, target)
    return _ranked(columns, wanted, (target >= 0).expand_as(columns))


def _rank_columns(columns: Tensor, target: Tensor) -> _Ranked:
    """Of two classes, `[target, item]` each."""
    return _ranked(columns, target == 1, target >= 0)


def _ranked(columns: Tensor, wanted: Tensor, known: Tensor) -> _Ranked:
    ordered, order = columns.sort(dim=-1)
    positive, negative = ((known & mask).gather(-1, order) for mask in (wanted, ~wanted))
    first = torch.searchsorted(ordered, ordered)
    last = torch.searchsorted(ordered, ordered, right=True)
    positives, negatives = _counted(positive), _counted(negative)
    negatives_below = negatives.gather(-1, first)
    return _Ranked(
        positive,
        positives.gather(-1, first),
        negatives_below,
        negatives.gather(-1, last) - negatives_below,
        positives[..., -1],
        negatives[..., -1],
        torch.where((columns.isnan() & known).any(-1), torch.nan, 0.0),
    )


def _one_against_rest(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Scores `[class, item]` and whether an item is of the class; only class 1 of two classes."""
    scores = scores.double()
    if scores.dim() == 2 and scores.size(1) == 2:
        scores = scores[:, 1] - scores[:, 0]
    if scores.dim() == 1 or scores.size(1) == 1:
        return scores.reshape(1, -1), (target == 1).unsqueeze(0)
    classes = torch.arange(scores.size(1), device=target.device)
    return scores.t().contiguous(), target == classes.unsqueeze(1)


def _counted(mask: Tensor) -> Tensor:
    """How many of the first 0, 1, 2, ... items are marked."""
    return torch.nn.functional.pad(mask.long().cumsum(-1), (1, 0))


def _by_column(predicted: Tensor, target: Tensor, error: Callable[[Tensor], Tensor]) -> Tensor:
    """The mean error over the known items of each column."""
    known = ~target.isnan()
    errors = torch.where(known, error(predicted.double() - target.double()), 0.0)
    return errors.sum(0) / known.sum(0)


def _mean(columns: Tensor, defined: Tensor) -> Tensor:
    """NaN if no column is defined, or one that is defined is NaN."""
    return torch.where(defined, columns, 0.0).sum() / defined.sum()


def _is_constant(target: Tensor) -> Tensor:
    missing = target.isnan()
    largest = target.masked_fill(missing, -torch.inf).amax(0)
    return largest <= target.masked_fill(missing, torch.inf).amin(0)
