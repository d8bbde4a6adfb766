"""Ritz pairs, T as a matrix, and its powers."""

import numpy as np
import pytest
import torch

from graph_builders import (
    complete_edges,
    generator,
    matrix_with_spectrum,
    orthogonality_error,
    ragged_operator,
    random_operator,
    random_vector,
    tolerance,
)
from lanczosnet.affinity import DenseOperator, adjacency, normalized
from lanczosnet.krylov import component_ritz_pairs, lanczos, leading, matrix_powers, ritz, tridiagonal_matrix


@pytest.mark.parametrize("num_steps", [9, 14])
@pytest.mark.parametrize("storage", ["sparse", "dense", "segments"])
def test_pairs_of_a_full_krylov_space_are_eigenpairs(storage, num_steps, dtype, device):
    operator = random_operator(9, dtype, device)
    if storage == "dense":
        operator = DenseOperator(operator.dense())
    segment = torch.zeros(9, dtype=torch.long, device=device) if storage == "segments" else None
    pairs = ritz(lanczos(operator, random_vector(operator), num_steps, segment=segment))
    values = pairs.values[0] if storage == "segments" else pairs.values
    expected = torch.linalg.eigvalsh(operator.dense()).flip(0)
    torch.testing.assert_close(values[:9], expected, atol=tolerance(dtype), rtol=0)
    assert pairs.rank.flatten().tolist() == [9]
    assert orthogonality_error(pairs.vectors, 9) < tolerance(dtype)
    torch.testing.assert_close(
        (pairs.vectors * values) @ pairs.vectors.mT, operator.dense(), atol=tolerance(dtype), rtol=0
    )


def test_values_fall_and_padding_comes_last_even_below_zero(dtype, device):
    """Padding zeros must not be sorted in between negative and positive Ritz values."""
    S = normalized(adjacency(complete_edges(5).to(device), dtype=dtype), self_loops=False)
    pairs = ritz(lanczos(S, random_vector(S), 4))
    torch.testing.assert_close(pairs.values.tolist(), [1.0, -0.25, 0.0, 0.0], atol=tolerance(dtype), rtol=0)
    assert not pairs.vectors[:, 2:].any()
    assert int(pairs.rank) == 2


def test_a_true_zero_eigenvalue_is_told_from_padding(dtype, device):
    matrix = matrix_with_spectrum(torch.tensor([0.5, 0.0, -0.5]))
    S = DenseOperator(torch.nn.functional.pad(matrix, (0, 2, 0, 2)).to(device, dtype)[None])
    vector = torch.tensor([[1.0, 2.0, -1.0, 0.0, 0.0]], dtype=dtype, device=device)
    pairs = ritz(lanczos(S, vector, 5))
    assert pairs.rank.tolist() == [3]
    assert orthogonality_error(pairs.vectors, pairs.rank) < tolerance(dtype)
    torch.testing.assert_close(pairs.values[0].tolist(), [0.5, 0.0, -0.5, 0.0, 0.0], atol=tolerance(dtype), rtol=0)


def test_ragged_padded_and_single_graphs_have_the_same_pairs(dtype, device):
    ragged = ragged_operator(dtype, device, sizes=(12, 1, 10))
    padded = ragged.padded()
    in_segments = ritz(lanczos(ragged, None, 4))
    in_batch = ritz(lanczos(padded, None, 4))
    torch.testing.assert_close(in_segments.values, in_batch.values, atol=tolerance(dtype), rtol=0)
    torch.testing.assert_close(in_segments.rank, in_batch.rank)
    left, right = in_segments.vectors, in_batch.vectors[padded.mask]
    torch.testing.assert_close(left.abs(), right.abs(), atol=tolerance(dtype, 1024), rtol=0)
    assert torch.equal(in_segments.segment, ragged.segment)


def test_ritz_values_lie_within_the_spectrum(dtype, device):
    S = random_operator(60, dtype, device)
    values = ritz(lanczos(S, random_vector(S), 10)).values
    eigenvalues = torch.linalg.eigvalsh(S.dense())
    assert values.max() <= eigenvalues.max() + tolerance(dtype)
    assert values.min() >= eigenvalues.min() - tolerance(dtype)
    assert (values.diff() <= 0).all()


@pytest.mark.parametrize("exponents", [[1], [0], [1, 2, 3, 5, 7, 10, 20, 30], [30, 10, 20], [7, 7], range(1, 12)])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_powers_equal_repeated_products(exponents, batch, dtype, device):
    matrix = torch.randn(*batch, 4, 4, generator=generator(0)).to(device, dtype) / 4
    powers = matrix_powers(matrix, exponents)
    assert powers.shape == (*batch, len(exponents), 4, 4)
    for place, exponent in enumerate(exponents):
        expected = torch.linalg.matrix_power(matrix, exponent)
        torch.testing.assert_close(powers[..., place, :, :], expected, atol=tolerance(dtype), rtol=tolerance(dtype))


