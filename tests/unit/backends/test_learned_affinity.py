"""S of a learned kernel in one Triton kernel is that of PyTorch's operations."""

import pytest
import torch
from torch import Tensor

from forced import implementation
from graph_builders import generator
from interpreted import call_interpreted, needs_triton
from lanczosnet.affinity import DenseOperator, normalized
from lanczosnet.affinity.kernel import dense_kernel_adjacency
from lanczosnet.backends import REFERENCE, serves


def plain(embedding: Tensor, pattern: Tensor, mask: Tensor, self_loops: bool) -> Tensor:
    A = DenseOperator(dense_kernel_adjacency(pattern, embedding), mask=mask)
    if not self_loops:
        A = A.plus_diagonal((A.degree() == 0).to(A.dtype))
    return normalized(A, self_loops=self_loops, validate=False).dense()


def some_graphs(device: str) -> tuple[Tensor, Tensor, Tensor]:
    """A random one; one whose points coincide, one with a node alone, one without edges, and an empty one."""
    sizes = torch.tensor([9, 5, 4, 3, 0])
    mask = (torch.arange(9) < sizes.unsqueeze(1)).float()
    pattern = (torch.rand(5, 9, 9, generator=generator(0)) < 0.5).float().triu(1)
    pattern = (pattern + pattern.mT) * mask.unsqueeze(1) * mask.unsqueeze(2)
    embedding = torch.randn(5, 9, 6, generator=generator(1))
    embedding[1] = 0.5
    pattern[2, 0], pattern[2, :, 0] = 0.0, 0.0
    pattern[3] = 0.0
    return embedding.to(device).requires_grad_(), pattern.to(device), mask.to(device)


def compare_operators(device: str = "cpu") -> None:
    embedding, pattern, mask = some_graphs(device)
    weight = torch.randn(pattern.shape, generator=generator(2)).to(device)
    for self_loops in (True, False):
        outcomes = []
        for found in (
            implementation("learned_affinity", "triton").load()(embedding, pattern, mask, self_loops=self_loops),
            plain(embedding, pattern, mask, self_loops),
        ):
            outcomes.append((found, *torch.autograd.grad((found * weight).sum(), embedding)))
        torch.testing.assert_close(*outcomes, atol=1e-5, rtol=1e-4)


@needs_triton
def test_the_kernel_makes_the_same_operator_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_operators")


@needs_triton
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernel_makes_the_same_operator_on_a_gpu() -> None:
    compare_operators("cuda")
    assert serves("learned_affinity", "triton", *some_graphs("cuda"), self_loops=True)


def test_without_a_gpu_it_does_not_serve() -> None:
    assert serves("learned_affinity", REFERENCE, *some_graphs("cpu"), self_loops=True)
