"""The hand-written gradient of Lanczos equals autograd's and finite differences."""

import pytest
import torch
import torch.autograd.forward_ad as forward_mode

from graph_builders import (
    assert_reproduced,
    complete_edges,
    expander_edges,
    generator,
    random_edges,
    random_operator,
    random_vector,
    random_weights,
    relative_error,
    tolerance,
)
from lanczosnet.affinity import DenseOperator, adjacency, normalized
from lanczosnet.krylov import lanczos, matrix_powers, tridiagonal_matrix

ORDER_OF_SUMS = 1e-10  # a GPU adds in any order, so that two backward passes differ by rounding
STORAGES = ["sparse", "dense", "batch", "segments"]
OUTPUTS = ["basis", "diagonal", "off_diagonal"]


def graph_of(weights, storage):
    """S as a function of one weight per undirected edge, so that every perturbation is symmetric."""
    edges = random_edges(9, seed=6).to(weights.device)
    if storage == "segments":
        edges = torch.cat([edges, edges + 9], 1)
        batch = torch.arange(18, device=weights.device) // 9
        return normalized(adjacency(edges, torch.cat([weights, weights, 2 * weights, 2 * weights]), batch=batch))
    S = normalized(adjacency(edges, torch.cat([weights, weights])))
    if storage == "dense":
        return DenseOperator(S.dense())
    if storage == "batch":
        return DenseOperator(torch.stack([torch.nn.functional.pad(S.dense(), (0, 2, 0, 2)), padded_twin(weights)]))
    return S


def padded_twin(weights):
    edges = random_edges(9, seed=6).to(weights.device)
    S = normalized(adjacency(edges, torch.cat([2 * weights, 2 * weights])))
    return torch.nn.functional.pad(S.dense(), (0, 2, 0, 2))