@pytest.mark.parametrize(
    ("exponents", "most"),
    [([1], 0), ([2], 1), ([10, 20, 30], 6), ([1, 2, 3, 5, 7, 10, 20, 30], 7), (range(1, 31), 29), ([64], 6)],
)
def test_powers_take_few_products(exponents, most):
    products = 0

    class Counting(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            nonlocal products
            products += func in (torch.Tensor.matmul, torch.Tensor.__matmul__, torch.matmul)
            return super().__torch_function__(func, types, args, kwargs or {})

    matrix_powers(torch.eye(3).as_subclass(Counting), exponents)
    assert products <= most


@pytest.mark.parametrize("exponents", [[-1], [1.5], [2, -3]])
def test_exponents_are_natural_numbers(exponents):
    with pytest.raises(ValueError, match="exponents must be non-negative integers, but are"):
        matrix_powers(torch.eye(2), exponents)


def test_powers_of_t_have_gradients(device):
    matrix = torch.randn(3, 3, dtype=torch.float64, generator=generator(0)).to(device).requires_grad_()
    assert torch.autograd.gradcheck(lambda m: matrix_powers(m, [1, 3, 5]), (matrix,))


def test_the_residual_is_no_part_of_t(dtype, device):
    result = lanczos(random_operator(10, dtype, device), None, 3)
    T = tridiagonal_matrix(result)
    assert result.off_diagonal[-1] > 0
    assert T.shape == (3, 3)
    assert T[2, 1] == T[1, 2] == result.off_diagonal[1]


@pytest.mark.parametrize("storage", ["single", "padded", "segments"])
def test_leading_pairs_are_those_of_largest_modulus_and_fall(storage, dtype, device):
    ragged = ragged_operator(dtype, device, sizes=(12, 2, 10))
    operator = ragged.padded() if storage == "padded" else ragged
    if storage == "single":
        operator = random_operator(12, dtype, device)
    pairs = ritz(lanczos(operator, None, 9))
    few = leading(pairs, 4)
    assert few.values.shape[-1] == few.vectors.shape[-1] == 4
    assert few.rank.tolist() == pairs.rank.clamp(max=4).tolist()
    rows = (few.values.reshape(-1, 4), pairs.values.reshape(-1, 9), pairs.rank.reshape(-1))
    for kept, found, rank in zip(*rows, strict=True):
        count = min(int(rank), 4)
        largest = sorted(found[:rank].tolist(), key=abs)[-count:]
        assert kept[:count].tolist() == sorted(largest, reverse=True)
        assert not kept[count:].any()
    operators = few.values if storage != "segments" else few.values[few.segment]
    scaled = few.vectors * (operators if storage != "padded" else operators.unsqueeze(-2))
    projected = (few.vectors * (operator @ few.vectors)).sum(-2)
    torch.testing.assert_close(projected, (few.vectors * scaled).sum(-2), atol=tolerance(dtype), rtol=0)


def test_leading_pairs_are_those_of_fewer_steps_from_a_filtered_start_vector(device):
    """An implicit restart: the filter's roots are the Ritz values that are left out."""
    operator = random_operator(60, torch.float64, device)
    longer = ritz(lanczos(operator, None, 12))
    kept = leading(longer, 8)
    start = operator @ torch.zeros(60, dtype=torch.float64, device=device) + 1.0
    for value in longer.values.tolist():
        if value not in kept.values.tolist():
            start = operator @ start - value * start
    again = ritz(lanczos(operator, start, 8))
    torch.testing.assert_close(again.values, kept.values, atol=1e-10, rtol=0)
    torch.testing.assert_close((again.vectors * kept.vectors).sum(0).abs(), torch.ones_like(kept.values))
    assert not torch.allclose(ritz(lanczos(operator, None, 8)).values, kept.values, atol=1e-3)


def test_all_pairs_lead_where_there_are_no_more(dtype, device):
    pairs = ritz(lanczos(random_operator(9, dtype, device), None, 5))
    assert leading(pairs, 5) is pairs


def test_no_leading_pairs_and_parts_of_a_step_are_refused(device):
    S = random_operator(9, torch.float64, device)
    with pytest.raises(ValueError, match="num_pairs must be at least 1, but is 0"):
        leading(ritz(lanczos(S, None, 5)), 0)
    with pytest.raises(ValueError, match=r"search_steps must be a whole number, but is 30.5"):
        component_ritz_pairs(S, 3, search_steps=30.5)
    component_ritz_pairs(S, 3, search_steps=np.int64(5))
