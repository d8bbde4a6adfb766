"""The kernels for batches of small graphs are the iteration and its adjoint, operation by operation."""

import pytest
import torch

from forced import forced, implementation
from graph_builders import generator
from interpreted import HAS_TRITON, call_interpreted, needs_triton
from lanczosnet.affinity import DenseOperator, adjacency, normalized
from lanczosnet.backends import REFERENCE, conditions, serves, use_backend
from lanczosnet.backends.conditions import TILE
from lanczosnet.krylov import lanczos
from lanczosnet.krylov.adjoint import lanczos_adjoint
from lanczosnet.krylov.inner_product import (
    HermitianInnerProduct,
    RangeInnerProduct,
    SegmentInnerProduct,
    WholeInnerProduct,
)
from lanczosnet.krylov.iteration import PreallocatedBasis, RecordedBasis, iterate
from lanczosnet.krylov.setup import prepare

needs_cuda = pytest.mark.skipif(not (torch.cuda.is_available() and HAS_TRITON), reason="needs a GPU and Triton")


def graphs(num_nodes: int) -> DenseOperator:
    """S of a random graph, a ring, a clique, a padded path, and nothing at all: four of five break down early."""
    A = torch.zeros(5, num_nodes, num_nodes, dtype=torch.float64)
    A[0] = torch.rand(num_nodes, num_nodes, generator=generator(0), dtype=torch.float64)
    ring = torch.arange(num_nodes)
    A[1, ring, (ring + 1) % num_nodes] = 1.0
    A[2] = 1.0
    A[3, 0, 1] = A[3, 1, 2] = 1.0
    mask = torch.ones(5, num_nodes, dtype=torch.float64)
    mask[3, 3:], mask[4] = 0.0, 0.0
    A = (A + A.mT) * (1 - torch.eye(num_nodes)) * mask.unsqueeze(1) * mask.unsqueeze(2)
    return normalized(DenseOperator(A, mask=mask), validate=False)


def compare_with_plain_pytorch(device: str = "cpu") -> None:
    inner = WholeInnerProduct()
    for num_nodes, num_steps in ((6, 4), (5, 8), (20, 17)):
        S = graphs(num_nodes).to(device)
        start = torch.rand(5, num_nodes, generator=generator(1), dtype=torch.float64).to(device) * S.mask
        setup = prepare(S, start, num_steps, None, torch.float64, None, validate=False)
        basis = PreallocatedBasis(setup.start, num_steps + 1)
        expected = iterate(S.product, setup.start, num_steps, inner, basis, breakdown=setup.breakdown)
        iteration = implementation("lanczos_iteration", "triton").load()
        found = iteration(S, setup.start, num_steps, inner, setup.breakdown)
        assert found[-1].tolist() == expected.steps.tolist()
        torch.testing.assert_close(found, (basis.block, *expected), atol=1e-10, rtol=1e-10)
        shapes = ((*expected.diagonal.shape, num_nodes), expected.diagonal.shape, expected.diagonal.shape)
        grads = [torch.randn(s, generator=generator(2), dtype=torch.float64).to(device) for s in shapes]
        arguments = (S, inner, basis.block, expected.diagonal, expected.off_diagonal, *grads)
        sweep = implementation("lanczos_adjoint", "triton").load()
        with use_backend(REFERENCE):
            plain = lanczos_adjoint(*arguments)
        torch.testing.assert_close(sweep(*arguments), plain, atol=1e-9, rtol=1e-9)


@pytest.mark.slow
@needs_triton
def test_the_kernels_are_plain_pytorch_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_with_plain_pytorch")


@needs_cuda
def test_the_kernels_are_plain_pytorch() -> None:
    compare_with_plain_pytorch("cuda")


@needs_cuda
def test_the_gradient_of_a_batch_is_that_of_autograd() -> None:
    results = []
    for gradient in ("adjoint", "autograd"):
        S = graphs(9).to("cuda")
        values = S.values[:1].clone().requires_grad_()
        found = lanczos(DenseOperator((values + values.mT) / 2), num_steps=5, gradient=gradient)
        loss = sum((part * torch.arange(1, part.numel() + 1, device="cuda").view_as(part)).sum() for part in found[:3])
        results.append(torch.autograd.grad(loss, values)[0])
    torch.testing.assert_close(*results)


def awkward_graphs() -> list[tuple[DenseOperator, int]]:
    """Batches and numbers of steps: early breakdown, more steps than nodes, padding, a star, single nodes."""
    values = torch.randn(4, 7, 7, generator=generator(3), dtype=torch.float64)
    values[1, 5:], values[1, :, 5:] = 0.0, 0.0
    values[2:] = 0.0
    values[2, 0, 1:] = 1.0
    values[3, 0, 0] = 1.0
    values = values + values.mT
    symmetric = DenseOperator(values, mask=(values != 0).any(-1).double())
    single = DenseOperator(values[2:, :1, :1], mask=torch.ones(2, 1, dtype=torch.float64))
    return [(graphs(6), 4), (graphs(5), 18), (graphs(20), 6), (symmetric, 5), (symmetric, 9), (single, 3)]


