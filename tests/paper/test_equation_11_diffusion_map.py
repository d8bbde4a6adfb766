"""Eq. 11: Phi_t(i) = (lambda_1^t psi_1(i), ..., lambda_N^t psi_N(i)), with psi = D^-1/2 u."""

import networkx as nx
import numpy as np
import pytest
import torch

from lanczosnet import DiffusionMap
from lanczosnet.affinity import adjacency, normalized, random_walk
from lanczosnet.diffusion_maps import diffusion_map, right_eigenvectors


def karate() -> torch.Tensor:
    return torch.as_tensor(nx.to_numpy_array(nx.karate_club_graph()))


def test_psi_are_right_eigenvectors_of_the_random_walk() -> None:
    A = adjacency(karate())
    values, U = torch.linalg.eigh(normalized(A, self_loops=False).dense())
    psi = right_eigenvectors(U, A.degree())
    torch.testing.assert_close(random_walk(A).dense() @ psi, psi * values, rtol=0, atol=1e-13)


@pytest.mark.parametrize("t", [0, 1, 2, 7])
def test_diffusion_map_weighs_each_eigenvector_by_its_eigenvalue_to_the_t(t: int) -> None:
    values, psi = np.array([1.0, 0.5, -0.25]), np.arange(12.0).reshape(4, 3)
    expected = np.stack([values[pair] ** t * psi[:, pair] for pair in range(3)], axis=1)
    np.testing.assert_array_equal(diffusion_map(values, psi, t), expected)


@pytest.mark.parametrize("t", [0, 1, 5])
def test_the_estimator_embeds_by_equation_11(t: int) -> None:
    model = DiffusionMap(None, t=t, keep_trivial=True).fit_graph(karate())
    np.testing.assert_array_equal(model.embedding_, diffusion_map(model.eigenvalues_, model.eigenvectors_, t))
    assert (np.diff(model.eigenvalues_) <= 1e-12).all()
    P = random_walk(adjacency(karate())).dense().numpy()
    np.testing.assert_allclose(P @ model.eigenvectors_, model.eigenvectors_ * model.eigenvalues_, atol=1e-13)
