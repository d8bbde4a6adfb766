"""The kernels for batches of small graphs are the iteration and its adjoint, operation by operation."""

import pytest
import torch

from graph_builders import generator
from interpreted import HAS_TRITON, call_interpreted, needs_triton
from lanczosnet.affinity import DenseOperator, normalized
from lanczosnet.krylov import lanczos
from lanczosnet.krylov.adjoint import backward_sweep
from lanczosnet.krylov.inner_product import WholeInnerProduct
from lanczosnet.krylov.iteration import PreallocatedBasis, iterate
from lanczosnet.krylov.setup import prepare
from lanczosnet.krylov.small_batch import LARGEST, is_small_batch, iterate_on_device, sweep_on_device

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
        block, found = iterate_on_device(S.values, setup.start, num_steps, setup.breakdown)
        assert found.steps.tolist() == expected.steps.tolist()
        torch.testing.assert_close((block, *found), (basis.block, *expected), atol=1e-10, rtol=1e-10)
        shapes = ((*found.diagonal.shape, num_nodes), found.diagonal.shape, found.diagonal.shape)
        grads = [torch.randn(s, generator=generator(2), dtype=torch.float64).to(device) for s in shapes]
        arguments = (basis.block, expected.diagonal, expected.off_diagonal, *grads)
        torch.testing.assert_close(
            sweep_on_device(S.values, *arguments), backward_sweep(S, inner, *arguments), atol=1e-9, rtol=1e-9
        )


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


def test_a_cpu_has_no_use_for_the_kernels() -> None:
    assert not is_small_batch(graphs(6), 4)


@needs_cuda
def test_the_kernels_serve_small_dense_batches() -> None:
    S = graphs(6).to("cuda")
    assert is_small_batch(S, 4)
    assert not is_small_batch(S, LARGEST)
    assert not is_small_batch(S.to(torch.float32), 4)
    assert not is_small_batch(graphs(LARGEST + 1).to("cuda"), 4)
    assert not is_small_batch(DenseOperator(S.values[0]), 4)
