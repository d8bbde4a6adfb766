"""The basis of a graph whose nodes are shared out."""

from typing import Any

import torch
from torch import Tensor

from lanczosnet.affinity.operator import full_precision_product
from lanczosnet.backends.processes import Processes
from lanczosnet.filters.fourier import RaggedBasis, SpectralBasis
from lanczosnet.krylov import RitzPairs


class ShardedBasis(SpectralBasis):
    """The vectors on a process' nodes. Coefficients of shared components are summed over all processes."""

    def __init__(self, pairs: RitzPairs, processes: Processes, num_shared: int) -> None:
        """Shared components are numbered first; see `krylov.sharded_components`."""
        assert pairs.segment is not None
        self.processes = processes
        self._num_nodes = len(pairs.vectors)
        ranks = pairs.rank[:num_shared].tolist()
        self._widths = ranks
        self._nodes = [_nodes_of(pairs.segment == label) for label in range(num_shared)]
        self._vectors = [
            (pairs.vectors if nodes is None else pairs.vectors[nodes])[:, :rank].detach()
            for nodes, rank in zip(self._nodes, ranks, strict=True)
        ]
        for label, nodes in enumerate(self._nodes):
            if nodes is None:  # all rows are multiplied, and those of others are zero
                self._vectors[label] = self._vectors[label] * (pairs.segment == label).unsqueeze(1)
        self._rest_nodes = (pairs.segment >= num_shared).nonzero().squeeze(1)
        segment = pairs.segment[self._rest_nodes] - num_shared
        rest = RitzPairs(pairs.values[num_shared:], pairs.vectors[self._rest_nodes], pairs.rank[num_shared:], segment)
        self._rest = RaggedBasis(rest) if len(self._rest_nodes) else None
        shared = [values[:rank] for values, rank in zip(pairs.values, ranks, strict=False)]
        self.values = torch.cat([*shared, *([] if self._rest is None else [self._rest.values])])

    def __deepcopy__(self, memo: dict[int, Any]) -> "ShardedBasis":
        return self

    def project(self, signal: Tensor) -> Tensor:
        parts = []
        if self._vectors:
            own = [
                full_precision_product(vectors.mT, signal if nodes is None else signal.index_select(0, nodes))
                for vectors, nodes in zip(self._vectors, self._nodes, strict=True)
            ]
            parts.append(self.processes.total(torch.cat(own)))
        if self._rest is not None:
            parts.append(self._rest.project(signal.index_select(0, self._rest_nodes)))
        return torch.cat(parts)

    def lift(self, coefficients: Tensor) -> Tensor:
        num_shared = sum(self._widths)
        shared = coefficients[:num_shared].split(self._widths)
        signal: Tensor | None = None
        for vectors, nodes, part in zip(self._vectors, self._nodes, shared, strict=True):
            found = full_precision_product(vectors, part)
            if nodes is None:
                signal = found if signal is None else signal + found
            else:
                signal = self._nothing(coefficients) if signal is None else signal
                signal = signal.index_add(0, nodes, found)
        signal = self._nothing(coefficients) if signal is None else signal
        if self._rest is None:
            return signal
        return signal.index_add(0, self._rest_nodes, self._rest.lift(coefficients[num_shared:]))

    def _nothing(self, coefficients: Tensor) -> Tensor:
        return coefficients.new_zeros(self._num_nodes, coefficients.shape[1])


def _nodes_of(is_inside: Tensor) -> Tensor | None:
    """Those of a component; None for one with most of the nodes, of which no copy is made."""
    return None if 2 * int(is_inside.sum()) > len(is_inside) else is_inside.nonzero().squeeze(1)
