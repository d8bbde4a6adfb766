"""Node features with few non-zeros, such as bags of words: a matrix that weights are multiplied with.

A document of Cora has 18 of 1,433 words. On a CPU the first layer of a network on such features is nearly all of its
arithmetic, and nearly all of that is with zeros.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from lanczosnet.affinity.csr_product import constant_product, csr_matrix
from lanczosnet.backends.conditions import mostly_zero
from lanczosnet.batching.host_features import HostFeatures


@dataclass(frozen=True)
class SparseFeatures:
    """`[node, channel]`, stored by rows and by columns."""

    entries: Tensor  # by rows, [entry]
    node: Tensor  # [entry]
    column: Tensor  # [entry]
    shape: torch.Size
    by_column: Tensor  # the order of the entries by columns, [entry]

    def __deepcopy__(self, memo: dict[int, Any]) -> "SparseFeatures":
        return self  # they do not change, and PyTorch cannot copy sparse tensors

    @property
    def device(self) -> torch.device:
        return self.entries.device

    @property
    def dtype(self) -> torch.dtype:
        return self.entries.dtype

    def dim(self) -> int:
        return 2

    def is_floating_point(self) -> bool:
        return True

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, weights: Tensor) -> Tensor:
        """`[node, channel] @ [channel, out]`; gradients reach the weights."""
        return constant_product(weights, self._rows, self._columns)

    @cached_property
    def _rows(self) -> Tensor:
        return csr_matrix(self.node, self.column, self.entries, (self.shape[0], self.shape[1]))

    @cached_property
    def _columns(self) -> Tensor:
        order = self.by_column
        return csr_matrix(self.column[order], self.node[order], self.entries[order], (self.shape[1], self.shape[0]))

    def scaled(self, factor: Tensor) -> "SparseFeatures":
        """Every entry times its factor, `[entry]`."""
        return SparseFeatures(self.entries * factor, self.node, self.column, self.shape, self.by_column)


def sparse_where_it_pays(features: Tensor | HostFeatures) -> "Tensor | SparseFeatures | HostFeatures":
    """The features as they are, or without their zeros where products with them are then faster."""
    if isinstance(features, HostFeatures) or not mostly_zero(features):
        return features
    node, column = features.nonzero(as_tuple=True)
    order = torch.argsort(column, stable=True)
    return SparseFeatures(features[node, column], node, column, features.shape, order)
