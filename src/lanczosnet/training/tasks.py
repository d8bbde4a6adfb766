"""What is learnt: targets, their loss, and their metrics in the units of the data.

A task sees outputs `[item, out_channels]` and targets `[item, target]`, where an item is a node or a graph. Unknown
targets are NaN or, for classes, negative; they neither count in a loss nor in a metric.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from lanczosnet.backends import operation
from lanczosnet.graphs import PackedGraphs
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.recipes import METRIC_NAMES, Recipe, RegressionLoss

if TYPE_CHECKING:
    from lanczosnet.schemas.model_config import TaskRecord

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
    metric: str = "mae"  # that epochs are chosen by

    kind = "regression"

    @property
    def measured(self) -> tuple[str, ...]:
        """The metrics that every epoch is measured by."""
        return ("mae", "rmse") if self.metric in ("mae", "rmse") else (self.metric,)

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

    metric: str = "accuracy"  # that epochs are chosen by
    class_weights: tuple[tuple[float, ...], ...] = ()  # in the loss, for each target; all are 1 without them

    kind = "classification"

    @property
    def measured(self) -> tuple[str, ...]:
        """The metrics that every epoch is measured by."""
        return (self.metric,)

    @property
    def out_channels(self) -> int:
        return sum(self._sizes)

    def losses(self, output: Tensor, y: Tensor) -> Tensor:
        """Cross-entropies `[item, target]`, zero where unknown."""
        known = self.known(y)
        codes = torch.where(known, y, 0).long()
        parts = zip(output.split(self._sizes, dim=1), codes.unbind(1), self._weights(output), strict=True)
        columns = [F.cross_entropy(logits, code, weight, reduction="none") for logits, code, weight in parts]
        return torch.stack(columns, 1) * known

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

    def _weights(self, like: Tensor) -> list[Tensor | None]:
        """Of the classes of each target."""
        if not self.class_weights:
            return [None] * len(self.targets)
        return [_constant(weights, like.dtype, like.device) for weights in self.class_weights]

    @property
    def _sizes(self) -> list[int]:
        return [len(names) for names in self.classes]


Task = Regression | Classification


@operation
def mean_regression_loss(output: Tensor, y: Tensor, task: Regression) -> Tensor:
    return mean_of_known(task, output, y)


def mean_of_known(task: Task, output: Tensor, y: Tensor) -> Tensor:
    return task.losses(output, y).sum() / task.known(y).sum().clamp(min=1)


def task_of(data: Data | PackedGraphs, train: Tensor, *, regression_loss: RegressionLoss = "mse") -> Task:
    """The task that a data set poses, scaled by its training items; `data.metric` names its customary metric."""
    y = targets_of(data)
    level: Level = "graph" if isinstance(data, PackedGraphs) else "node"
    names = target_names(data)
    if is_classification(data):
        return Classification(level, names, _class_names(data, y), _metric_of(data, "classification"))
    mean, deviation = _scale(y[train], names)
    metric = _metric_of(data, "regression")
    return Regression(level, names, mean, deviation, tuple(_about(data, "units")), regression_loss, metric)


def _metric_of(data: Data | PackedGraphs, kind: str) -> str:
    """What the data calls its metric, if there is such a one; else the first of the kind."""
    known, named = METRIC_NAMES[kind], _about(data, "metric")
    return named if isinstance(named, str) and named in known else known[0]


def for_recipe(task: Task, recipe: Recipe, y: Tensor) -> Task:
    """The task with the recipe's metric, loss and class weights; `y` are the training targets."""
    task = with_metric(with_loss(task, recipe.regression_loss), recipe.choose_by)
    if recipe.class_weight == "balanced" and isinstance(task, Classification):
        return replace(task, class_weights=_balanced(y, [len(names) for names in task.classes]))
    return task


def with_metric(task: Task, choose_by: str) -> Task:
    """The task that is measured by a metric of this name; "metric" and "loss" leave it as it is."""
    if choose_by in ("metric", "loss"):
        return task
    if choose_by not in METRIC_NAMES[task.kind]:
        known = ", ".join(("metric", "loss", *METRIC_NAMES[task.kind]))
        raise TrainingError(f"choose_by={choose_by} is not a metric of a {task.kind}: use one of {known}")
    return replace(task, metric=choose_by)


def _balanced(y: Tensor, sizes: Sequence[int]) -> tuple[tuple[float, ...], ...]:
    """As scikit-learn's "balanced": all classes that occur weigh the same in total, and their mean weight is 1."""
    columns = zip(y.unbind(1), sizes, strict=True)
    counts = [(column.unsqueeze(1) == torch.arange(size)).sum(0).double() for column, size in columns]
    shares = [count.sum() / (count > 0).sum().clamp(min=1) for count in counts]
    weights = [torch.where(count > 0, share / count, 1.0) for count, share in zip(counts, shares, strict=True)]
    return tuple(tuple(weight.tolist()) for weight in weights)


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
        raise TrainingError(f"{data.name} has no targets: every item needs a y to train on")
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
        return _digest(_given_exactly(data)) if "smiles" in data.about else None
    if isinstance(data, StoredGraph):
        return str(data.fingerprint)
    return None if "neighbours" in data else _digest(data.edge_index)


def _given_exactly(data: PackedGraphs) -> str:
    """SMILES and, where there are some, descriptors: columns with their numbers, RDKit's by their kinds."""
    smiles, kinds = "\n".join(data.about["smiles"]), getattr(data.about.get("featurizer"), "descriptors", ())
    columns = data.about.get("descriptor_columns", ())
    if not columns and not kinds:
        return smiles
    numbers = data.graph["descriptors"][:, : len(columns)]
    return "\n".join([smiles, *columns, *kinds, _digest(numbers)])


def _digest(content: Tensor | str) -> str:
    exact = content.encode() if isinstance(content, str) else content.cpu().contiguous().numpy().tobytes()
    return hashlib.sha256(exact).hexdigest()[:16]


def described(task: Task) -> dict[str, Any]:
    """The task as JSON holds it."""
    return {"kind": task.kind, **asdict(task)}


def from_record(record: "TaskRecord") -> Task:
    """The task that a model directory describes."""
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    return Regression(**fields) if record.kind == "regression" else Classification(**fields)


def with_loss(task: Task, loss: RegressionLoss) -> Task:
    return replace(task, loss=loss) if isinstance(task, Regression) else task


def _about(data: Data | PackedGraphs, key: str) -> Sequence[Any]:
    found = data.about.get(key) if isinstance(data, PackedGraphs) else data.get(key)
    return () if found is None else found


def _class_names(data: Data | PackedGraphs, y: Tensor) -> tuple[tuple[str, ...], ...]:
    names = _about(data, "classes")
    counts = [int(known.max()) + 1 if len(known := column[column >= 0]) else 0 for column in y.unbind(1)]
    if not names:
        return tuple(tuple(str(i) for i in range(count)) for count in counts)
    named: tuple[tuple[str, ...], ...] = _tuples([names] if isinstance(names[0], str) else names)
    if len(named) != len(counts) or any(len(own) < count for own, count in zip(named, counts, strict=True)):
        sizes = ", ".join(str(len(own)) for own in named)
        raise TrainingError(
            f"{getattr(data, 'name', 'the data')}: the numbers of classes go up to {max(counts) - 1}, but {sizes} "
            "classes have names: name every class, or convert the files again"
        )
    return named


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
