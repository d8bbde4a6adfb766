"""The two estimators."""

from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets

from lanczosnet.estimators.base import LanczosEstimator


class LanczosClassifier(ClassifierMixin, LanczosEstimator):
    """LanczosNet as a classifier of the rows of a table, or of the nodes of a graph.

    Rows are joined to their nearest neighbours, and a network is trained on this graph. A new row is joined to its
    nearest training rows. Its prediction depends on no other new row. Features should be of one scale: put a
    `StandardScaler` before.

    Args:
        hidden_channels: width of the layers.
        num_layers: graph convolutions.
        graph: a PyG `Data` with x and edge_index, whose nodes are then the samples: X holds their numbers, `[node]` or
            `[node, 1]`. The network sees all nodes, and the answers of those in `fit` alone.
        n_neighbors: of a row, where there is no graph.
        num_steps: K, the Lanczos steps.
        short_scales, long_scales, block, dropout: as in `LanczosNet`.
        epochs, learning_rate, weight_decay: of the training.
        settings: what else is changed in the recipe `modern`, such as `{"class_weight": "balanced"}`.
        validation_fraction: of the training items. They choose the epoch that is kept. With 0 all items do.
        random_state: seed of weights, dropout and validation items.

    Attributes:
        classes_: the labels.
        network_: the trained `LanczosNet`, in float64.
        result_: best epoch, and metrics of the validation items.
        n_features_in_: features of a row.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows `[sample, feature]`, or on nodes of `graph`, and their labels `[sample]`."""
        items, y = self._items(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"a classifier needs two classes, but y has only one class: {self.classes_[0]}")
        return self._fit(items, torch.from_numpy(codes.astype(np.int64)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities `[sample, class]`, in the order of `classes_`."""
        return self._outputs(X).softmax(1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of every sample."""
        codes = self._outputs(X).argmax(1).numpy()
        return self.classes_[codes]


class LanczosRegressor(RegressorMixin, LanczosEstimator):
    """LanczosNet as a regressor of the rows of a table, or of the nodes of a graph.

    Arguments and attributes are those of `LanczosClassifier`, without `classes_`. The loss is one of `settings`:
    `{"regression_loss": "mse"}`, or "l1", which is the default, or "mae".
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows `[sample, feature]`, or on nodes of `graph`, and numbers `[sample]` or `[sample, target]`."""
        items, y = self._items(X, y, multi_output=True, y_numeric=True)
        self._is_flat = y.ndim == 1
        return self._fit(items, torch.from_numpy(y.astype(np.float32)))

    def predict(self, X: Any) -> np.ndarray:
        """Numbers `[sample]` or `[sample, target]`, as y was."""
        outputs = self._outputs(X)
        values = self.task_.predicted(outputs).numpy()
        return values[:, 0] if self._is_flat else values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