def three_term(S: DenseOperator, num_steps: int, gradient: str) -> list[torch.Tensor]:
    """What the recurrence finds from a random start, and how a random function of it changes with S and start."""
    values = S.values.clone().requires_grad_()
    start = torch.rand(S.shape[:-1], generator=generator(1), dtype=torch.float64).to(values) * S.mask
    start.requires_grad_()
    found = lanczos(S.with_values(values), start, num_steps, reorthogonalize=False, gradient=gradient)
    grads = [torch.randn(part.shape, generator=generator(2), dtype=torch.float64).to(values) for part in found[:3]]
    return [*found[:4], *torch.autograd.grad(found[:3], (values, start), grads)]


def compare_the_recurrence_with_autograd(device: str = "cpu") -> None:
    for S, num_steps in awkward_graphs():
        S = S.to(device)
        with forced("lanczos_adjoint", "triton", device) as kernel:
            expected = three_term(S, num_steps, "autograd")
            assert not kernel
            found = three_term(S, num_steps, "adjoint")
            assert kernel
        torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)


def compare_the_sweep_with_autograd_where_orthogonality_is_lost(device: str = "cpu") -> None:
    """From the same vectors, as rounding alone would make two iterations differ by then."""
    values = graphs(20).values[:1].to(device).requires_grad_()
    start = torch.rand(1, 20, generator=generator(1), dtype=torch.float64).to(device)
    setup = prepare(DenseOperator(values), start, 17, None, torch.float64)
    basis = RecordedBasis()
    found = iterate(
        setup.product, setup.start, 17, setup.inner, basis, breakdown=setup.breakdown, reorthogonalize=False
    )
    Q, *T = basis.matrix(), found.diagonal, found.off_diagonal
    outputs = Q[:, :-1], *T
    grads = [torch.randn(part.shape, generator=generator(2), dtype=torch.float64).to(device) for part in outputs]
    (expected,) = torch.autograd.grad(outputs, values, grads)
    inputs = [tensor.detach() for tensor in (values, Q, *T)]
    sweep = implementation("lanczos_adjoint", "triton").load()
    image_grads, _ = sweep(DenseOperator(inputs[0]), setup.inner, *inputs[1:], *grads, reorthogonalize=False)
    assert (Q @ Q.mT - torch.eye(18, device=device)).abs().max() > 0.5
    assert (image_grads.mT @ Q[:, :-1] - expected).norm() < 1e-10 * expected.norm()


def compare_the_recurrence_in_the_interpreter() -> None:
    compare_the_sweep_with_autograd_where_orthogonality_is_lost()
    with forced("lanczos_iteration", "triton"):
        compare_the_recurrence_with_autograd()


@pytest.mark.slow
@needs_triton
def test_the_recurrence_and_its_gradient_are_those_of_autograd_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_the_recurrence_in_the_interpreter")


@needs_cuda
def test_the_recurrence_and_its_gradient_are_those_of_autograd() -> None:
    compare_the_recurrence_with_autograd("cuda")
    compare_the_sweep_with_autograd_where_orthogonality_is_lost("cuda")


@needs_cuda
def test_the_recurrence_is_left_to_autograd_where_it_restarts() -> None:
    S = graphs(6).to("cuda")
    with forced("lanczos_iteration", "triton", "cuda", conditions.small_dense_iteration) as kernel:
        lanczos(S, num_steps=4, reorthogonalize=False, on_breakdown="restart")
        assert not kernel
        lanczos(S, num_steps=4, reorthogonalize=False)
        assert kernel


def is_small_batch(S: DenseOperator, num_steps: int) -> bool:
    setup = prepare(S, None, num_steps, None, S.dtype)
    return serves("lanczos_iteration", "triton", S, setup.start, num_steps, setup.inner, setup.breakdown)


def test_a_cpu_has_no_use_for_the_kernels() -> None:
    assert not is_small_batch(graphs(6), 4)


@needs_cuda
def test_the_kernels_serve_small_dense_batches() -> None:
    S = graphs(6).to("cuda")
    assert is_small_batch(S, 4)
    assert not is_small_batch(S, TILE)
    assert not is_small_batch(S.to(torch.float32), 4)
    assert not is_small_batch(graphs(TILE + 1).to("cuda"), 4)
    assert not is_small_batch(DenseOperator(S.values[0]), 4)


def test_the_kernels_of_large_graphs_serve_one_graph_or_ranges_of_nodes() -> None:
    num_nodes = conditions.SMALL_GRAPH + 2
    no_edges = torch.zeros(2, 0, dtype=torch.long)
    A = adjacency(no_edges, num_nodes=num_nodes)
    start = torch.ones(num_nodes)
    halves = RangeInnerProduct([num_nodes // 2, num_nodes // 2])
    for inner in (WholeInnerProduct(), halves):
        assert conditions.large_sparse_graph(A, start, TILE, inner)
        assert not conditions.large_sparse_graph(A, start, TILE + 1, inner)
        assert not conditions.large_sparse_graph(A, start[: conditions.SMALL_GRAPH], 5, inner)
        assert not conditions.large_sparse_graph(A, start.unsqueeze(0), 5, inner)
    for inner in (SegmentInnerProduct(start.long(), 2), HermitianInnerProduct(WholeInnerProduct())):
        assert not conditions.large_sparse_graph(A, start, 5, inner)
    two = adjacency(no_edges, num_nodes=2)
    assert not conditions.small_sparse_graph(two, start[:2], 5, RangeInnerProduct([1, 1]))
    assert conditions.small_sparse_graph(two, start[:2], 5, WholeInnerProduct())
