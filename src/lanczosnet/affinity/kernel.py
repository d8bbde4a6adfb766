"""The learned graph kernel of AdaLanczosNet (Eq. 9)."""

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from lanczosnet.affinity.normalization import OperatorT, normalized
from lanczosnet.affinity.operator import DenseOperator
from lanczosnet.affinity.sharded_operator import ShardedOperator
from lanczosnet.affinity.sparse_operator import SparseOperator, is_watched
from lanczosnet.backends import operation
from lanczosnet.backends.segments import segment_sum

NUMBERS_AT_A_TIME = 2**24  # of differences between points
EdgesT = TypeVar("EdgesT", SparseOperator, ShardedOperator)


def kernel_adjacency(pattern: EdgesT, embedding: Tensor) -> EdgesT:
    """A_ij = exp(-|x_i - x_j|^2 / epsilon) on the edges of `pattern` (Eq. 9), epsilon being the graph's mean distance.

    Args:
        pattern: an adjacency; its weights only say where edges are. Self-loops are left out: S adds them, and
            k(x, x) = 1 is just what it adds.
        embedding: f(x), `[node, channel]`; gradients flow into it, unless the rows are shared out.
    """
    row, column = pattern.row, pattern.column
    is_edge = (pattern.values.detach() != 0) & (row != column)
    distance = _squared_distance(embedding, pattern.with_halo(embedding), row, column)
    distance = distance.to(pattern.dtype) * is_edge
    weight = torch.exp(-distance / _mean_over_edges(pattern, distance, is_edge)[row])
    return pattern.with_values(weight * is_edge)


def _squared_distance(left: Tensor, right: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """|left_i - right_j|^2 of every edge; in pieces where no gradient needs the differences."""
    if is_watched(left):
        return (left[row] - right[column]).square().sum(-1)
    size = max(NUMBERS_AT_A_TIME // max(left.shape[1], 1), 1)
    pairs = zip(row.split(size), column.split(size), strict=True)
    return torch.cat([(left[i] - right[j]).square().sum(-1) for i, j in pairs])


def _mean_over_edges(pattern: SparseOperator | ShardedOperator, distance: Tensor, is_edge: Tensor) -> Tensor:
    """Each node's graph's mean squared distance over edges, `[node]`; one where all points coincide."""
    if pattern.segment is None:
        graph = torch.zeros(pattern.num_nodes, dtype=torch.long, device=pattern.device)
    else:
        graph = pattern.segment
    num_graphs = pattern.num_segments or 1
    of_edge = graph[pattern.row]
    total = segment_sum(distance, of_edge, num_graphs)
    count = segment_sum(is_edge.to(distance.dtype), of_edge, num_graphs)
    if pattern.processes is not None:
        total, count = pattern.processes.total(torch.stack([total, count]))
    mean = total / count.clamp(min=1.0)
    # The smallest normal number: below it the division itself would overflow.
    return torch.where(mean > torch.finfo(mean.dtype).tiny, mean, torch.ones_like(mean))[graph]


def dense_kernel_adjacency(pattern: Tensor, embedding: Tensor) -> Tensor:
    """The same for padded blocks: edges as ones of `[graph, node, node]`, embeddings `[graph, node, channel]`."""
    distance = (embedding.unsqueeze(-2) - embedding.unsqueeze(-3)).square().sum(-1).to(pattern.dtype) * pattern
    mean = distance.sum((-2, -1), keepdim=True) / pattern.sum((-2, -1), keepdim=True).clamp(min=1.0)
    mean = torch.where(mean > torch.finfo(mean.dtype).tiny, mean, torch.ones_like(mean))
    return torch.exp(-distance / mean) * pattern


@operation
def learned_affinity(embedding: Tensor, pattern: Tensor, mask: Tensor, *, self_loops: bool) -> Tensor:
    """S of `dense_kernel_adjacency`, `[graph, node, node]`; see `learned_operator` for self-loops."""
    A = DenseOperator(dense_kernel_adjacency(pattern, embedding), mask=mask)
    return learned_operator(A, self_loops=self_loops).dense()


def learned_operator(A: OperatorT, *, self_loops: bool) -> OperatorT:
    """S. Without self-loops a node that has no edge would have no row in any power of S: it keeps its own."""
    if not self_loops:
        A = A.plus_diagonal((A.degree() == 0).to(A.dtype))
    return normalized(A, self_loops=self_loops, validate=False)


class GraphKernel(nn.Module):
    """f_theta of Eq. 9, an MLP with ReLU between its layers; without hidden layers, f is discarded.

    Args:
        in_channels: size of the node features.
        hidden_channels: sizes of the MLP's layers, the last one being that of f(x); empty for node embeddings that
            are learned themselves.

    Shapes:
        `[node, in_channels]` -> `[node, hidden_channels[-1]]`.
    """

    def __init__(self, in_channels: int, hidden_channels: Sequence[int] = ()) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for size in hidden_channels:
            layers += [nn.Linear(in_channels, size), nn.ReLU()]
            in_channels = size
        self.layers = nn.Sequential(*layers[:-1])

    def reset_parameters(self) -> None:
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()

    def forward(self, pattern: EdgesT, features: Tensor) -> EdgesT:
        """The adjacency that the features induce on the edges of `pattern`."""
        return kernel_adjacency(pattern, self.layers(features))
