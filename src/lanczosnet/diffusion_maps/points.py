"""From points to an affinity: who is whose neighbour, and how near. One rule serves the data and points to come."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches

PointKernel = Callable[[np.ndarray, np.ndarray], np.ndarray]

ROWS_AT_ONCE = 512
NUMBERS_AT_ONCE = 2**22
# Two computations of one distance may differ by rounding; neither may lose the n-th neighbour.
SLACK = 1.0 + 1e-9


class Edges(NamedTuple):
    """Pairs of a query and a point of the data."""

    query: np.ndarray  # [edge]
    point: np.ndarray  # [edge]
    squared_distance: np.ndarray  # [edge]


class Neighborhoods:
    """Joins two points where one is among the other's `n_neighbors` nearest, itself counted; all pairs where None.

    For new points "nearest" means nearest in the data, so a point of the data joins the same ones whenever it is asked.
    """

    def __init__(self, points: np.ndarray, n_neighbors: int | None) -> None:
        self.points = points
        self.n_neighbors = None if n_neighbors is None else min(n_neighbors, len(points))
        # The search may compute distances by inner products, which lose digits far from the origin.
        self.center = np.median(points, axis=0)
        self.blur = 1e-6 * float(np.abs(points - self.center).max())
        self.search = NearestNeighbors().fit(points - self.center)
        self.radius = self.distance_to_nearest(points, self.n_neighbors)

    def distance_to_nearest(self, queries: np.ndarray, rank: int | None) -> np.ndarray:
        """The distance to the rank-th nearest point of the data, `[query]`; infinite where rank is None."""
        if rank is None:
            return np.full(len(queries), np.inf)
        rank = min(rank, len(self.points))
        nearest = self.search.kneighbors(queries - self.center, rank, return_distance=False)[:, -1]
        return np.sqrt(_squared_distance(queries, np.arange(len(queries)), self.points, nearest))

    def edges(self, queries: np.ndarray) -> Edges:
        """Every pair that is joined, in the order of the queries."""
        if self.n_neighbors is None:
            query, point = (index.ravel() for index in np.indices((len(queries), len(self.points))))
            return Edges(query, point, _squared_distance(queries, query, self.points, point))
        radius = self.distance_to_nearest(queries, self.n_neighbors)
        query, point = (np.concatenate(part) for part in zip(*self._candidates(queries, radius), strict=True))
        squared_distance = _squared_distance(queries, query, self.points, point)
        is_joined = np.sqrt(squared_distance) <= SLACK * np.maximum(radius[query], self.radius[point])
        return Edges(query[is_joined], point[is_joined], squared_distance[is_joined])

    def edges_within(self) -> Edges:
        """The edges of the data itself, each in both directions."""
        query, point, _ = self.edges(self.points)
        pattern = scipy.sparse.coo_array((np.ones(len(query)), (query, point)), shape=(len(self.points),) * 2)
        query, point = (pattern + pattern.T).tocsr().nonzero()
        return Edges(query, point, _squared_distance(self.points, query, self.points, point))

    def _candidates(self, queries: np.ndarray, radius: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """All pairs that are joined, and some at the rim that are not."""
        for rows in gen_batches(len(queries), ROWS_AT_ONCE):
            reach = max(radius[rows].max(), self.radius.max()) + self.blur
            near, found = self.search.radius_neighbors(queries[rows] - self.center, reach)
            query = np.repeat(np.arange(rows.start, rows.stop), [len(points) for points in found])
            point = np.concatenate(found)
            is_near = np.concatenate(near) <= np.maximum(radius[query], self.radius[point]) + self.blur
            yield query[is_near], point[is_near]


class GaussianKernel:
    """exp(-d^2 / epsilon), Eq. 9 without a learned map; epsilon is the mean of d^2 over the edges where not given."""

    def __init__(self, hoods: Neighborhoods, within: Edges, bandwidth: float | None) -> None:
        self.hoods = hoods
        self.bandwidth = _mean_over_edges(within) if bandwidth is None else float(bandwidth)

    def __call__(self, queries: np.ndarray, edges: Edges) -> scipy.sparse.csr_array:
        return _exponential_rows(edges, -edges.squared_distance / self.bandwidth, self.hoods, len(queries))


class SelfTuningKernel:
    """exp(-d^2 / (sigma_i sigma_j)), sigma_i the distance from point i to its `scale_neighbor`-th nearest."""

    def __init__(self, hoods: Neighborhoods, scale_neighbor: int) -> None:
        self.hoods = hoods
        self.scale_neighbor = scale_neighbor
        scale = hoods.distance_to_nearest(hoods.points, scale_neighbor)
        typical = float(np.median(scale[scale > 0])) if (scale > 0).any() else 1.0
        self.smallest = 1e-6 * typical  # where many points coincide
        self.scale = np.maximum(scale, self.smallest)

    def __call__(self, queries: np.ndarray, edges: Edges) -> scipy.sparse.csr_array:
        scale = np.maximum(self.hoods.distance_to_nearest(queries, self.scale_neighbor), self.smallest)
        exponent = -edges.squared_distance / (scale[edges.query] * self.scale[edges.point])
        return _exponential_rows(edges, exponent, self.hoods, len(queries))


class GivenKernel:
    """A function `(X, Y) -> [x, y]` of non-negative affinities, such as those of `sklearn.metrics.pairwise`."""

    def __init__(self, hoods: Neighborhoods, function: PointKernel) -> None:
        self.hoods = hoods
        self.function = function

    def __call__(self, queries: np.ndarray, edges: Edges) -> scipy.sparse.csr_array:
        query, point, _ = edges
        weights = np.empty(len(query))
        for rows in gen_batches(len(queries), ROWS_AT_ONCE):
            block = self._block(queries[rows])
            here = slice(*np.searchsorted(query, [rows.start, rows.stop]))
            weights[here] = block[query[here] - rows.start, point[here]]
        return _rows(weights, edges, self.hoods, len(queries))

    def _block(self, queries: np.ndarray) -> np.ndarray:
        block = np.asarray(self.function(queries, self.hoods.points), dtype=np.float64)
        expected = (len(queries), len(self.hoods.points))
        if block.shape != expected:
            raise ValueError(f"the kernel must return an array of shape {expected} here, but returned {block.shape}")
        return block


def _mean_over_edges(edges: Edges) -> float:
    between = edges.squared_distance[edges.query != edges.point]
    mean = float(between.mean()) if len(between) else 0.0
    return mean if mean > 0.0 else 1.0  # all points coincide: every weight is one, whatever the bandwidth


def _exponential_rows(
    edges: Edges, exponent: np.ndarray, hoods: Neighborhoods, num_queries: int
) -> scipy.sparse.csr_array:
    """exp(exponent) with every row's largest entry one.

    Within the data it is one already, on the diagonal. A far point's row would vanish; its probabilities do not.
    """
    largest = np.full(num_queries, -np.inf)
    np.maximum.at(largest, edges.query, exponent)
    return _rows(np.exp(exponent - largest[edges.query]), edges, hoods, num_queries)


def _rows(weights: np.ndarray, edges: Edges, hoods: Neighborhoods, num_queries: int) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array((weights, (edges.query, edges.point)), shape=(num_queries, len(hoods.points)))


def _squared_distance(X: np.ndarray, x: np.ndarray, Y: np.ndarray, y: np.ndarray) -> np.ndarray:
    """||X[x] - Y[y]||^2 per edge, by differences: exact, and the same in both directions."""
    result = np.empty(len(x))
    for part in gen_batches(len(x), max(1, NUMBERS_AT_ONCE // X.shape[1])):
        difference = X[x[part]] - Y[y[part]]
        result[part] = np.einsum("ed,ed->e", difference, difference)
    return result
