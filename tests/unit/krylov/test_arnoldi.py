"""Arnoldi: the contract of Lanczos without symmetry."""

import pytest
import torch

from graph_builders import (
    assert_reproduced,
    complete_edges,
    generator,
    orthogonality_error,
    path_edges,
    ragged_operator,
    random_operator,
    random_vector,
    tolerance,
)
from lanczosnet.affinity import DenseOperator, adjacency, random_walk
from lanczosnet.krylov import arnoldi


def directed_operator(dtype, device, num_nodes=15):
    edges = torch.randint(num_nodes, (2, 4 * num_nodes), generator=generator(0)).to(device)
    weights = torch.rand(4 * num_nodes, generator=generator(1)).to(device, dtype)
    return random_walk(adjacency(edges, weights, num_nodes=num_nodes, directed=True))


def recurrence_error(operator, result):
    A, Q, H = operator.dense().double(), result.basis.double(), result.hessenberg.double()
    residual = A @ Q - Q @ H
    gap = residual[..., -1].norm(dim=-1) - result.residual.double()
    return max(float(residual[..., :-1].abs().max()), float(gap.abs().max()))


@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_the_basis_is_orthonormal_and_satisfies_the_recurrence(storage, dtype, device):
    operator = directed_operator(dtype, device)
    operator = operator if storage == "sparse" else DenseOperator(operator.dense(), symmetric=False)
    result = arnoldi(operator, random_vector(operator), 6)
    assert result.basis.shape == (15, 6)
    assert result.hessenberg.shape == (6, 6)
    assert result.basis.dtype == result.hessenberg.dtype == dtype
    assert orthogonality_error(result.basis) < tolerance(dtype, 8)
    assert recurrence_error(operator, result) < tolerance(dtype, 16)
    assert not result.hessenberg.tril(-2).any()


def test_more_steps_than_nodes_are_padded(dtype, device):
    operator = directed_operator(dtype, device, num_nodes=6)
    result = arnoldi(operator, random_vector(operator), 9)
    steps = int(result.steps)
    assert steps <= 6
    assert not result.basis[:, steps:].any()
    assert not result.hessenberg[steps:].any()
    assert not result.hessenberg[:, steps:].any()
    assert float(result.residual) == 0
    assert torch.isfinite(result.hessenberg).all()
    assert recurrence_error(operator, result) < tolerance(dtype)


def test_a_padded_batch_equals_ragged_segments(dtype, device):
    ragged = random_walk(ragged_operator(dtype, device, sizes=(9, 1, 7)))
    padded = ragged.padded()
    assert not padded.symmetric
    vector = random_vector(ragged)
    padded_vector = torch.zeros(padded.shape[:-1], dtype=dtype, device=device)
    padded_vector[padded.mask] = vector
    in_segments, in_batch = arnoldi(ragged, vector, 4), arnoldi(padded, padded_vector, 4)
    assert in_segments.steps.tolist() == in_batch.steps.tolist() == [4, 1, 4]
    torch.testing.assert_close(in_segments.hessenberg, in_batch.hessenberg, atol=tolerance(dtype), rtol=0)
    torch.testing.assert_close(in_segments.residual, in_batch.residual, atol=tolerance(dtype), rtol=0)
    torch.testing.assert_close(in_segments.basis, in_batch.basis[padded.mask], atol=tolerance(dtype), rtol=0)


def test_an_eigenvector_ends_at_once(dtype, device):
    """The random walk leaves the constant vector where it is."""
    P = random_walk(adjacency(path_edges(20).to(device), dtype=dtype))
    result = arnoldi(P, None, 5)
    assert int(result.steps) == 1
    torch.testing.assert_close(result.hessenberg[0, 0].item(), 1.0, atol=tolerance(dtype), rtol=0)
    assert not result.basis[:, 1:].any()


def test_a_function_serves_as_operator(dtype, device):
    operator = directed_operator(dtype, device)
    vector = random_vector(operator)
    result = arnoldi(lambda x: operator @ x, vector, 5)
    torch.testing.assert_close(
        result.hessenberg, arnoldi(operator, vector, 5).hessenberg, atol=tolerance(dtype), rtol=tolerance(dtype)
    )
    with pytest.raises(ValueError, match="pass a start vector"):
        arnoldi(operator.product)


def test_gradients_pass_gradcheck(device):
    operator = directed_operator(torch.float64, device, num_nodes=6)
    values = operator.values.clone().requires_grad_()
    vector = random_vector(operator).requires_grad_()

    def decompose(values, vector):
        result = arnoldi(operator.with_values(values), vector, 3)
        return result.basis, result.hessenberg, result.residual

    assert torch.autograd.gradcheck(decompose, (values, vector), fast_mode=True)


def test_gradients_stay_finite_after_a_breakdown(dtype, device):
    P = random_walk(adjacency(complete_edges(5).to(device), dtype=dtype))
    values = P.values.clone().requires_grad_()
    result = arnoldi(P.with_values(values), random_vector(P), 5)
    assert int(result.steps) == 2
    (result.basis.sum() + result.hessenberg.sum()).backward()
    assert torch.isfinite(values.grad).all()


def test_the_working_type_and_autocast_are_honoured(device):
    operator = random_operator(20, torch.float32, device)
    exact = arnoldi(operator.to(torch.float64), None, 8)
    fine, coarse = arnoldi(operator, None, 8), arnoldi(operator, None, 8, working_dtype=torch.float32)
    assert (fine.basis - exact.basis).abs().max() <= 2**-24
    assert (coarse.basis - exact.basis).abs().max() > 2**-24
    with torch.autocast(device.type, dtype=torch.bfloat16):
        assert_reproduced(arnoldi(operator, None, 8).basis, fine.basis)