def inputs(storage, dtype=torch.float64, device="cpu"):
    edges = random_edges(9, seed=6)
    weights = random_weights(edges, seed=6, dtype=dtype)[: edges.shape[1] // 2].to(device).requires_grad_()
    operator = graph_of(weights.detach(), storage)
    vector = random_vector(operator)
    if storage == "batch":
        vector[:, 9:] = 0
    return weights, vector.requires_grad_()


def run(weights, vector, storage, **options):
    mask = torch.ones_like(vector.detach())
    if storage == "batch":
        mask[:, 9:] = 0
    result = lanczos(graph_of(weights, storage), vector * mask, 5, **options)
    return result.basis, result.diagonal, result.off_diagonal


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("output", range(3), ids=OUTPUTS)
def test_the_adjoint_passes_gradcheck(storage, output, device):
    def outputs(weights, vector):
        return run(weights, vector, storage)[output]

    given = inputs(storage, device=device)
    assert torch.autograd.gradcheck(outputs, given, fast_mode=True, nondet_tol=ORDER_OF_SUMS)


def test_the_adjoint_passes_gradcheck_entry_by_entry(device):
    def all_outputs(weights, vector):
        basis, diagonal, off_diagonal = run(weights, vector, "sparse")
        return basis[::4], diagonal, off_diagonal

    assert torch.autograd.gradcheck(all_outputs, inputs("sparse", device=device), nondet_tol=ORDER_OF_SUMS)


@pytest.mark.parametrize("storage", STORAGES)
def test_the_adjoint_equals_autograd(storage, dtype, device):
    arguments = inputs(storage, dtype, device)

    def gradients(**options):
        outputs = run(*arguments, storage, **options)
        loss = sum((o * torch.randn(o.shape, generator=generator(i)).to(o)).sum() for i, o in enumerate(outputs))
        return torch.autograd.grad(loss, arguments)

    for adjoint, autograd in zip(gradients(), gradients(gradient="autograd"), strict=True):
        assert adjoint.abs().max() > 0
        assert relative_error(adjoint, autograd) < tolerance(dtype)


def test_a_product_function_has_autograds_gradient(device):
    weights, vector = inputs("dense", device=device)

    def gradients(as_function):
        S = graph_of(weights, "dense")
        result = lanczos(S.product if as_function else S, vector, 5)
        return torch.autograd.grad(result.basis[:, -1].sum() + result.diagonal.square().sum(), (weights, vector))

    for left, right in zip(gradients(True), gradients(False), strict=True):
        torch.testing.assert_close(left, right)


@pytest.mark.parametrize("gradient", ["adjoint", "autograd"])
@pytest.mark.parametrize("storage", STORAGES)
def test_gradients_stay_finite_after_a_breakdown(gradient, storage, dtype, device):
    """More steps than nodes, an isolated node, a graph whose start vector is zero."""
    weights, vector = inputs(storage, dtype, device)
    S = graph_of(weights, storage)
    start = vector * torch.ones_like(vector)
    if storage in ("batch", "segments"):
        start = start * (torch.arange(vector.shape[0], device=device) < len(vector) // 2).reshape(
            -1, *[1] * (vector.dim() - 1)
        )
    result = lanczos(S, start, 12, gradient=gradient)
    assert int(result.steps.max()) <= 9
    loss = result.basis.sum() + result.diagonal.sum() + result.off_diagonal.sum()
    for grad in torch.autograd.grad(loss, (weights, vector)):
        assert torch.isfinite(grad).all()


def test_breakdown_with_repeated_eigenvalues_has_finite_gradients(dtype, device):
    S = normalized(adjacency(complete_edges(6).to(device), dtype=dtype))
    values = S.values.clone().requires_grad_()
    result = lanczos(S.with_values(values), random_vector(S), 5)
    assert int(result.steps) == 2
    (result.basis.sum() + result.diagonal.sum()).backward()
    assert torch.isfinite(values.grad).all()


def test_full_rank_lanczos_differentiates_the_function_of_s_itself(dtype, device):
    """Q T^3 Q^T = S^3 once the basis spans the graph, so their gradients agree."""
    weights, vector = inputs("dense", dtype, device)
    cotangent = torch.randn(9, 9, generator=generator(0)).to(device, dtype)
    S = graph_of(weights, "dense")
    result = lanczos(S, vector, 9)
    T = tridiagonal_matrix(result)
    cube = result.basis @ T @ T @ T @ result.basis.mT
    expected = torch.linalg.matrix_power(S.dense(), 3)
    through_lanczos = torch.autograd.grad((cube * cotangent).sum(), weights, retain_graph=True)[0]
    direct = torch.autograd.grad((expected * cotangent).sum(), weights)[0]
    assert relative_error(through_lanczos, direct) < tolerance(dtype, 1e5)


@pytest.mark.parametrize("gradient", ["adjoint", "autograd"])
def test_a_restarted_basis_refuses_its_gradient(gradient, device):
    S = normalized(adjacency(complete_edges(6).to(device), dtype=torch.float64))
    values = S.values.clone().requires_grad_()
    for options in ({}, {"reorthogonalize": False}):
        result = lanczos(
            S.with_values(values), random_vector(S), 6, on_breakdown="restart", gradient=gradient, **options
        )
        for output in (result.basis, result.diagonal, result.off_diagonal):
            with pytest.raises(RuntimeError, match=r"restarted after a breakdown.*matrix_function, or use on_breakd"):
                output.sum().backward(retain_graph=True)


@pytest.mark.parametrize("gradient", ["adjoint", "autograd"])
def test_restart_has_a_gradient_where_nothing_was_restarted(gradient, device):
    weights, vector = inputs("sparse", device=device)

    def gradients(on_breakdown):
        result = lanczos(graph_of(weights, "sparse"), vector, 12, on_breakdown=on_breakdown, gradient=gradient)
        return torch.autograd.grad(result.diagonal.sum() + result.basis.sum(), (weights, vector))

    for left, right in zip(gradients("restart"), gradients("pad"), strict=True):
        torch.testing.assert_close(left, right, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("loss", [torch.sum, lambda q: q.square().sum()], ids=["linear", "quadratic"])
def test_a_second_derivative_raises(loss, device):
    weights, vector = inputs("sparse", device=device)
    total = loss(lanczos(graph_of(weights, "sparse"), vector, 4).diagonal) + vector.square().sum()
    (gradient,) = torch.autograd.grad(total, vector, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivatives"):
        torch.autograd.grad(gradient.sum(), vector)


def test_functional_transforms_and_forward_mode_raise(device):
    S = random_operator(6, torch.float64, device)
    vector = random_vector(S)
    for operator in (S, DenseOperator(S.dense())):

        def trace(v, operator=operator):
            return lanczos(operator, v, 3).diagonal.sum()

        for transform in (
            lambda f: torch.func.grad(f)(vector),
            lambda f: torch.func.jvp(f, (vector,), (vector,)),
            lambda f: torch.func.vmap(f)(vector.expand(2, -1)),
            lambda f: torch.func.hessian(f)(vector),
        ):
            with pytest.raises(RuntimeError):
                transform(trace)
        with forward_mode.dual_level(), pytest.raises(NotImplementedError, match="jvp"):
            trace(forward_mode.make_dual(vector, torch.ones_like(vector)))
    with forward_mode.dual_level(), pytest.raises(NotImplementedError, match="jvp"):
        lanczos(S.with_values(forward_mode.make_dual(S.values, S.values)), vector, 3, gradient="autograd")


def test_the_adjoint_keeps_its_precision_inside_autocast(device):
    for storage in STORAGES:
        weights, vector = inputs(storage, torch.float32, device)
        S = graph_of(weights.detach(), storage)

        def gradient(S=S, vector=vector):
            result = lanczos(S, vector, 5, working_dtype=torch.float32)
            return torch.autograd.grad(result.basis.square().sum() + result.diagonal.sum(), vector)[0]

        expected = gradient()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            assert_reproduced(gradient(), expected)


def test_gradients_arrive_in_the_types_of_the_inputs(device):
    weights, vector = inputs("sparse", torch.float32, device)
    result = lanczos(graph_of(weights, "sparse"), vector, 4)
    result.basis.sum().backward()
    assert weights.grad.dtype == vector.grad.dtype == torch.float32


def expander_gradient(S, num_steps, dtype, **options):
    """d/dS of <G, sum_p Q T^p Q^T X> for the long scales of the paper."""
    n = S.num_nodes
    values = S.values.to(dtype).requires_grad_()
    X, G = torch.randn(2, n, 2, generator=generator(5), dtype=torch.float64).to(S.device, dtype)
    vector = torch.randn(n, generator=generator(6), dtype=torch.float64).to(S.device, dtype)
    result = lanczos(S.with_values(values), vector, num_steps, working_dtype=dtype, **options)
    powers = matrix_powers(tridiagonal_matrix(result), range(1, 31)).sum(-3)
    loss = (G * (result.basis @ (powers @ (result.basis.mT @ X)))).sum()
    gradient = S.with_values(torch.autograd.grad(loss, values)[0].double())
    # Only symmetric perturbations make sense: compare the symmetric part, through products with random vectors.
    probe = torch.randn(n, 4, generator=generator(7), dtype=torch.float64).to(S.device)
    transposed = gradient.with_values(gradient.values, symmetric=False).T
    return gradient @ probe + transposed @ probe


@pytest.mark.slow
@pytest.mark.parametrize("num_steps", [20, 40])
def test_on_an_expander_the_float32_adjoint_holds_where_the_papers_recurrence_fails(num_steps, device):
    n = 20_000
    S = normalized(adjacency(expander_edges(n, 20).to(device), dtype=torch.float64))
    exact = expander_gradient(S, num_steps, torch.float64)
    assert relative_error(expander_gradient(S, num_steps, torch.float32), exact) < 1e-4
    paper = expander_gradient(S, num_steps, torch.float32, reorthogonalize=False)
    assert not relative_error(paper, exact) < 1e-2
