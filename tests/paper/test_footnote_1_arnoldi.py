"""Footnote 1: for a matrix that is not symmetric, one can resort to the Arnoldi algorithm."""

import torch

from graph_builders import orthogonality_error, random_operator, random_vector, tolerance
from lanczosnet.affinity import random_walk
from lanczosnet.krylov import arnoldi, lanczos, tridiagonal_matrix


def test_on_a_symmetric_operator_arnoldi_is_lanczos(dtype, device):
    S = random_operator(25, dtype, device)
    x = random_vector(S)
    general, symmetric = arnoldi(S, x, 8), lanczos(S, x, 8)
    close = {"atol": tolerance(dtype), "rtol": 0}
    torch.testing.assert_close(general.basis, symmetric.basis, **close)
    torch.testing.assert_close(general.hessenberg, tridiagonal_matrix(symmetric), **close)
    torch.testing.assert_close(general.residual, symmetric.off_diagonal[-1], **close)
    assert int(general.steps) == int(symmetric.steps)


def test_the_random_walk_is_similar_to_s(dtype, device):
    """P = D^-1/2 S D^1/2 shares its eigenvalues, which a full Arnoldi run finds."""
    graph = random_operator(7, torch.float64, device)
    P = random_walk(graph).to(dtype)
    result = arnoldi(P, random_vector(P), 7)
    found = torch.linalg.eigvals(result.hessenberg.double().cpu()).real.sort().values
    scale = graph.degree().rsqrt()
    expected = torch.linalg.eigvalsh((scale[:, None] * graph.dense() * scale).cpu())
    torch.testing.assert_close(found, expected, atol=tolerance(dtype, 1024), rtol=0)


def test_h_is_the_projection_of_the_operator(dtype, device):
    P = random_walk(random_operator(20, dtype, device))
    result = arnoldi(P, random_vector(P), 6)
    assert orthogonality_error(result.basis) < tolerance(dtype, 8)
    projection = result.basis.mT @ P.dense() @ result.basis
    torch.testing.assert_close(projection, result.hessenberg, atol=tolerance(dtype), rtol=0)
