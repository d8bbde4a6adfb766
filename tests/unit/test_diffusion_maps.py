"""`lanczosnet.DiffusionMap`: scikit-learn's contract, kernels, graphs, new points, large graphs, bad input."""

import re
import subprocess
import sys
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from scipy.sparse.linalg import eigsh
from sklearn.base import clone
from sklearn.datasets import make_swiss_roll
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances, laplacian_kernel, rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch_geometric.data import Data

import lanczosnet
from graph_builders import path_edges
from lanczosnet import DiffusionMap
from lanczosnet.affinity import adjacency
from lanczosnet.diffusion_maps import draw_swiss_roll_and_digits, spectrum


class Laplacian:
    """A kernel function that prints the same in every test process."""

    def __call__(self, X, Y):
        return laplacian_kernel(X, Y)

    def __repr__(self) -> str:
        return "Laplacian()"


ESTIMATORS = [
    DiffusionMap(),
    DiffusionMap(kernel="self_tuning"),
    DiffusionMap(kernel=Laplacian(), n_neighbors=None),
    DiffusionMap(kernel="precomputed"),
    DiffusionMap(n_components=3, t=0, n_neighbors=4, alpha=0.5, keep_trivial=True),
]


@pytest.mark.filterwarnings("ignore:the graph has .* connected components")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_finds_nothing_to_object_to(estimator, check) -> None:
    check(estimator)


def points(n: int = 120, features: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, features))


def cloud(n: int = 120) -> np.ndarray:
    """Points off the origin, some of them duplicates."""
    X = 100.0 + points(n)
    X[-5:] = X[0]
    return X


def symmetric_operator(model: DiffusionMap) -> scipy.sparse.csr_array:
    root = scipy.sparse.diags_array(model.degree_**-0.5)
    return root @ model.affinity_matrix_ @ root


def test_clone_and_get_params_keep_every_setting() -> None:
    settings = {
        "n_components": 4,
        "t": 3,
        "kernel": "self_tuning",
        "n_neighbors": 9,
        "scale_neighbor": 5,
        "alpha": 0.5,
        "tol": 1e-6,
    }
    copy = clone(DiffusionMap(**settings))
    assert {name: copy.get_params()[name] for name in settings} == settings


def test_importing_the_package_loads_neither_torch_nor_scikit_learn() -> None:
    code = "import sys, lanczosnet; print([m for m in ('torch', 'sklearn', 'matplotlib') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_package_lists_its_lazy_names_and_refuses_others() -> None:
    assert "DiffusionMap" in dir(lanczosnet)
    with pytest.raises(AttributeError, match="DifusionMap"):
        _ = lanczosnet.DifusionMap


def dense_twin(A: np.ndarray, alpha: float, t: int) -> np.ndarray:
    """P^t of the alpha-normalised walk, from its definition."""
    q = A.sum(1)
    A = A / np.outer(q**alpha, q**alpha)
    return np.linalg.matrix_power(A / A.sum(1, keepdims=True), t)


def distances_of(P: np.ndarray, degree: np.ndarray) -> np.ndarray:
    return np.sqrt((((P[:, None] - P[None]) ** 2) / degree).sum(-1))


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_gaussian_kernel_with_alpha_normalisation_equals_its_dense_twin(alpha: float) -> None:
    X = points(60)
    model = DiffusionMap(None, t=2, n_neighbors=None, bandwidth=1.5, alpha=alpha).fit(X)
    A = np.exp(-euclidean_distances(X, squared=True) / 1.5)
    normalised = A / np.outer(A.sum(1) ** alpha, A.sum(1) ** alpha)
    np.testing.assert_allclose(model.affinity_matrix_.toarray(), normalised, rtol=1e-9)
    expected = distances_of(dense_twin(A, alpha, 2), normalised.sum(1))
    np.testing.assert_allclose(model.diffusion_distance(), expected, atol=1e-10 * expected.max())


@pytest.mark.parametrize("t", [0, 1, 3])
def test_points_of_the_fit_get_their_coordinates_again_with_all_components(t: int) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = DiffusionMap(None, t=t, n_neighbors=10).fit(X)
    assert model.embedding_.shape == (40, 39)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-8)


