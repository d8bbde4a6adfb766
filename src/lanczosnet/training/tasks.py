"""What is learnt: targets, their loss, and their metrics in the units of the data.

A task sees outputs `[item, out_channels]` and targets `[item, target]`, where an item is a node or a graph. Unknown
targets are NaN or, for classes, negative; they neither count in a loss nor in a metric.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from lanczosnet.backends import operation
from lanczosnet.graphs import PackedGraphs
from lanczosnet.graphs.stored_graph import StoredGraph
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.recipes import RegressionLoss

Level = Literal["node", "graph"]


@dataclass(frozen=True)
class Regression:
    """Numbers, standardised with the training items' mean and deviation while a model learns them."""

    level: Level
    targets: tuple[str, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    units: tuple[str, ...] = ()
    loss: RegressionLoss = "mse"

    kind = "regression"
    metric = "mae"
    measured = ("mae", "rmse")
    higher_is_better = False

    @property
    def out_channels(self) -> int:
        return len(self.targets)

    def losses(self, output: Tensor, y: Tensor) -> Tensor:
        """`[item, target]`, zero where unknown."""
        known = self.known(y)
        wanted = torch.where(
            known, (y.to(output.dtype) - self._mean(output)) / self._deviation(output), output.detach()
        )
        difference = output - wanted
        return difference.square() if self.loss == "mse" else difference.abs() * self._weight(output)

    def mean_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """The mean over all known targets, zero where there are none."""
        return mean_regression_loss(output, y, self)

    def constants(self, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, deviation and weight of every target, `[target]` each."""
        return self._mean(like), self._deviation(like), self._weight(like)

    def known(self, y: Tensor) -> Tensor:
        return ~y.isnan()

    def predicted(self, output: Tensor) -> Tensor:
        """Values `[item, target]` in the units of the data."""
        return output * self._deviation(output) + self._mean(output)

    def measures(self, predicted: Tensor, y: Tensor) -> Tensor:
        """Means over the targets of each one's mean absolute and root mean square error, where they were computed."""
        absolute, square = self._errors(predicted, y, 1), self._errors(predicted, y, 2)
        return torch.stack([absolute.nanmean(), square.sqrt().nanmean()])

    def metrics(self, predicted: Tensor, y: Tensor) -> dict[str, float]:
        return dict(zip(self.measured, self.measures(predicted, y).tolist(), strict=True))

    def by_target(self, predicted: Tensor, y: Tensor) -> dict[str, float]:
        return dict(zip(self.targets, self._errors(predicted, y, 1).tolist(), strict=True))

    def _errors(self, predicted: Tensor, y: Tensor, power: int) -> Tensor:
        errors = (predicted.double() - y.double()).abs().pow(power)
        return errors.nanmean(0)  # NaN for a target that no item has

    def _mean(self, like: Tensor) -> Tensor:
        return _constant(self.mean, like.dtype, like.device)

    def _deviation(self, like: Tensor) -> Tensor:
        return _constant(self.deviation, like.dtype, like.device)

    def _weight(self, like: Tensor) -> Tensor:
        """Of the targets in the loss: "mae" weighs errors in the units of the data, the others standardised ones."""
        mean = sum(self.deviation) / len(self.deviation)
        weight = tuple(number / mean if self.loss == "mae" else 1.0 for number in self.deviation)
        return _constant(weight, like.dtype, like.device)


@dataclass(frozen=True)
class Classification:
    """One class for each target; the model's outputs are the logits of all targets' classes side by side."""

    level: Level
    targets: tuple[str, ...]
    classes: tuple[tuple[str, ...], ...]  # names, for each target

    kind = "classification"
    metric = "accuracy"
    measured = ("accuracy",)
    higher_is_better = True

    @property
    def out_channels(self) -> int:
        return sum(self._sizes)

    def losses(self, output: Tensor, y: Tensor) -> Tensor:
        """Cross-entropies `[item, target]`, zero where unknown."""
        known = self.known(y)
        codes = torch.where(known, y, 0).long()
        parts = zip(output.split(self._sizes, dim=1), codes.unbind(1), strict=True)
        return torch.stack([F.cross_entropy(logits, code, reduction="none") for logits, code in parts], 1) * known

    def mean_loss(self, output: Tensor, y: Tensor) -> Tensor:
        """The mean over all known targets, zero where there are none."""
        return mean_of_known(self, output, y)

    def known(self, y: Tensor) -> Tensor:
        return y >= 0  # a NaN is not

    def predicted(self, output: Tensor) -> Tensor:
        """The likeliest class, `[item, target]`."""
        return torch.stack([logits.argmax(1) for logits in output.split(self._sizes, dim=1)], 1)

    def probabilities(self, output: Tensor) -> tuple[Tensor, ...]:
        """For each target `[item, class]`."""
        return tuple(logits.softmax(1) for logits in output.split(self._sizes, dim=1))

    def shares(self, y: Tensor) -> tuple[Tensor, ...]:
        """For each target how often each class is the known one, `[class]`."""
        columns = zip(y.unbind(1), self._sizes, strict=True)
        counts = [(column.unsqueeze(1) == torch.arange(size, device=y.device)).sum(0) for column, size in columns]
        return tuple(count / count.sum().clamp(min=1) for count in counts)

    def measures(self, predicted: Tensor, y: Tensor) -> Tensor:
        """The mean over the targets of each one's share of right answers, where it was computed."""
        return self._accuracies(predicted, y).nanmean().view(1)

    def metrics(self, predicted: Tensor, y: Tensor) -> dict[str, float]:
        return dict(zip(self.measured, self.measures(predicted, y).tolist(), strict=True))

    def by_target(self, predicted: Tensor, y: Tensor) -> dict[str, float]:
        return dict(zip(self.targets, self._accuracies(predicted, y).tolist(), strict=True))

    def _accuracies(self, predicted: Tensor, y: Tensor) -> Tensor:
        right = torch.where(self.known(y), (predicted == y).double(), float("nan"))
        return right.nanmean(0)

    @property
    def _sizes(self) -> list[int]:
        return [len(names) for names in self.classes]


Task = Regression | Classification


@operation
def mean_regression_loss(output: Tensor, y: Tensor, task: Regression) -> Tensor:
    return mean_of_known(task, output, y)


def mean_of_known(task: Task, output: Tensor, y: Tensor) -> Tensor:
    return task.losses(output, y).sum() / task.known(y).sum().clamp(min=1)


_KINDS: dict[str, type[Any]] = {"regression": Regression, "classification": Classification}


def task_of(data: Data | PackedGraphs, train: Tensor, *, regression_loss: RegressionLoss = "mse") -> Task:
    """The task that a data set poses, scaled by its training items."""
    y = targets_of(data)
    level: Level = "graph" if isinstance(data, PackedGraphs) else "node"
    names = target_names(data)
    if is_classification(data):
        return Classification(level, names, _class_names(data, y))
    mean, deviation = _scale(y[train], names)
    return Regression(level, names, mean, deviation, tuple(_about(data, "units")), regression_loss)


def target_names(data: Data | PackedGraphs) -> tuple[str, ...]:
    """As the data calls them; else y, or y0, y1, ..."""
    count = targets_of(data).shape[1]
    return numbered(tuple(_about(data, "targets")) or (("y",) if count == 1 else tuple(f"y{i}" for i in range(count))))


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Names that tell apart what has one name: `a, b, a` becomes `a, b, a#2`."""
    count = dict.fromkeys(names, 0)
    found = []
    for name in names:
        count[name] += 1
        found.append(name if count[name] == 1 else f"{name}#{count[name]}")
    return tuple(found)


def targets_of(data: Data | PackedGraphs) -> Tensor:
    """`[item, target]`; what is unknown is NaN, or negative."""
    y = data.graph.get("y") if isinstance(data, PackedGraphs) else data.get("y")
    if y is None:
        raise TrainingError(f"{data.name} has no targets: every item needs a y for something to be learnt")
    return y.view(len(y), -1)


def is_classification(data: Data | PackedGraphs) -> bool:
    return _about(data, "task") == "classification" or not targets_of(data).is_floating_point()


def fingerprint(data: Data | PackedGraphs) -> str:
    """Sixteen hex digits that change with the targets."""
    return _digest(targets_of(data))


def input_fingerprint(data: Data | PackedGraphs) -> str | None:
    """The same of the inputs, where they are given exactly: as SMILES, or as a list of edges.

    None where they are numbers: features, and nearest neighbours by them, may differ by rounding between machines.
    """
    if isinstance(data, PackedGraphs):
        return _digest("\n".join(data.about["smiles"])) if "smiles" in data.about else None
    if isinstance(data, StoredGraph):
        return str(data.fingerprint)
    return None if "neighbours" in data else _digest(data.edge_index)


def _digest(content: Tensor | str) -> str:
    exact = content.encode() if isinstance(content, str) else content.cpu().contiguous().numpy().tobytes()
    return hashlib.sha256(exact).hexdigest()[:16]


def described(task: Task) -> dict[str, Any]:
    """The task as JSON holds it."""
    return {"kind": task.kind, **asdict(task)}


def from_description(description: dict[str, Any]) -> Task:
    fields = {key: _tuples(value) for key, value in description.items() if key != "kind"}
    return _KINDS[description["kind"]](**fields)


def with_loss(task: Task, loss: RegressionLoss) -> Task:
    return replace(task, loss=loss) if isinstance(task, Regression) else task


def _about(data: Data | PackedGraphs, key: str) -> Sequence[Any]:
    found = data.about.get(key) if isinstance(data, PackedGraphs) else data.get(key)
    return () if found is None else found


def _class_names(data: Data | PackedGraphs, y: Tensor) -> tuple[tuple[str, ...], ...]:
    names = _about(data, "classes")
    if names:
        return _tuples([names] if isinstance(names[0], str) else names)
    counts = [int(column[column >= 0].max()) + 1 for column in y.unbind(1)]
    return tuple(tuple(str(i) for i in range(count)) for count in counts)


def _scale(y: Tensor, names: tuple[str, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    known = ~y.isnan()
    for name, any_known in zip(names, known.any(0).tolist(), strict=True):
        if not any_known:
            raise TrainingError(f"no training item has a value of {name!r}: use another split, or leave the target out")
    count = known.sum(0)
    values = torch.where(known, y.double(), 0.0)
    mean = values.sum(0) / count
    variance = (torch.where(known, y.double() - mean, 0.0)).square().sum(0) / count
    deviation = torch.where(variance > 0, variance.sqrt(), 1.0)  # a constant target is learnt unscaled
    return tuple(mean.tolist()), tuple(deviation.tolist())


@cache  # a captured step knows only their address
def _constant(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Copied to the device once: a copy in every step would make the host wait."""
    return torch.tensor(values, dtype=dtype, device=device)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list | tuple) else value
