"""Algorithm 1, line by line, and what its lines 11 to 14 return."""

import numpy as np
import pytest
import torch
from torch_geometric.utils import to_scipy_sparse_matrix

from graph_builders import random_operator, random_vector, tolerance
from lanczosnet.affinity import DenseOperator, adjacency, normalized
from lanczosnet.krylov import lanczos, ritz, tridiagonal_matrix


def algorithm_1(S: np.ndarray, x: np.ndarray, K: int, epsilon: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As printed; returns Q, T and the last beta."""
    beta, q_before = 0.0, np.zeros_like(x)
    q = x / np.linalg.norm(x)
    Q, gammas, betas = [], [], []
    for _ in range(K):
        z = S @ q
        gamma = q @ z
        z = z - gamma * q - beta * q_before
        beta = np.linalg.norm(z)
        Q.append(q)
        gammas.append(gamma)
        betas.append(beta)
        if beta < epsilon:
            break
        q_before, q = q, z / beta
    T = np.diag(gammas) + np.diag(betas[:-1], 1) + np.diag(betas[:-1], -1)
    return np.stack(Q, 1), T, np.array(betas)


@pytest.mark.parametrize("reorthogonalize", [True, False])
@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_the_implementation_is_the_algorithm_as_printed(storage, reorthogonalize, dtype, device):
    S = random_operator(30, dtype, device)
    S = S if storage == "sparse" else DenseOperator(S.dense())
    x = random_vector(S)
    Q, T, betas = algorithm_1(S.dense().double().cpu().numpy(), x.double().cpu().numpy(), 8, 1e-10)
    result = lanczos(S, x, 8, reorthogonalize=reorthogonalize)
    close = {"atol": tolerance(dtype), "rtol": 0}
    torch.testing.assert_close(result.basis.cpu(), torch.as_tensor(Q).to(dtype), **close)
    torch.testing.assert_close(tridiagonal_matrix(result).cpu(), torch.as_tensor(T).to(dtype), **close)
    torch.testing.assert_close(result.off_diagonal.cpu(), torch.as_tensor(betas).to(dtype), **close)


def test_line_8_quits_when_beta_vanishes(dtype, device):
    """A star has three distinct eigenvalues, of which S with self-loops sees as many."""
    star = torch.tensor([[0, 0, 0, 0, 1, 2, 3, 4], [1, 2, 3, 4, 0, 0, 0, 0]], device=device)
    S = normalized(adjacency(star, dtype=dtype))
    x = random_vector(S)
    Q, _, _ = algorithm_1(S.dense().double().cpu().numpy(), x.double().cpu().numpy(), 5, 1e-6)
    result = lanczos(S, x, 5)
    assert int(result.steps) == Q.shape[1] == 3


def test_lines_13_and_14_return_the_ritz_pairs(dtype, device):
    S = random_operator(30, dtype, device)
    result = lanczos(S, random_vector(S), 8)
    pairs = ritz(result)
    R, B = torch.linalg.eigh(tridiagonal_matrix(result).double())
    torch.testing.assert_close(pairs.values.double(), R.flip(0), atol=tolerance(dtype), rtol=0)
    V = result.basis.double() @ B.flip(1)
    signs = (V * pairs.vectors).sum(0).sign()
    torch.testing.assert_close(pairs.vectors.double(), V * signs, atol=tolerance(dtype), rtol=0)


def test_the_krylov_space_is_the_span_of_the_powers(dtype, device):
    """span(Q) = span(x, S x, ..., S^(K-1) x)."""
    S = random_operator(20, dtype, device)
    x = random_vector(S)
    Q = lanczos(S, x, 4).basis.double()
    power = x.double()
    for _ in range(4):
        outside = power - Q @ (Q.mT @ power)
        assert float(outside.norm() / power.norm()) < tolerance(dtype, 8)
        power = S.to(torch.float64) @ power
    assert float((power - Q @ (Q.mT @ power)).norm() / power.norm()) > 1e-3


def test_powers_of_s_are_powers_of_the_ritz_values_at_full_rank(dtype, device):
    """S^t = V R^t V^T whenever the rank is N."""
    S = random_operator(10, dtype, device)
    pairs = ritz(lanczos(S, random_vector(S), 10))
    for power in (1, 5, 30):
        expected = torch.linalg.matrix_power(S.dense(), power)
        approximation = (pairs.vectors * pairs.values**power) @ pairs.vectors.mT
        torch.testing.assert_close(approximation, expected, atol=tolerance(dtype), rtol=0)


def test_a_scipy_graph_gives_what_its_edges_give(dtype):
    edges = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    from_scipy = adjacency(to_scipy_sparse_matrix(edges), dtype=dtype)
    result, expected = (lanczos(normalized(a), None, 3) for a in (from_scipy, adjacency(edges, dtype=dtype)))
    assert torch.equal(result.basis, expected.basis)
