"""What the classifier and the regressor share: arguments, the graph, and training."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch import Tensor
from torch_geometric.data import Data

from lanczosnet.estimators.attached import TrainingGraph, all_outputs
from lanczosnet.graphs import Split, knn_graph
from lanczosnet.training import Recipe, architecture_for, fit, recipe, task_of
from lanczosnet.training.tasks import for_recipe


class LanczosEstimator(BaseEstimator):
    """What `LanczosClassifier`, which documents the arguments, and `LanczosRegressor` share."""

    def __init__(
        self,
        hidden_channels: int = 64,
        num_layers: int = 2,
        *,
        graph: Any = None,
        n_neighbors: int = 10,
        num_steps: int = 20,
        short_scales: Sequence[int] = (1, 2, 5, 7),
        long_scales: Sequence[float] = (10, 20, 30),
        block: Literal["plain", "residual"] = "plain",
        dropout: float = 0.2,
        epochs: int = 200,
        learning_rate: float = 0.01,
        weight_decay: float = 5e-4,
        settings: Mapping[str, Any] | None = None,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.hidden_channels = hidden_channels
        self.num_layers = num_layers
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.num_steps = num_steps
        self.short_scales = short_scales
        self.long_scales = long_scales
        self.block = block
        self.dropout = dropout
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.settings = settings
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit(self, items: np.ndarray, answers: Tensor) -> Self:
        """Train on rows of features, or numbers of nodes, and their numbers or codes of classes."""
        random = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max))
        data, nodes = self._table(items, answers) if self.graph is None else self._labelled_graph(items, answers)
        split = self._split(nodes, answers, random)
        chosen = self._recipe()
        task = for_recipe(task_of(data, split.train), chosen, data.y.view(len(data.y), -1)[split.train])
        network = architecture_for(data, task, "lanczosnet", self._options()).build(seed)
        self.result_ = fit(network, data, split, task, chosen, seed=seed)
        self.task_ = task
        # In float64, a prediction does not depend on what else is predicted.
        self.network_ = deepcopy(network).to("cpu", torch.float64).eval()
        self._known: TrainingGraph | Tensor
        if self.graph is None:
            self._known = TrainingGraph.of(data, self.num_steps, self.n_neighbors)
        else:
            self._known = all_outputs(self.network_, data)
        return self

    def _recipe(self) -> Recipe:
        names = ("epochs", "learning_rate", "weight_decay")
        return recipe("modern", "node", {name: getattr(self, name) for name in names} | dict(self.settings or {}))

    def _options(self) -> dict[str, Any]:
        """Of the network."""
        names = ("hidden_channels", "num_layers", "num_steps", "block", "dropout")
        scales = {"short_scales": list(self.short_scales), "long_scales": list(self.long_scales)}
        return {name: getattr(self, name) for name in names} | scales

    def _table(self, X: np.ndarray, answers: Tensor) -> tuple[Data, np.ndarray]:
        """The rows joined to their nearest neighbours."""
        if self.n_neighbors < 1:
            raise ValueError(f"n_neighbors must be at least 1, but is {self.n_neighbors}")
        x = torch.from_numpy(X)
        edge_index = knn_graph(x, min(self.n_neighbors, len(x) - 1))
        return Data(x=x, edge_index=edge_index, y=answers, name="the table"), np.arange(len(X))

    def _labelled_graph(self, nodes: np.ndarray, answers: Tensor) -> tuple[Data, np.ndarray]:
        """The graph with the answers of its known nodes alone."""
        size = (self.graph.num_nodes, *answers.shape[1:])
        y = torch.full(size, torch.nan if answers.is_floating_point() else -1, dtype=answers.dtype)
        y[torch.from_numpy(nodes)] = answers
        kept = {name: self.graph[name] for name in ("x", "edge_index", "edge_weight") if name in self.graph}
        return Data(**kept, y=y, name="the graph"), nodes

    def _split(self, nodes: np.ndarray, answers: Tensor, random: np.random.RandomState) -> Split:
        """Validation items choose the epoch; of very few items, all of them train and validate."""
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must lie in [0, 1), but is {self.validation_fraction}")
        count = round(self.validation_fraction * len(nodes))
        parts = [nodes, nodes]
        if count and len(nodes) - count > 1:
            strata = answers.numpy() if _can_stratify(answers, count) else None
            parts = train_test_split(nodes, test_size=count, random_state=random, stratify=strata)
        train, val = (torch.from_numpy(np.sort(part)).long() for part in parts)
        return Split("estimator", "given", None, None, train, val, val)

    def _outputs(self, X: Any) -> Tensor:
        """What the network gives for rows of features, or for nodes, `[item, channel]` in float64."""
        check_is_fitted(self)
        if isinstance(self._known, Tensor):
            return self._known[torch.from_numpy(self._nodes(X))]
        X = validate_data(self, X, dtype=np.float32, reset=False)
        return self._known.outputs(self.network_, torch.from_numpy(X))

    def _items(self, X: Any, y: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        """Both checked: rows of features, or numbers of nodes, and the answers."""
        if self.graph is None:
            rows, y = validate_data(self, X, y, dtype=np.float32, ensure_min_samples=2, **options)
            return rows, y
        nodes = self._nodes(X)
        _, y = validate_data(self, nodes[:, None], y, dtype=None, **options)
        if len(np.unique(nodes)) < len(nodes):
            raise ValueError("X names a node twice: name every node once")
        return nodes, y

    def _nodes(self, X: Any) -> np.ndarray:
        """Numbers of nodes, `[node]`."""
        nodes, size = column_or_1d(np.asarray(X)), self.graph.num_nodes
        if not np.issubdtype(nodes.dtype, np.integer) or (len(nodes) and not 0 <= nodes.min() <= nodes.max() < size):
            raise ValueError(f"with a graph, X holds numbers of its nodes, integers below {size}")
        return nodes.astype(np.int64)


def _can_stratify(answers: Tensor, count: int) -> bool:
    """Whether these are classes, of all of which both parts can have items."""
    if answers.is_floating_point():
        return False
    sizes = answers.bincount()
    return bool(sizes.min() >= 2) and len(sizes) <= count <= len(answers) - len(sizes)