def test_alpha_of_none_is_one_for_points_and_zero_for_affinities() -> None:
    X = points(50)
    A = rbf_kernel(X)
    np.testing.assert_array_equal(DiffusionMap().fit_transform(X), DiffusionMap(alpha=1.0).fit_transform(X))
    plain = DiffusionMap(kernel="precomputed", alpha=0.0).fit_transform(A)
    np.testing.assert_array_equal(DiffusionMap(kernel="precomputed").fit_transform(A), plain)
    assert not np.allclose(DiffusionMap(kernel="precomputed", alpha=1.0).fit_transform(A), plain)


def test_laplace_beltrami_forgets_the_sampling_density_and_the_plain_walk_does_not() -> None:
    """On a circle the first two coordinates are cosine and sine: constant radius, however the circle is sampled."""
    rng = np.random.default_rng(0)
    angle = np.concatenate([rng.uniform(0, 2 * np.pi, 330), rng.normal(0, 0.5, 170)])
    circle = np.stack([np.cos(angle), np.sin(angle)], 1)

    def spread(alpha: float) -> float:
        radius = np.linalg.norm(
            DiffusionMap(alpha=alpha, n_neighbors=None, bandwidth=0.05).fit_transform(circle), axis=1
        )
        return float(radius.std() / radius.mean())

    assert spread(1.0) < 0.1
    assert spread(1.0) < spread(0.5) < spread(0.0)
    assert spread(0.0) > 0.3


def test_default_bandwidth_is_the_mean_squared_length_of_the_edges() -> None:
    X = points(80)
    model = DiffusionMap(n_neighbors=6, alpha=0.0).fit(X)
    A = model.affinity_matrix_.tocoo()
    squared = ((X[A.row] - X[A.col]) ** 2).sum(1)
    assert model.bandwidth_ == pytest.approx(squared[A.row != A.col].mean())
    np.testing.assert_allclose(A.data, np.exp(-squared / model.bandwidth_), rtol=1e-12)


@pytest.mark.parametrize("features", [3, 20])  # a tree searches few features, inner products many
def test_points_are_joined_where_one_is_among_the_nearest_of_the_other(features: int) -> None:
    X = 1000.0 + points(90, features)
    distance = np.linalg.norm(X[:, None] - X[None], axis=-1)
    radius = np.sort(distance, 1)[:, 5:6]
    expected = (distance <= radius) | (distance <= radius.T)
    found = DiffusionMap(n_neighbors=6).fit(X).affinity_matrix_.toarray() > 0
    np.testing.assert_array_equal(found, expected)


def test_self_tuning_kernel_equals_its_dense_twin_and_follows_the_scale() -> None:
    X = points(70)
    X[:35] *= 0.01  # a dense half
    distance = np.linalg.norm(X[:, None] - X[None], axis=-1)
    scale = np.sort(distance, 1)[:, 4]
    settings = {"kernel": "self_tuning", "n_neighbors": None, "alpha": 0.0}
    found = DiffusionMap(scale_neighbor=5, **settings).fit(X).affinity_matrix_.toarray()
    np.testing.assert_allclose(found, np.exp(-(distance**2) / np.outer(scale, scale)), rtol=1e-9, atol=1e-300)
    assert not np.allclose(found, DiffusionMap(scale_neighbor=9, **settings).fit(X).affinity_matrix_.toarray())


def test_given_kernel_is_used_on_the_neighbours_only() -> None:
    X = points(600, 2)  # more rows than one block of the kernel
    model = DiffusionMap(kernel=laplacian_kernel, n_neighbors=7, alpha=0.0).fit(X)
    A = model.affinity_matrix_.toarray()
    assert 7 * 600 <= model.affinity_matrix_.nnz < 20 * 600
    np.testing.assert_allclose(A[A > 0], laplacian_kernel(X)[A > 0], rtol=1e-12)


