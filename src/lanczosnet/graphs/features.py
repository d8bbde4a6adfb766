"""Features as a network gets them: as they are, rows divided by their sums, or columns standardised."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.graphs.packed import PackedGraphs

Kind = Literal["row", "standardise"]
AUTO, NONE = "auto", "none"
CHOICES = (AUTO, NONE, *get_args(Kind))
LARGE = 10.0  # dense features with values above this are standardised


@dataclass(frozen=True)
class FeatureScaling:
    """How features are scaled; with "standardise", by the mean and deviation of every column."""

    kind: Kind
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    def __str__(self) -> str:
        if self.kind == "row":
            return "word counts, whose rows are divided by their sums (features=none keeps them)"
        return "large values, whose columns are standardised (features=none keeps them)"

    def record(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {key: list(held) if isinstance(held, tuple) else held for key, held in vars(self).items() if held}

    def __call__(self, x: Tensor) -> Tensor:
        if self.kind == "row":
            return x / x.sum(-1, keepdim=True).clamp(min=1)
        mean, deviation = (torch.tensor(held, dtype=x.dtype, device=x.device) for held in (self.mean, self.deviation))
        return (x - mean) / deviation

    def apply(self, data: Any) -> Any:
        """The graph or graphs with scaled features."""
        if isinstance(data, PackedGraphs):
            return replace(data, node={**data.node, "x": self(data.node["x"])})
        data = copy(data)
        data.x = self(data.x)
        return data


def feature_scaling(data: Data | PackedGraphs, choice: str, train: Tensor) -> FeatureScaling | None:
    """What the choice comes to for these data; None leaves the features as they are.

    "auto" divides the rows of word counts by their sums: whole numbers, none negative, at least half of them zero, some
    above one. It standardises dense features with values above ten. All others stay as they are. Statistics are those
    of the nodes of one graph, which are all known while it trains, or of the training graphs.
    """
    if choice not in CHOICES:
        raise DataError(f"features must be one of {', '.join(CHOICES)}, but is {choice!r}")
    x = _training_features(data, train)
    if x is None or choice == NONE:
        return None
    kind = choice if choice != AUTO else None if isinstance(data, StoredGraph) else _fitting(x)
    if kind == "row":
        if bool((x < 0).any()):
            raise DataError(f"some features of {data.name} are negative: rows have no sums to be divided by")
        return FeatureScaling("row")
    return _standardising(x) if kind == "standardise" else None


def _training_features(data: Data | PackedGraphs, train: Tensor) -> Tensor | None:
    """Those that statistics may look at; None where nodes have types."""
    x: Tensor | None = data.node.get("x") if isinstance(data, PackedGraphs) else data.get("x")
    if x is None or not x.is_floating_point() or x.dim() != 2 or x.numel() == 0:
        return None
    if not isinstance(data, PackedGraphs):
        return x
    is_training = torch.zeros(len(data), dtype=torch.bool)
    is_training[train] = True
    return x[is_training.repeat_interleave(data.node_ptr.diff())]


def _fitting(x: Tensor) -> Kind | None:
    is_sparse = 2 * int((x == 0).sum()) >= x.numel()
    if is_sparse:
        are_counts = bool((x >= 0).all()) and bool((x == x.round()).all())
        return "row" if are_counts and float(x.max()) > 1 else None
    return "standardise" if float(x.abs().max()) > LARGE else None


def _standardising(x: Tensor) -> FeatureScaling:
    mean, deviation = x.double().mean(0), x.double().std(0, correction=0)
    deviation = torch.where(deviation > 0, deviation, 1.0)  # of a constant column
    return FeatureScaling("standardise", tuple(mean.tolist()), tuple(deviation.tolist()))
