"""Eq. 12: hat X = Lambda^t U^T X; in LanczosNet, V R^t V^T X projects onto the diffusion map at time t."""

import networkx as nx
import numpy as np
import pytest
import torch

from lanczosnet import DiffusionMap
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.diffusion_maps import diffusion_map, frequency_representation
from lanczosnet.krylov import lanczos, ritz, start


def signal(num_nodes: int, channels: int = 4) -> torch.Tensor:
    return torch.randn(num_nodes, channels, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def graph() -> torch.Tensor:
    """Random weights: all eigenvalues differ, so one Krylov space holds all of them."""
    rng = np.random.default_rng(3)
    weights = np.triu(rng.uniform(0.5, 1.5, (24, 24)) * (rng.uniform(size=(24, 24)) < 0.4), 1)
    weights += np.diag(np.full(23, 0.1), 1)
    return torch.as_tensor(weights + weights.T)


@pytest.mark.parametrize("t", [0, 1, 3])
def test_frequency_representation_is_the_fourier_transform_of_the_diffused_signal(t: int) -> None:
    S = normalized(adjacency(graph()), self_loops=False).dense()
    values, U = torch.linalg.eigh(S)
    X = signal(24)
    found = frequency_representation(values, U, X, t)
    torch.testing.assert_close(found, U.T @ (torch.linalg.matrix_power(S, t) @ X), rtol=0, atol=1e-13)
    in_numpy = frequency_representation(values.numpy(), U.numpy(), X.numpy(), t)
    np.testing.assert_allclose(in_numpy, found.numpy(), atol=1e-14)


@pytest.mark.parametrize("t", [1, 2, 5, 10])
def test_the_fixed_filter_r_to_the_t_projects_onto_the_diffusion_map_at_time_t(t: int) -> None:
    """V R^t V^T X = U (Lambda^t U^T X) = D^1/2 Phi_t psi^T D^1/2 X, the left side from Lanczos with full K."""
    A = adjacency(graph())
    S = normalized(A, self_loops=False)
    X = signal(24)
    first = start.random(S, torch.Generator().manual_seed(0))
    R, V, rank, _ = ritz(lanczos(S, first, 24))
    assert int(rank) == 24
    filtered = V @ frequency_representation(R, V, X, t)
    torch.testing.assert_close(filtered, torch.linalg.matrix_power(S.dense(), t) @ X, rtol=0, atol=1e-12)

    model = DiffusionMap(None, t=t, keep_trivial=True).fit_graph(A)
    root = np.sqrt(model.degree_)[:, None]
    projected = root * (model.embedding_ @ (model.eigenvectors_.T @ (root * X.numpy())))
    np.testing.assert_allclose(filtered.numpy(), projected, atol=1e-12)


@pytest.mark.parametrize("t", [1, 4, 16, 64])
def test_what_a_few_pairs_leave_out_falls_with_the_t_th_power_of_the_next_eigenvalue(t: int) -> None:
    """Section 4: lambda^t vanishes for the rest, so K < N pairs are enough at a large time."""
    S = normalized(adjacency(nx.to_scipy_sparse_array(nx.grid_2d_graph(8, 9), dtype=float))).dense()
    values, U = torch.linalg.eigh(S)
    order = values.abs().argsort(descending=True)
    leading, following = order[:12], order[12]
    X = signal(72)
    diffused = U[:, leading] @ frequency_representation(values[leading], U[:, leading], X, t)
    error = (diffused - torch.linalg.matrix_power(S, t) @ X).norm()
    assert error <= values[following].abs() ** t * X.norm() + 1e-12


def test_the_trivial_frequency_is_untouched_by_time() -> None:
    model = DiffusionMap(None, t=1, keep_trivial=True).fit_graph(graph())
    late = diffusion_map(model.eigenvalues_, model.eigenvectors_, 1000)
    np.testing.assert_allclose(late[:, 0], model.embedding_[:, 0], rtol=1e-15)
    assert np.abs(late[:, 1:]).max() < 1e-12
