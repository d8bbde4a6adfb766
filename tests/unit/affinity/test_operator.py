"""A sparse operator equals its dense twin, in value and in gradient, whatever it multiplies."""

import pytest
import torch
import torch.autograd.forward_ad as forward_mode

from graph_builders import (
    assert_reproduced,
    generator,
    path_edges,
    ragged_operator,
    random_edges,
    random_operator,
    random_vector,
    random_weights,
    single_operators,
    tolerance,
)
from lanczosnet.affinity import DenseOperator, adjacency, normalized


def directed_operator(dtype, device):
    edges = torch.tensor([[0, 0, 2, 3, 3], [1, 2, 1, 0, 3]], device=device)
    return adjacency(edges, torch.arange(1.0, 6.0, dtype=dtype, device=device), num_nodes=5, directed=True)


@pytest.mark.parametrize("make", [lambda *a: random_operator(12, *a), directed_operator], ids=["symmetric", "directed"])
@pytest.mark.parametrize("channels", [None, 1, 3, 0])
def test_a_sparse_product_equals_the_dense_one(make, channels, dtype, device):
    operator = make(dtype, device)
    shape = (operator.num_nodes,) if channels is None else (operator.num_nodes, channels)
    signal = torch.randn(shape, generator=generator(0)).to(device, dtype)
    torch.testing.assert_close(operator @ signal, operator.dense() @ signal)
    torch.testing.assert_close(operator.T @ signal, operator.dense().mT @ signal)
    torch.testing.assert_close(operator.T.T.dense(), operator.dense())


def test_the_transpose_of_a_symmetric_operator_is_itself(dtype, device):
    operator = random_operator(5, dtype, device)
    assert operator.T is operator
    dense = DenseOperator(operator.dense())
    assert dense.T is dense


def test_the_transpose_of_a_general_operator_keeps_its_diagonal(dtype, device):
    transposed = directed_operator(dtype, device).T
    one = torch.ones(5, dtype=dtype, device=device)
    expected = transposed.dense() + torch.eye(5, dtype=dtype, device=device)
    torch.testing.assert_close(transposed.plus_diagonal(one).dense(), expected)


def test_a_dense_batch_multiplies_vectors_and_signals(dtype, device):
    operator = ragged_operator(dtype, device).padded()
    vector = random_vector(operator)
    torch.testing.assert_close(operator @ vector, torch.einsum("gij,gj->gi", operator.dense(), vector))
    signal = vector.unsqueeze(-1).expand(-1, -1, 2)
    torch.testing.assert_close((operator @ signal)[..., 1], operator @ vector)


def test_a_dense_matrix_multiplies_vectors_and_signals(dtype, device):
    operator = DenseOperator(random_operator(6, dtype, device).dense())
    signal = torch.randn(6, 3, generator=generator(0)).to(device, dtype)
    torch.testing.assert_close((operator @ signal)[:, 0], operator @ signal[:, 0])


def test_a_signal_is_brought_into_the_type_of_the_operator(device):
    operator = random_operator(6, torch.float64, device)
    assert (operator @ torch.ones(6, device=device)).dtype == torch.float64


def test_padding_lays_out_the_graphs_one_by_one(dtype, device):
    ragged = ragged_operator(dtype, device)
    padded = ragged.padded()
    for index, single in enumerate(single_operators(ragged)):
        n = single.num_nodes
        torch.testing.assert_close(padded.dense()[index, :n, :n], single.dense())
        assert padded.mask[index].tolist() == [True] * n + [False] * (padded.num_nodes - n)
        assert not padded.dense()[index, n:].any()


def test_padding_follows_the_node_order_of_interleaved_graphs(dtype, device):
    edges = torch.tensor([[0, 2, 1, 3], [2, 0, 3, 1]], device=device)
    weights = torch.tensor([2.0, 2.0, 3.0, 3.0], dtype=dtype, device=device)
    padded = adjacency(edges, weights, batch=torch.tensor([0, 1, 0, 1], device=device)).padded()
    assert padded.dense().tolist() == [[[0, 2], [2, 0]], [[0, 3], [3, 0]]]


def test_padding_one_graph_gives_a_batch_of_one(dtype, device):
    operator = random_operator(4, dtype, device)
    assert torch.equal(operator.padded().dense()[0], operator.dense())


def test_padding_no_graph_gives_a_batch_of_none():
    no_edges = torch.zeros(2, 0, dtype=torch.long)
    assert adjacency(no_edges, batch=torch.zeros(0, dtype=torch.long)).padded().shape == (0, 0, 0)
    assert adjacency(no_edges, batch=torch.zeros(0, dtype=torch.long), num_graphs=2).padded().shape == (2, 0, 0)


