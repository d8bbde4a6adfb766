"""What predictions are worth: every metric of a task, of each target and on average.

The average is over the targets where a metric is defined. Items without a target do not count.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lanczosnet.training.metrics import METRICS, column_average_precision, column_roc_auc, r2
from lanczosnet.training.recipes import METRIC_NAMES
from lanczosnet.training.tasks import Classification, Regression, Task

_OF_COLUMNS = {"roc_auc": column_roc_auc, "average_precision": column_average_precision}


class Answers(NamedTuple):
    """What a network says of items."""

    values: Tensor  # [item, target]: numbers in the units of the data, or numbers of classes
    probabilities: Sequence[Tensor] = ()  # for each target [item, class]; may be left out where no metric needs them


def names_of(task: Task) -> tuple[str, ...]:
    """All metrics of the task, the one that epochs are chosen by first."""
    return (task.metric, *(name for name in METRIC_NAMES[task.kind] if name != task.metric))


def answers_of(task: Task, output: Tensor, names: Sequence[str]) -> Answers:
    """What the metrics of these names need to know of a network's output."""
    scored = any(METRICS[name].needs == "scores" for name in names)
    probabilities = task.probabilities(output) if scored and isinstance(task, Classification) else ()
    return Answers(task.predicted(output), probabilities)


def measured(task: Task, output: Tensor, y: Tensor) -> Tensor:
    """`[metric]`: those of an epoch, on the device and without waiting for it."""
    answers = answers_of(task, output, task.measured)
    return torch.stack([by_target(task, name, answers, y).nanmean() for name in task.measured])


def by_target(task: Task, name: str, answers: Answers, y: Tensor) -> Tensor:
    """One metric, `[target]`; NaN where it is not defined."""
    if isinstance(task, Regression):
        return _of_numbers(name, answers.values, y)
    if name == "accuracy":
        return torch.where(task.known(y), (answers.values == y).double(), torch.nan).nanmean(0)
    return _of_classes(task, name, answers, y)


class Measures:
    """All metrics of some items, those left out that are not defined; the one that epochs are chosen by is never."""

    def __init__(self, task: Task, answers: Answers, y: Tensor) -> None:
        names = names_of(task)
        table = torch.stack([by_target(task, name, answers, y) for name in names])
        means, *columns = torch.cat([table.nanmean(1, keepdim=True), table], 1).t().tolist()
        self.mean = _defined(names, means)
        self.by_target = {target: _defined(names, column) for target, column in zip(task.targets, columns, strict=True)}
        self.main = {target: values[task.metric] for target, values in self.by_target.items()}


def _defined(names: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    """Those that are numbers, and the first."""
    return {name: value for name, value in zip(names, values, strict=True) if name == names[0] or value == value}


def _of_numbers(name: str, predicted: Tensor, y: Tensor) -> Tensor:
    if name == "r2":
        return torch.stack([r2(*columns) for columns in zip(predicted.unbind(1), y.unbind(1), strict=True)])
    errors = (predicted.double() - y.double()).abs()
    return errors.nanmean(0) if name == "mae" else errors.pow(2).nanmean(0).sqrt()


def _of_classes(task: Classification, name: str, answers: Answers, y: Tensor) -> Tensor:
    metric, sizes = METRICS[name], [len(names) for names in task.classes]
    if metric.needs == "classes":
        columns = zip(answers.values.unbind(1), y.unbind(1), sizes, strict=True)
        return torch.stack([metric.function(*column) for column in columns])
    if set(sizes) == {2}:  # all targets at once
        return _OF_COLUMNS[name](torch.stack([_log_odds(table) for table in answers.probabilities], 1), y)
    return torch.stack([metric.function(*pair) for pair in zip(answers.probabilities, y.unbind(1), strict=True)])


def _log_odds(probabilities: Tensor) -> Tensor:
    """In the order of the probabilities of class 1, also where these are rounded to 1."""
    logs = probabilities.double().log()
    return logs[:, 1] - logs[:, 0]
