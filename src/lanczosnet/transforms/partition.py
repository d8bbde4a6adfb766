"""Spectral partition of graphs: k-means on leading Ritz vectors, for all components of a batch at once."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from lanczosnet.affinity import SparseOperator, adjacency, connected_components, normalized
from lanczosnet.backends.determinism import deterministic_algorithms
from lanczosnet.backends.segments import index_within_segment, segment_sum
from lanczosnet.krylov import component_ritz_pairs

# Up to this many nodes a component has exact eigenvectors, beyond it those of as many Lanczos steps.
NUM_STEPS = 128
MAX_ROUNDS = 50
# Distances that differ by less, relative to the largest of a component, are equal: rounding decides no cluster. Nodes
# that a symmetry of the graph exchanges are equally far from any mean.
TIE = 1e-9


class AddPartition(BaseTransform):
    """Partition every graph once and keep the clusters on the data, for `GPNN`.

    Adds `partition` `[node]`, the cluster of each node within its connected component; see `spectral_partition`.

    Args:
        num_partitions: clusters per component.
        seed: of the Lanczos start vector of large components: same seed, same clusters.
    """

    def __init__(self, num_partitions: int = 3, seed: int = 0) -> None:
        if num_partitions < 1:
            raise ValueError(f"num_partitions must be at least 1, but is {num_partitions}")
        self.num_partitions = num_partitions
        self.seed = seed

    def forward(self, data: Data) -> Data:
        A = adjacency(data.edge_index, data.get("edge_weight"), num_nodes=data.num_nodes)
        assert isinstance(A, SparseOperator)
        data.partition = spectral_partition(A, self.num_partitions, seed=self.seed)
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_partitions={self.num_partitions})"


def spectral_partition(adjacency: SparseOperator, num_partitions: int, *, seed: int = 0) -> Tensor:
    """The cluster of every node within its connected component, `[node]` integers below `num_partitions`.

    Small normalised cuts in the manner of Shi and Malik (2000): k-means on the leading eigenvectors of D^-1 (A + I).
    Components of at most `num_partitions` nodes stay whole.

    Args:
        adjacency: of a graph, or of a batch of them.
        num_partitions: clusters per component.
        seed: of the Lanczos start vector of large components; nothing else is random.
    """
    if not 1 <= num_partitions <= NUM_STEPS:
        raise ValueError(f"num_partitions must lie in 1..{NUM_STEPS}, but is {num_partitions}")
    # Deterministic sums: a rounding error may move a node to another cluster.
    with torch.no_grad(), deterministic_algorithms(adjacency.device):
        adjacency = adjacency.without_segments().to(torch.float64)
        S = normalized(adjacency)
        component, count = connected_components(S)
        place, size = index_within_segment(component, count)
        longest = int(size.max()) if len(size) else 0
        steps = max(min(longest, NUM_STEPS), num_partitions)  # more would be padding
        vectors = component_ritz_pairs(S, steps, _start(place, longest, seed)).vectors[:, :num_partitions]
        points = vectors / (1 + adjacency.degree()).sqrt().unsqueeze(-1)
        cluster = _kmeans(points, component, count, num_partitions)
        return torch.where((size > num_partitions)[component], cluster, 0)


def _start(place: Tensor, longest: int, seed: int) -> Tensor:
    """For every component the beginning of the same random sequence, so that it does not depend on the batch."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(longest)).to(place.device)[place]


def _kmeans(points: Tensor, component: Tensor, count: int, k: int) -> Tensor:
    """Lloyd's iteration in every component, from centres as far apart as can be: no random numbers."""
    tie = TIE * _largest(_from_mean(points, component, count), component, count)[component]
    centres = _far_apart(points, component, count, k, tie)  # [component, cluster, channel]
    label = torch.zeros_like(component)
    for _ in range(MAX_ROUNDS):
        previous, label = label, _nearest((points.unsqueeze(1) - centres[component]).square().sum(-1), tie)
        cluster = component * k + label
        members = torch.bincount(cluster, minlength=count * k).view(count, k, 1)
        sums = segment_sum(points, cluster, count * k).view_as(centres)
        centres = torch.where(members > 0, sums / members.clamp_min(1), centres)
        if label.equal(previous):
            break
    return label


def _nearest(distance: Tensor, tie: Tensor) -> Tensor:
    """The first of the centres, `[node, centre]`, that is as near as any."""
    is_near = distance <= (distance.amin(1) + tie).unsqueeze(1)
    return is_near.to(torch.uint8).argmax(1)


def _far_apart(points: Tensor, component: Tensor, count: int, k: int, tie: Tensor) -> Tensor:
    """The point farthest from its component's mean, then k - 1 times the point farthest from those chosen before.

    Of points that are equally far the first is chosen.
    """
    distance = _from_mean(points, component, count)
    nodes = torch.arange(len(points), device=points.device)
    centres = []
    for _ in range(k):
        is_highest = distance >= _largest(distance, component, count)[component] - tie
        chosen = nodes.new_full((count,), len(points)).scatter_reduce(
            0, component[is_highest], nodes[is_highest], "amin"
        )
        centres.append(points[chosen])
        gap = (points - centres[-1][component]).square().sum(-1)
        distance = gap if len(centres) == 1 else torch.minimum(distance, gap)
    return torch.stack(centres, dim=1)


def _from_mean(points: Tensor, component: Tensor, count: int) -> Tensor:
    """The squared distance of every point from the mean of its component."""
    members = torch.bincount(component, minlength=count).clamp_min(1).unsqueeze(-1)
    mean = segment_sum(points, component, count) / members
    return (points - mean[component]).square().sum(-1)


def _largest(distance: Tensor, component: Tensor, count: int) -> Tensor:
    return distance.new_zeros(count).scatter_reduce(0, component, distance, "amax")
