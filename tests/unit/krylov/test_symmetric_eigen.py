import pytest
import torch

from graph_builders import generator, tolerance
from interpreted import call_interpreted, needs_triton
from lanczosnet.backends.jacobi import eigenpairs as jacobi
from lanczosnet.backends.jacobi import partners
from lanczosnet.krylov.symmetric_eigen import symmetric_eigen


def matrices(n: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Random ones, zero, the identity, rank one, and one padded with zeros: eigenvalues repeat in most."""
    A = torch.randn(9, n, n, generator=generator(n), dtype=torch.float64)
    A = (A + A.mT) / n
    A[0], A[1], A[2] = 0.0, torch.eye(n), 1.0 / n
    A[3, n // 2 :], A[3, :, n // 2 :] = 0.0, 0.0
    return A.to(device, dtype)


@pytest.mark.parametrize("method", [symmetric_eigen, jacobi])
@pytest.mark.parametrize("n", [1, 2, 5, 16, 21, 32])
def test_eigenpairs_of_a_batch_are_exact_to_rounding(method, n: int, dtype: torch.dtype, device: torch.device) -> None:
    if method is jacobi and n == 1:
        pytest.skip("nothing to rotate")
    A = matrices(n, dtype, device)
    values, vectors = jacobi(A) if method is jacobi else symmetric_eigen(A, dtype)
    identity = torch.eye(n, dtype=dtype, device=device).expand_as(A)
    slack = tolerance(dtype)
    torch.testing.assert_close(vectors.mT @ vectors, identity, atol=slack, rtol=0)
    torch.testing.assert_close((vectors * values.unsqueeze(-2)) @ vectors.mT, A, atol=slack, rtol=0)
    expected = torch.linalg.eigvalsh(A.double().cpu())
    torch.testing.assert_close(values.sort(-1).values.double().cpu(), expected, atol=slack, rtol=0)


def decompose_in_the_kernel() -> None:
    from lanczosnet.backends.triton.jacobi import eigenpairs

    for n, dtype in ((7, torch.float32), (7, torch.float64), (2, torch.float64), (4, torch.float64)):
        A = matrices(n, dtype, torch.device("cpu"))
        values, vectors = eigenpairs(A)
        torch.testing.assert_close((vectors * values.unsqueeze(-2)) @ vectors.mT, A, atol=tolerance(dtype), rtol=0)
        expected = torch.linalg.eigvalsh(A)
        torch.testing.assert_close(values.sort(-1).values, expected, atol=tolerance(dtype), rtol=0)


@pytest.mark.slow
@needs_triton
def test_eigenpairs_of_the_kernel_are_exact_in_the_interpreter() -> None:
    call_interpreted(__file__, "decompose_in_the_kernel")


def test_padding_never_mixes_with_the_rest_of_a_matrix(dtype: torch.dtype, device: torch.device) -> None:
    vectors = jacobi(matrices(12, dtype, device))[1][3]
    assert not vectors[:6, 6:].any()
    assert not vectors[6:, :6].any()


@pytest.mark.parametrize("size", [2, 4, 12])
def test_everyone_meets_everyone_once_in_a_sweep(size: int) -> None:
    turns = [partners(size, turn) for turn in range(size - 1)]
    assert all(partner[partner].equal(torch.arange(size)) for partner in turns)
    met = {(i, int(partner[i])) for partner in turns for i in range(size)}
    assert met == {(i, j) for i in range(size) for j in range(size) if i != j}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
def test_a_cuda_graph_can_hold_the_decomposition() -> None:
    A = matrices(26, torch.float64, torch.device("cuda"))
    symmetric_eigen(A)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        values, vectors = symmetric_eigen(A)
    A.copy_(A.flip(0))
    graph.replay()
    torch.testing.assert_close((vectors * values.unsqueeze(-2)) @ vectors.mT, A)