def test_operators_move_between_types_and_devices(device):
    for operator in (ragged_operator(torch.float32, torch.device("cpu")), directed_operator(torch.float32, "cpu")):
        moved = operator.to(device, torch.float64)
        assert moved.dtype == torch.float64
        assert moved.device.type == device.type
        assert moved.symmetric == operator.symmetric
        assert moved.num_segments == operator.num_segments
        torch.testing.assert_close(moved.dense().cpu(), operator.dense().double())
        assert (moved @ random_vector(moved)).device.type == device.type
    padded = ragged_operator(torch.float32, torch.device("cpu")).padded().to(device)
    assert padded.mask.device.type == device.type


def test_conversion_keeps_the_gradient(device):
    values = torch.ones(7, device=device, requires_grad=True)
    operator = adjacency(path_edges(3).to(device)).with_values(values).to(torch.float64)
    (operator @ torch.ones(3, dtype=torch.float64, device=device)).sum().backward()
    assert values.grad.tolist() == [1.0] * 7


def test_an_operator_introduces_itself(device):
    text = repr(random_operator(4, torch.float32, device))
    assert text == f"SparseOperator(symmetric, shape=(4, 4), dtype=torch.float32, device={device.type}" + (
        ":0)" if device.type == "cuda" else ")"
    )
    assert "general" in repr(directed_operator(torch.float32, device))


@pytest.mark.parametrize("channels", [None, 3])
@pytest.mark.parametrize("directed", [False, True])
def test_gradients_of_a_sparse_product_are_those_of_the_dense_twin(channels, directed, dtype, device):
    edges = random_edges(10, seed=2).to(device)
    keep = torch.ones_like(edges[0], dtype=torch.bool) if not directed else edges[0] < edges[1] + 2
    edges = edges[:, keep]
    weights = random_weights(edges, seed=2, dtype=dtype).to(device)
    shape = (10,) if channels is None else (10, channels)
    x = torch.randn(shape, generator=generator(0)).to(device, dtype)
    cotangent = torch.randn(shape, generator=generator(1)).to(device, dtype)

    def gradients(multiply):
        inputs = weights.clone().requires_grad_(), x.clone().requires_grad_()
        return torch.autograd.grad((multiply(*inputs) * cotangent).sum(), inputs)

    def dense(weights, x):
        return torch.zeros(10, 10, dtype=dtype, device=device).index_put((edges[0], edges[1]), weights) @ x

    sparse_grads = gradients(lambda w, x: adjacency(edges, w, num_nodes=10, directed=directed) @ x)
    for sparse_grad, dense_grad in zip(sparse_grads, gradients(dense), strict=True):
        torch.testing.assert_close(sparse_grad, dense_grad)


def test_gradients_flow_through_the_normalisation(dtype, device):
    edges = random_edges(8, seed=4).to(device)
    weights = random_weights(edges, seed=4, dtype=dtype).to(device).requires_grad_()
    x = torch.randn(8, 2, generator=generator(0)).to(device, dtype)

    (normalized(adjacency(edges, weights)) @ x).square().sum().backward()
    sparse_grad, weights.grad = weights.grad, None
    A = torch.eye(8, dtype=dtype, device=device).index_put((edges[0], edges[1]), weights)
    scale = A.sum(1).rsqrt()
    ((scale[:, None] * A * scale) @ x).square().sum().backward()
    torch.testing.assert_close(sparse_grad, weights.grad)


def test_the_sum_of_a_product_can_be_differentiated(device):
    """Its incoming gradient is an expanded scalar without strides."""
    operator = random_operator(6, torch.float64, device)
    x = torch.randn(6, dtype=torch.float64, device=device, requires_grad=True)
    (operator @ x).sum().backward()
    torch.testing.assert_close(x.grad, operator.dense().sum(0))


def test_the_gradient_of_a_large_graph_needs_no_square_memory(device):
    """200,000 nodes squared would be 160 GB."""
    n = 200_000
    edges = torch.stack([torch.arange(n), torch.arange(n).roll(1)])
    edges = torch.cat([edges, edges.flip(0)], 1).to(device)
    weights = torch.ones(2 * n, device=device, requires_grad=True)
    x = torch.ones(n, 4, device=device, requires_grad=True)
    (normalized(adjacency(edges, weights)) @ x).square().sum().backward()
    assert torch.isfinite(weights.grad).all()
    assert weights.grad.shape == (2 * n,)
    assert x.grad.shape == (n, 4)


def test_products_keep_their_precision_under_autocast(device):
    sparse = random_operator(12, torch.float32, device)
    for operator in (sparse, DenseOperator(sparse.dense())):
        x = torch.randn(12, 3, device=device, requires_grad=True)
        expected = operator @ x
        expected_grad = torch.autograd.grad(expected.square().sum(), x)[0]
        with torch.autocast(device.type, dtype=torch.bfloat16):
            result = operator @ x
        result_grad = torch.autograd.grad(result.square().sum(), x)[0]
        assert_reproduced(result, expected)
        assert_reproduced(result_grad, expected_grad)


