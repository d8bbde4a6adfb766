"""The Chebyshev-filtered block finds the leading pairs, repeated ones included."""

import pytest
import torch

from graph_builders import (
    assert_reproduced,
    generator,
    matrix_with_spectrum,
    orthogonality_error,
    path_edges,
    ragged_operator,
    random_operator,
    tolerance,
)
from lanczosnet.affinity import DenseOperator, SparseOperator, adjacency, normalized, random_walk
from lanczosnet.krylov import chebyshev_block


def features(operator, channels=40):
    return torch.randn(*operator.shape[:-1], channels, generator=generator(0)).to(operator.device, operator.dtype)


def with_leading(leading, bulk, dtype, device):
    """A matrix with some eigenvalues apart from a bulk within [-0.5, 0.5]."""
    spectrum = torch.cat([torch.tensor(leading, dtype=torch.float64), torch.linspace(-0.5, 0.5, bulk)])
    return DenseOperator(matrix_with_spectrum(spectrum).to(device, dtype))


def test_the_leading_pairs_are_those_of_eigh(dtype, device):
    operator = with_leading([1.0, 0.95, -0.97, 0.92], 60, dtype, device)
    pairs = chebyshev_block(operator, features(operator), 4, cutoff=0.6, degree=40)
    expected = [1.0, 0.95, 0.92, -0.97]
    torch.testing.assert_close(pairs.values.tolist(), expected, atol=tolerance(dtype), rtol=0)
    assert orthogonality_error(pairs.vectors) < tolerance(dtype)
    residual = operator @ pairs.vectors - pairs.vectors * pairs.values
    assert float(residual.abs().max()) < tolerance(dtype)
    assert int(pairs.rank) == 4


def test_repeated_eigenvalues_are_found_as_often_as_they_occur(dtype, device):
    """One Krylov space would see each of them once."""
    edges = torch.cat([path_edges(5) + 5 * k for k in range(6)], 1).to(device)
    operator = normalized(adjacency(edges, dtype=dtype))
    pairs = chebyshev_block(operator, features(operator), 6, degree=30, cutoff=0.8)
    torch.testing.assert_close(pairs.values.tolist(), [1.0] * 6, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("option", "weak", "strong"),
    [("degree", 2, 16), ("cutoff", 0.05, 0.5), ("oversampling", 0, 12)],
)
def test_every_option_sharpens_the_pairs(option, weak, strong, device):
    operator = with_leading([1.0, 0.9, 0.8, 0.7], 80, torch.float64, device)
    settings = {"degree": 8, "cutoff": 0.6, "oversampling": 4}
    exact = torch.tensor([1.0, 0.9, 0.8, 0.7], dtype=torch.float64, device=device)

    def error(value):
        pairs = chebyshev_block(operator, features(operator), 4, **(settings | {option: value}))
        return float((pairs.values - exact).abs().max())

    assert error(strong) < 0.5 * error(weak)


def test_the_radius_scales_the_filter(dtype, device):
    operator = with_leading([1.0, 0.95], 40, dtype, device)
    signal = features(operator)
    plain = chebyshev_block(operator, signal, 2)
    scaled = DenseOperator(4 * operator.dense())
    wide = chebyshev_block(scaled, signal, 2, radius=4.0)
    torch.testing.assert_close(wide.values, 4 * plain.values, atol=tolerance(dtype), rtol=tolerance(dtype))
    narrow = chebyshev_block(scaled, signal, 2, radius=4.0, cutoff=0.2)
    assert not torch.equal(narrow.values, wide.values)


def test_the_generator_draws_the_mixture(dtype, device):
    operator = random_operator(50, dtype, device)
    first, again, other = (
        chebyshev_block(operator, features(operator), 4, degree=3, generator=generator(seed)) for seed in (1, 1, 2)
    )
    assert_reproduced(first.values, again.values)
    assert not torch.equal(first.values, other.values)
    assert_reproduced(
        chebyshev_block(operator, features(operator), 4).values, chebyshev_block(operator, features(operator), 4).values
    )


def test_sparse_dense_and_batched_operators_agree(dtype, device):
    sparse = random_operator(30, dtype, device)
    assert isinstance(sparse, SparseOperator)
    signal = features(sparse)
    expected = chebyshev_block(sparse, signal, 3).values
    dense = chebyshev_block(DenseOperator(sparse.dense()), signal, 3).values
    batch = chebyshev_block(DenseOperator(torch.stack([sparse.dense()] * 2)), torch.stack([signal] * 2), 3)
    torch.testing.assert_close(dense, expected, atol=tolerance(dtype), rtol=0)
    assert batch.vectors.shape == (2, 30, 3)
    assert batch.rank.tolist() == [3, 3]
    torch.testing.assert_close(batch.values[1], expected, atol=tolerance(dtype), rtol=0)


def test_more_pairs_than_nodes_are_padded(dtype, device):
    operator = random_operator(4, dtype, device)
    pairs = chebyshev_block(operator, features(operator), 6)
    assert int(pairs.rank) == 4
    expected = torch.linalg.eigvalsh(operator.dense()).flip(0)
    torch.testing.assert_close(pairs.values[:4], expected, atol=tolerance(dtype), rtol=0)
    assert not pairs.values[4:].any()
    assert not pairs.vectors[:, 4:].any()


def test_fewer_channels_than_pairs_still_give_orthonormal_vectors(dtype, device):
    operator = random_operator(30, dtype, device)
    pairs = chebyshev_block(operator, features(operator, channels=2), 5)
    assert torch.isfinite(pairs.vectors).all()
    assert orthogonality_error(pairs.vectors) < tolerance(dtype)


def test_precision_survives_autocast(device):
    operator = random_operator(30, torch.float32, device)
    expected = chebyshev_block(operator, features(operator), 3)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        assert_reproduced(chebyshev_block(operator, features(operator), 3).vectors, expected.vectors)


CPU = torch.device("cpu")
OPERATOR = random_operator(5, torch.float32, CPU)


@pytest.mark.parametrize(
    ("operator", "signal", "options", "message"),
    [
        (random_walk(OPERATOR), torch.ones(5, 2), {}, "needs a symmetric operator: use normalized"),
        (ragged_operator(torch.float32, CPU), torch.ones(17, 2), {}, "use lanczos for ragged graphs"),
        (ragged_operator(torch.float32, CPU).padded(), torch.ones(4, 8, 2), {}, "use lanczos for ragged graphs"),
        (OPERATOR, torch.ones(4, 2), {}, r"features must have shape \[5, 'channel'\], but have \(4, 2\)"),
        (OPERATOR, torch.ones(5, 2), {"num_pairs": 0}, "num_pairs and degree must be at least 1"),
        (OPERATOR, torch.ones(5, 2), {"degree": 0}, "num_pairs and degree must be at least 1"),
        (OPERATOR, torch.ones(5, 2), {"cutoff": 1.0}, "between 0 and 1, but is 1.0"),
    ],
)
def test_a_wrong_argument_is_told_what_to_do(operator, signal, options, message):
    with pytest.raises(ValueError, match=message):
        chebyshev_block(operator, signal, **options)