def test_points_precomputed_affinities_and_the_graph_of_them_agree() -> None:
    X = points(60)
    A = rbf_kernel(X, gamma=0.5)
    settings = {"n_components": 4, "t": 2, "alpha": 0.5}
    by_points = DiffusionMap(n_neighbors=None, bandwidth=2.0, **settings).fit(X)
    by_kernel = DiffusionMap(n_neighbors=None, kernel=lambda X, Y: rbf_kernel(X, Y, gamma=0.5), **settings).fit(X)
    by_affinity = DiffusionMap(kernel="precomputed", **settings).fit(A)
    by_sparse = DiffusionMap(kernel="precomputed", **settings).fit(scipy.sparse.csr_array(A))
    by_graph = DiffusionMap(**settings).fit_graph(A)
    for other in (by_kernel, by_affinity, by_sparse, by_graph):
        np.testing.assert_allclose(other.embedding_, by_points.embedding_, atol=1e-9)
        np.testing.assert_allclose(other.diffusion_distance(3, 8), by_points.diffusion_distance(3, 8), atol=1e-9)


@pytest.mark.parametrize("t", [0, 1, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("kernel", ["gaussian", "self_tuning", Laplacian(), "precomputed"], ids=str)
def test_transforming_the_training_points_gives_back_their_embedding(kernel, alpha: float, t: int) -> None:
    X = rbf_kernel(points()) if kernel == "precomputed" else cloud()
    model = DiffusionMap(3, t=t, kernel=kernel, n_neighbors=8, alpha=alpha).fit(X)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-10 * np.abs(model.embedding_).max())


def test_transforming_the_training_points_gives_them_back_on_a_grid_full_of_ties() -> None:
    X = np.stack(np.meshgrid(np.arange(12.0), np.arange(15.0)), -1).reshape(-1, 2)
    model = DiffusionMap(3, n_neighbors=6).fit(X)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-12)


def test_new_points_land_where_they_would_have_been_embedded() -> None:
    X, turn = make_swiss_roll(1500, random_state=0)
    old, new = X[:1200], X[1200:]
    model = DiffusionMap(n_neighbors=12).fit(old)
    joint = DiffusionMap(n_neighbors=12).fit_transform(X)[1200:]
    found = model.transform(new)
    for coordinate in range(2):
        assert abs(np.corrcoef(found[:, coordinate], joint[:, coordinate])[0, 1]) > 0.995
    nearest = euclidean_distances(found, model.embedding_).argmin(1)
    assert np.median(np.abs(turn[:1200][nearest] - turn[1200:])) < 0.1


@pytest.mark.parametrize("kernel", ["gaussian", "self_tuning"])
def test_a_point_far_from_the_data_is_embedded_with_its_nearest(kernel: str) -> None:
    X = points()
    model = DiffusionMap(kernel=kernel, bandwidth=0.1 if kernel == "gaussian" else None).fit(X)
    far = model.transform([[1e6, 0.0, 0.0]])
    psi = model.eigenvectors_[:, 1:]
    assert (psi.min(0) - 1e-12 <= far).all()
    assert (far <= psi.max(0) + 1e-12).all()
    if kernel == "gaussian":  # so far out, the nearest point has all the weight
        np.testing.assert_allclose(far[0], psi[X[:, 0].argmax()], rtol=1e-6)


def test_relabelling_the_points_relabels_the_embedding() -> None:
    X = points()
    order = np.random.default_rng(1).permutation(len(X))
    found = DiffusionMap(n_neighbors=8).fit_transform(X[order])
    np.testing.assert_allclose(found, DiffusionMap(n_neighbors=8).fit_transform(X)[order], atol=1e-10)


def graph_inputs(graph: nx.Graph) -> dict:
    matrix = nx.to_scipy_sparse_array(graph, dtype=float)
    edge_index = torch.as_tensor(np.stack(matrix.tocoo().coords)).long()
    return {
        "edge_index": edge_index,
        "data": Data(edge_index=edge_index, num_nodes=len(graph)),
        "scipy": matrix,
        "dense": matrix.toarray(),
        "operator": adjacency(edge_index, num_nodes=len(graph)),
        "dense_operator": adjacency(torch.as_tensor(matrix.toarray())),
    }


@pytest.mark.parametrize("form", list(graph_inputs(nx.path_graph(3))))
def test_every_form_of_a_graph_gives_the_walk_of_section_4(form: str) -> None:
    graph = nx.karate_club_graph()
    A = (nx.to_numpy_array(graph) > 0).astype(float)
    model = DiffusionMap(None, t=3).fit_graph(graph_inputs(nx.from_numpy_array(A))[form])
    expected = distances_of(dense_twin(A, 0.0, 3), A.sum(1))
    np.testing.assert_allclose(model.diffusion_distance(), expected, atol=1e-12)
    np.testing.assert_allclose(model.transform(A), model.embedding_, atol=1e-12)
    assert model.n_features_in_ == len(graph)