def test_a_sparse_backward_pass_inside_autocast_keeps_its_precision(device):
    operator = random_operator(12, torch.float32, device)
    x = torch.randn(12, 3, device=device, requires_grad=True)
    expected = torch.autograd.grad((operator @ x).sum(), x)[0]
    with torch.autocast(device.type, dtype=torch.bfloat16):
        assert_reproduced(torch.autograd.grad((operator @ x).sum(), x)[0], expected)


@pytest.mark.parametrize("loss", [torch.sum, lambda y: y.square().sum()], ids=["linear", "quadratic"])
def test_a_second_derivative_raises(loss, device):
    """Also of a loss linear in the product, whose incoming gradient is a constant."""
    operator = random_operator(6, torch.float64, device)
    values = operator.values.clone().requires_grad_()
    x = torch.ones(6, dtype=torch.float64, device=device, requires_grad=True)
    total = loss(operator.with_values(values) @ x) + values.square().sum()
    (gradient,) = torch.autograd.grad(total, values, create_graph=True)
    with pytest.raises(
        RuntimeError, match=r"second derivatives .* not implemented: call backward without create_graph"
    ):
        torch.autograd.grad(gradient.sum(), x)


def test_forward_mode_raises(device):
    operator = random_operator(6, torch.float64, device)
    x = random_vector(operator)
    with forward_mode.dual_level():
        dual_values = forward_mode.make_dual(operator.values, operator.values)
        with pytest.raises(NotImplementedError, match="jvp"):
            operator.with_values(dual_values) @ x
        with pytest.raises(NotImplementedError, match="jvp"):
            operator @ forward_mode.make_dual(x, x)


def test_functional_gradients_raise(device):
    operator = random_operator(6, torch.float64, device)
    with pytest.raises(RuntimeError):
        torch.func.grad(lambda x: (operator @ x).sum())(random_vector(operator))
    with pytest.raises(RuntimeError):
        torch.func.grad(lambda v: (operator.with_values(v) @ random_vector(operator)).sum())(operator.values)


def test_scaling_and_shifting_equal_their_dense_twins(dtype, device):
    operator = random_operator(7, dtype, device)
    left, right = random_vector(operator, 1), random_vector(operator, 2)
    for twin in (operator, DenseOperator(operator.dense())):
        scaled = twin.scaled(left, right)
        torch.testing.assert_close(scaled.dense(), left[:, None] * operator.dense() * right)
        assert not scaled.symmetric
        assert twin.scaled(left, left).symmetric
        torch.testing.assert_close(twin.scaled(None, right).dense(), operator.dense() * right)
        torch.testing.assert_close(twin.plus_diagonal(left).dense(), operator.dense() + torch.diag(left))
        torch.testing.assert_close((-twin).dense(), -operator.dense())
        torch.testing.assert_close(twin.degree(), operator.dense().sum(1))
        assert float(twin.largest_entry()) == float(operator.dense().abs().max())


def test_sampled_products_are_entries_of_the_full_product(dtype, device):
    operator = directed_operator(dtype, device)
    left, right = torch.randn(2, 5, 3, generator=generator(0)).to(device, dtype)
    sampled = operator.with_values(operator.sampled_product(left, right)).dense()
    pattern = operator.with_values(torch.ones_like(operator.values)).dense()
    torch.testing.assert_close(sampled, (left @ right.mT) * pattern)
    batch = ragged_operator(dtype, device).padded()
    pair = torch.randn(2, *batch.shape[:-1], 3, generator=generator(0)).to(device, dtype)
    torch.testing.assert_close(batch.sampled_product(*pair), pair[0] @ pair[1].mT)


@pytest.mark.parametrize("shape", [(5,), (6, 2, 2), (5, 6), ()])
def test_a_signal_of_the_wrong_shape_is_told_the_right_one(shape):
    operator = random_operator(6, torch.float32, torch.device("cpu"))
    with pytest.raises(ValueError, match=r"\(6, 6\) multiplies signals .* with 6 nodes, but got shape"):
        operator @ torch.ones(shape)


def test_symmetric_normalisation_is_symmetric_to_the_last_bit(dtype, device):
    dense = random_operator(30, dtype, device).dense()
    assert float((dense - dense.mT).abs().max()) <= tolerance(dtype, 1)


def test_of_a_large_matrix_the_first_entries_bound_its_norm(monkeypatch):
    monkeypatch.setattr("lanczosnet.affinity.sparse_operator.MOST_LOOKED_AT", 3)
    operator = random_operator(7, torch.float64, torch.device("cpu"))
    assert float(operator.largest_entry()) == float(operator.values[:3].abs().max())
