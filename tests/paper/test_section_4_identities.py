"""Section 4: the inner product and the distance of diffusion maps against powers of P, to float64 accuracy."""

import networkx as nx
import numpy as np
import pytest

from lanczosnet import DiffusionMap

TIMES = [1, 2, 20]


def graph_model(t: int) -> DiffusionMap:
    A = nx.to_numpy_array(nx.karate_club_graph())
    return DiffusionMap(None, t=t, keep_trivial=True).fit_graph(A)


def bipartite_model(t: int) -> DiffusionMap:
    """Eigenvalue -1 and repeated ones."""
    return DiffusionMap(None, t=t, keep_trivial=True).fit_graph(nx.to_numpy_array(nx.grid_2d_graph(5, 6)))


def points_model(t: int) -> DiffusionMap:
    X = np.random.default_rng(0).normal(size=(150, 3))
    return DiffusionMap(None, t=t, keep_trivial=True, n_neighbors=10, alpha=0.5).fit(X)


def self_tuning_model(t: int) -> DiffusionMap:
    X = np.random.default_rng(1).normal(size=(600, 2))  # more than are diagonalised when only a few pairs are wanted
    return DiffusionMap(None, t=t, keep_trivial=True, kernel="self_tuning").fit(X)


MODELS = [graph_model, bipartite_model, points_model, self_tuning_model]


def walk(model: DiffusionMap) -> np.ndarray:
    """P^t, from the affinity itself."""
    A = model.affinity_matrix_.toarray()
    return np.linalg.matrix_power(A / A.sum(1, keepdims=True), model.t)


@pytest.mark.parametrize("t", TIMES)
@pytest.mark.parametrize("build", MODELS)
def test_inner_products_of_the_map_are_those_of_the_walks_probabilities(build, t: int) -> None:
    """sum_k P^t_ik P^t_jk / D_kk = <Phi_t(i), Phi_t(j)>."""
    model = build(t)
    P, Phi = walk(model), model.embedding_
    expected = (P / model.degree_) @ P.T
    np.testing.assert_allclose(Phi @ Phi.T, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("t", TIMES)
@pytest.mark.parametrize("build", MODELS)
def test_squared_distances_are_those_between_the_walks_probability_clouds(build, t: int) -> None:
    """||Phi_t(i) - Phi_t(j)||^2 = sum_k (P^t_ik - P^t_jk)^2 / D_kk."""
    model = build(t)
    P, degree = walk(model), model.degree_
    scale = (P**2 / degree).sum(1).max()
    rng = np.random.default_rng(2)
    i, j = rng.integers(len(P), size=(2, 500))
    expected = ((P[i] - P[j]) ** 2 / degree).sum(1)
    np.testing.assert_allclose(model.diffusion_distance(i, j) ** 2, expected, rtol=0, atol=1e-13 * scale)


def test_a_few_pairs_give_the_distance_at_a_large_time() -> None:
    A = nx.to_numpy_array(nx.karate_club_graph()) + np.eye(34)
    full, few = (DiffusionMap(count, t=16).fit_graph(A) for count in (None, 5))
    exact, truncated = full.diffusion_distance(), few.diffusion_distance()
    assert (truncated <= exact + 1e-9).all()
    assert np.abs(truncated - exact).max() < 1e-2 * exact.max()
