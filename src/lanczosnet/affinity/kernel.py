"""The learned graph kernel of AdaLanczosNet (Eq. 9)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lanczosnet.affinity.normalization import OperatorT, normalized
from lanczosnet.affinity.operator import DenseOperator
from lanczosnet.affinity.sparse_operator import SparseOperator
from lanczosnet.backends import operation
from lanczosnet.backends.segments import segment_sum


def kernel_adjacency(pattern: SparseOperator, embedding: Tensor) -> SparseOperator:
    """A_ij = exp(-|x_i - x_j|^2 / epsilon) on the edges of `pattern` (Eq. 9), epsilon being the graph's mean distance.

    Args:
        pattern: an adjacency; its weights only say where edges are. Self-loops are left out: S adds them, and
            k(x, x) = 1 is just what it adds.
        embedding: f(x), `[node, channel]`; gradients flow into it.
    """
    row, column = pattern.row, pattern.column
    is_edge = (pattern.values.detach() != 0) & (row != column)
    distance = (embedding[row] - embedding[column]).square().sum(-1)
    distance = distance.to(pattern.dtype) * is_edge
    weight = torch.exp(-distance / _mean_over_edges(pattern, distance, is_edge)[row])
    return pattern.with_values(weight * is_edge)


def _mean_over_edges(pattern: SparseOperator, distance: Tensor, is_edge: Tensor) -> Tensor:
    """Each node's graph's mean squared distance over edges, `[node]`; one where all points coincide."""
    graph = torch.zeros_like(pattern.diagonal_position) if pattern.segment is None else pattern.segment
    num_graphs = pattern.num_segments or 1
    of_edge = graph[pattern.row]
    total = segment_sum(distance, of_edge, num_graphs)
    count = segment_sum(is_edge.to(distance.dtype), of_edge, num_graphs)
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

    def forward(self, pattern: SparseOperator, features: Tensor) -> SparseOperator:
        """The adjacency that the features induce on the edges of `pattern`."""
        return kernel_adjacency(pattern, self.layers(features))