def test_edge_weights_and_self_loops_reach_the_walk() -> None:
    edge_index = torch.tensor([[0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0]])
    weight = torch.tensor([1.0, 1.0, 2.0, 2.0, 4.0, 4.0])
    found = DiffusionMap(1).fit_graph(edge_index, weight, num_nodes=3, self_loops=True).affinity_matrix_.toarray()
    np.testing.assert_array_equal(found, [[1, 1, 4], [1, 1, 2], [4, 2, 1]])


def test_new_nodes_are_the_mean_of_their_neighbours() -> None:
    model = DiffusionMap(2).fit_graph(nx.to_scipy_sparse_array(nx.karate_club_graph(), dtype=float))
    row = np.zeros((2, 34))
    row[0, [3, 5]] = 1.0
    found = model.transform(row)
    np.testing.assert_allclose(found[0], model.eigenvectors_[[3, 5], 1:].mean(0), atol=1e-14)
    np.testing.assert_array_equal(found[1], 0.0)  # no affinity at all
    np.testing.assert_allclose(model.transform(scipy.sparse.csr_array(row)), found)


def test_fitting_points_after_a_graph_forgets_the_graph() -> None:
    X = points(40)
    model = DiffusionMap().fit_graph(nx.to_numpy_array(nx.cycle_graph(5))).fit(X)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-12)


def test_isolated_nodes_lie_at_the_origin() -> None:
    graph = nx.disjoint_union(nx.path_graph(6), nx.empty_graph(2))
    model = DiffusionMap(3).fit_graph(nx.to_numpy_array(graph))
    np.testing.assert_array_equal(model.embedding_[6:], 0.0)
    assert np.isfinite(model.embedding_).all()
    P = np.zeros((8, 8))
    P[:6, :6] = dense_twin(nx.to_numpy_array(nx.path_graph(6)), 0.0, 1)
    full = DiffusionMap(None).fit_graph(nx.to_numpy_array(graph))
    expected = distances_of(P, np.where(full.degree_ > 0, full.degree_, 1.0))
    np.testing.assert_allclose(full.diffusion_distance(), expected, atol=1e-12)


def test_a_graph_without_edges_gives_zeros() -> None:
    model = DiffusionMap(2).fit_graph(np.zeros((5, 5)))
    np.testing.assert_array_equal(model.embedding_, np.zeros((5, 2)))


