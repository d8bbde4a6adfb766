"""Equation 2: the tridiagonal T, with gamma on its diagonal and beta beside it."""

import torch

from graph_builders import ragged_operator, random_operator, random_vector, tolerance
from lanczosnet.krylov import Tridiagonalization, lanczos, tridiagonal_matrix


def test_t_has_gamma_on_the_diagonal_and_beta_beside_it(dtype, device):
    gamma = torch.tensor([1.0, 2.0, 3.0], dtype=dtype, device=device)
    beta = torch.tensor([4.0, 5.0, 6.0], dtype=dtype, device=device)  # the last one is the residual's length
    T = tridiagonal_matrix(Tridiagonalization(torch.eye(3), gamma, beta, torch.tensor(3)))
    assert T.tolist() == [[1, 4, 0], [4, 2, 5], [0, 5, 3]]
    assert T.dtype == dtype


def test_t_is_the_projection_of_s(dtype, device):
    """Q^T S Q = T."""
    S = random_operator(25, dtype, device)
    result = lanczos(S, random_vector(S), 7)
    projection = result.basis.mT @ S.dense() @ result.basis
    torch.testing.assert_close(projection, tridiagonal_matrix(result), atol=tolerance(dtype), rtol=0)


def test_a_batch_has_one_t_per_graph(dtype, device):
    ragged = ragged_operator(dtype, device, sizes=(6, 9, 2))
    padded = ragged.padded()
    T = tridiagonal_matrix(lanczos(padded, None, 4))
    assert T.shape == (3, 4, 4)
    Q = lanczos(padded, None, 4).basis
    torch.testing.assert_close(Q.mT @ padded.dense() @ Q, T, atol=tolerance(dtype), rtol=0)
    torch.testing.assert_close(tridiagonal_matrix(lanczos(ragged, None, 4)), T, atol=tolerance(dtype), rtol=0)


def test_betas_are_never_negative(dtype, device):
    S = random_operator(25, dtype, device)
    assert (lanczos(S, random_vector(S), 30).off_diagonal >= 0).all()
