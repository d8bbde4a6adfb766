"""How far Q T Q^T is from S."""

import math

import pytest
import torch

from graph_builders import complete_edges, ragged_operator, random_operator, random_vector, single_operators
from lanczosnet.affinity import DenseOperator, adjacency, normalized
from lanczosnet.krylov import approximation_error, error_bound, lanczos, tridiagonal_matrix

ROOT_OF_ROUNDING = 1e-7  # of what sparse operators add up in float64


def dense_error(operator, result):
    Q, T = result.basis.double(), tridiagonal_matrix(result).double()
    return torch.linalg.matrix_norm(operator.dense().double() - Q @ T @ Q.mT)


def test_the_error_of_one_graph_is_the_dense_one(dtype, device):
    sparse = random_operator(30, dtype, device)
    for operator in (sparse, DenseOperator(sparse.dense())):
        result = lanczos(operator, random_vector(operator), 6)
        error = approximation_error(operator, result)
        torch.testing.assert_close(error, dense_error(operator, result), atol=0, rtol=1e-5)
        assert error.shape == ()


def test_ragged_and_padded_graphs_have_one_error_each(dtype, device):
    ragged = ragged_operator(dtype, device, sizes=(12, 1, 9))
    in_segments = approximation_error(ragged, lanczos(ragged, None, 4))
    padded = ragged.padded()
    in_batch = approximation_error(padded, lanczos(padded, None, 4))
    expected = [dense_error(single, lanczos(single, None, 4)) for single in single_operators(ragged)]
    torch.testing.assert_close(in_batch, torch.stack(expected), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(in_segments, in_batch, atol=ROOT_OF_ROUNDING, rtol=1e-5)


def test_a_full_krylov_space_leaves_no_error(dtype, device):
    operator = random_operator(8, dtype, device)
    result = lanczos(operator, random_vector(operator), 8)
    small = 100 * torch.finfo(dtype).eps
    assert float(approximation_error(operator, result)) < small + ROOT_OF_ROUNDING
    assert float(approximation_error(DenseOperator(operator.dense()), result)) < small


def test_repeated_eigenvalues_leave_an_error_that_restarting_removes(dtype, device):
    S = normalized(adjacency(complete_edges(6).to(device), dtype=dtype), self_loops=False)
    padded = lanczos(S, random_vector(S), 6)
    expected = math.sqrt(4) / 5  # -1/5 four times too few
    assert float(approximation_error(S, padded)) == pytest.approx(expected, rel=1e-5)
    restarted = lanczos(S, random_vector(S), 6, on_breakdown="restart")
    assert float(approximation_error(S, restarted)) < 100 * torch.finfo(dtype).eps + ROOT_OF_ROUNDING


@pytest.mark.parametrize("num_steps", [2, 12, 24, 28, 30])
def test_a_run_in_single_precision_has_the_error_of_its_own_q_and_t(num_steps, device):
    """The twin in float64 says what the difference of squares would round away: errors of 1e-6."""
    sparse = random_operator(30, torch.float32, device)
    result = lanczos(sparse, random_vector(sparse), num_steps)
    error, exact = approximation_error(sparse, result), dense_error(sparse, result)
    torch.testing.assert_close(error, exact, atol=ROOT_OF_ROUNDING, rtol=1e-5)
    ragged = ragged_operator(torch.float32, device, sizes=(30, 1, 12))
    each = approximation_error(ragged, found := lanczos(ragged, None, num_steps))
    batch = approximation_error(ragged.padded(), lanczos(ragged.padded(), None, num_steps))
    assert found.segment is not None
    torch.testing.assert_close(each, batch, atol=1e-6, rtol=1e-5)


def test_the_bound_looks_at_one_graph():
    ragged = ragged_operator(torch.float64, torch.device("cpu"))
    for operator in (ragged, ragged.padded()):
        with pytest.raises(ValueError, match="one graph: take one out of the batch first"):
            error_bound(operator, lanczos(operator, None, 3))


def test_the_bound_of_a_zero_start_is_the_whole_norm(device):
    operator = random_operator(6, torch.float64, device)
    zero = torch.zeros(6, dtype=torch.float64, device=device)
    report = error_bound(operator, lanczos(operator, zero, 3, validate=False))
    norm = float(torch.linalg.matrix_norm(operator.dense()))
    assert report.error == pytest.approx(norm)
    assert report.projection_error == pytest.approx(norm)
    assert report.residual == 0
    assert report.bound == math.inf