@pytest.mark.parametrize("size", [40, 700])  # diagonalised exactly, and by Lanczos
def test_components_are_told_apart_by_the_first_coordinates_with_a_warning(size: int) -> None:
    graph = nx.disjoint_union_all([nx.cycle_graph(size), nx.cycle_graph(size), nx.path_graph(size // 2)])
    with pytest.warns(UserWarning, match="3 connected components"):
        model = DiffusionMap(6).fit_graph(nx.to_scipy_sparse_array(graph, dtype=float))
    assert model.n_connected_components_ == 3
    np.testing.assert_array_equal(model.eigenvalues_[:3], 1.0)
    constant = model.eigenvectors_[:, 0]
    np.testing.assert_allclose(constant, constant[0], rtol=1e-12)
    parts = np.split(model.embedding_[:, :2], [size, 2 * size])
    assert all(np.ptp(part, axis=0).max() < 1e-12 for part in parts)
    assert len(np.unique([part[0].round(9) for part in parts], axis=0)) == 3
    # both cycles have each eigenvalue twice: four copies
    np.testing.assert_allclose(model.eigenvalues_[3:], np.cos(2 * np.pi / size), atol=1e-12)


def test_points_that_all_coincide_give_finite_numbers() -> None:
    for kernel in ("gaussian", "self_tuning"):
        for features in (2, 20):
            model = DiffusionMap(kernel=kernel, n_neighbors=4).fit(np.full((30, features), 3.7))
            assert np.isfinite(model.embedding_).all()
            assert model.n_connected_components_ == 1


LARGE_GRAPHS = {
    "cycle": nx.cycle_graph(1500),  # every eigenvalue twice
    "torus": nx.grid_2d_graph(30, 30, periodic=True),  # up to eight times
    "star": nx.star_graph(700),  # 1, -1, and zero 699 times
    "complete": nx.complete_graph(600),
    "bipartite": nx.complete_bipartite_graph(200, 400),
    "tree": nx.balanced_tree(2, 9),
}


@pytest.mark.parametrize("name", LARGE_GRAPHS)
def test_lanczos_finds_every_leading_pair_with_its_copies(name: str) -> None:
    A = nx.to_scipy_sparse_array(LARGE_GRAPHS[name], dtype=float)
    model = DiffusionMap(9).fit_graph(A)
    S = symmetric_operator(model)
    np.testing.assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(S.toarray())[::-1][:10], atol=1e-10)
    U = model.eigenvectors_ * np.sqrt(model.degree_)[:, None]
    np.testing.assert_allclose(U.T @ U, np.eye(10), atol=1e-10)
    np.testing.assert_allclose(S @ U, U * model.eigenvalues_, atol=2e-10)


def test_lanczos_agrees_with_arpack_on_the_swiss_roll() -> None:
    X, _ = make_swiss_roll(2000, random_state=0)
    model = DiffusionMap(5, n_neighbors=10).fit(X)
    values, vectors = eigsh(symmetric_operator(model), k=6, which="LA", v0=np.ones(len(X)))
    np.testing.assert_allclose(model.eigenvalues_, values[::-1], atol=1e-12)
    U = model.eigenvectors_ * np.sqrt(model.degree_)[:, None]
    np.testing.assert_allclose(np.abs(np.sum(U * vectors[:, ::-1], 0)), 1.0, atol=1e-10)


def test_lanczos_and_the_exact_spectrum_give_the_same_map(monkeypatch) -> None:
    X = points(400)
    exact = DiffusionMap(4, n_neighbors=12).fit(X)
    monkeypatch.setattr(spectrum, "MOST_DENSE_NODES", 0)
    iterated = DiffusionMap(4, n_neighbors=12).fit(X)
    np.testing.assert_allclose(iterated.embedding_, exact.embedding_, atol=1e-9)
    same = DiffusionMap(4, n_neighbors=12).fit(X)
    np.testing.assert_array_equal(same.embedding_, iterated.embedding_)
    other = DiffusionMap(4, n_neighbors=12, random_state=1).fit(X)
    assert not np.array_equal(other.embedding_, iterated.embedding_)
    np.testing.assert_allclose(other.embedding_, iterated.embedding_, atol=1e-9)


def test_a_loose_tolerance_is_used_and_a_hopeless_one_warns(monkeypatch) -> None:
    A = nx.to_scipy_sparse_array(nx.path_graph(800), dtype=float)
    loose = DiffusionMap(2, tol=1e-2).fit_graph(A)
    U = loose.eigenvectors_ * np.sqrt(loose.degree_)[:, None]
    residual = np.linalg.norm(symmetric_operator(loose) @ U - U * loose.eigenvalues_, axis=0).max()
    assert 1e-9 < residual < 1e-2
    monkeypatch.setattr(spectrum, "MOST_RUNS", 1)
    with pytest.warns(ConvergenceWarning, match="above tol"):
        DiffusionMap(2).fit_graph(A)


def test_time_weighs_the_coordinates_by_their_eigenvalues() -> None:
    X = points()
    once, thrice = DiffusionMap(3, t=1).fit(X), DiffusionMap(3, t=3).fit(X)
    np.testing.assert_allclose(thrice.embedding_, once.embedding_ * once.eigenvalues_[1:] ** 2, atol=1e-12)


def test_the_trivial_pair_is_left_out_unless_kept() -> None:
    X = points()
    without, kept = DiffusionMap(3).fit(X), DiffusionMap(4, keep_trivial=True).fit(X)
    np.testing.assert_allclose(kept.embedding_[:, 1:], without.embedding_, atol=1e-12)
    np.testing.assert_allclose(kept.embedding_[:, 0], kept.embedding_[0, 0], rtol=1e-12)
    np.testing.assert_allclose(kept.transform(X[:4]), kept.embedding_[:4], atol=1e-12)
    np.testing.assert_allclose(kept.diffusion_distance(), without.diffusion_distance(), atol=1e-12)


def test_diffusion_distance_takes_samples_arrays_and_all_pairs() -> None:
    model = DiffusionMap(3, t=2).fit(points())
    everything = model.diffusion_distance()
    assert model.diffusion_distance(2, 7) == pytest.approx(everything[2, 7])
    np.testing.assert_allclose(model.diffusion_distance([1, 2], [3, 4]), everything[[1, 2], [3, 4]], atol=1e-9)
    expected = np.linalg.norm(model.embedding_[2] - model.embedding_[7])
    assert model.diffusion_distance(2, 7) == pytest.approx(expected)
    with pytest.raises(ValueError, match="two samples"):
        model.diffusion_distance(1)


def test_the_examples_of_the_documentation_run() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "diffusion_maps.md"
    examples = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        exec(compile(example, str(page), "exec"), {})


def test_the_figure_is_one_picture_file(tmp_path) -> None:
    draw_swiss_roll_and_digits(tmp_path / "new" / "maps.png")  # a folder is made, as for all pictures
    assert (tmp_path / "new" / "maps.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1 or None, but is 0"),
        ({"n_components": 200}, "at most 119 components, but n_components=200"),
        ({"t": -1}, "t must be an integer of at least 0, but is -1"),
        ({"t": 0.5}, "t must be an integer"),
        ({"kernel": "gauss"}, "unknown kernel 'gauss': choose one of gaussian, self_tuning, precomputed"),
        ({"n_neighbors": 1}, "n_neighbors must be an integer of at least 2 or None"),
        ({"scale_neighbor": 0}, "scale_neighbor must be"),
        ({"bandwidth": 0.0}, "bandwidth must be a positive number"),
        ({"bandwidth": 1.0, "kernel": "self_tuning"}, "bandwidth belongs to kernel='gaussian'"),
        ({"alpha": 1.5}, r"alpha must lie in \[0, 1\]"),
        ({"tol": 0}, "tol must be"),
        ({"kernel": "precomputed"}, "should be a square matrix"),
        ({"kernel": lambda X, Y: -rbf_kernel(X, Y)}, "Negative values"),
        ({"kernel": lambda X, Y: rbf_kernel(X, Y) * (1 + X[:, :1] ** 2)}, "must be symmetric"),
        ({"kernel": lambda X, Y: rbf_kernel(X, Y) + np.nan}, "must be finite"),
        ({"kernel": lambda X, Y: rbf_kernel(X)[:, :3]}, "must return an array of shape"),
    ],
)
def test_bad_settings_say_what_was_given(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DiffusionMap(**settings).fit(points())


def test_bad_graphs_and_affinities_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="not symmetric"):
        DiffusionMap(1).fit_graph(torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(ValueError, match="must be symmetric"):
        DiffusionMap(1, kernel="precomputed").fit([[0.0, 1.0], [2.0, 0.0]])
    with pytest.raises(ValueError, match="Negative values"):
        DiffusionMap(1).fit_graph(-nx.to_numpy_array(nx.path_graph(4)))
    with pytest.raises(ValueError, match="at least two nodes"):
        DiffusionMap(1).fit_graph(np.zeros((1, 1)))
    with pytest.raises(ValueError, match="one graph"):
        DiffusionMap(1).fit_graph(torch.zeros(2, 3, 3))


def test_a_connected_graph_raises_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DiffusionMap().fit(points())


def test_a_graph_after_points_keeps_nothing_of_them():
    points = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=["a", "b", "c"])
    fitted = DiffusionMap(2, n_neighbors=5).fit(points).fit_graph(path_edges(9))
    assert not hasattr(fitted, "feature_names_in_")
    assert not hasattr(fitted, "bandwidth_")
    assert fitted.n_features_in_ == 9


def test_advice_on_components_is_for_what_was_fitted():
    apart = np.r_[np.zeros((5, 2)), np.full((5, 2), 100.0)] + np.arange(20).reshape(10, 2) / 50
    with pytest.warns(UserWarning, match="Raise n_neighbors to connect them"):
        DiffusionMap(1, n_neighbors=3).fit(apart)
    with pytest.warns(UserWarning, match=r"tell them apart. Embed them one by one"):
        DiffusionMap(1).fit_graph(torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]))
