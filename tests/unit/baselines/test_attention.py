"""The kernel of attention is the plain path, value and gradient."""

import pytest
import torch

import lanczosnet.baselines.attention  # noqa: F401 registers the operation
from graph_builders import generator
from interpreted import HAS_TRITON, call_interpreted, needs_triton
from lanczosnet.backends.registry import reference


def example(num_graphs: int, width: int, num_channels: int, heads: int, out_channels: int, device: str):
    """Random states and energies, and neighbours that always include the node itself."""
    num_heads = num_channels * heads
    both = torch.randn(num_graphs, width, num_heads * (out_channels + 2), generator=generator(0)).to(device)
    counts = torch.randint(0, 3, (num_graphs, num_channels, width, width), generator=generator(1)).to(device)
    log_count = (counts * (counts < 2) + torch.eye(width, device=device)).log()
    return both.requires_grad_(), log_count, num_heads


def compare_with_the_plain_path(device: str = "cpu") -> None:
    from lanczosnet.backends.triton.attention import Attention

    for sizes in [(2, 28, 7, 8, 16), (1, 5, 1, 1, 3), (2, 36, 2, 1, 20)]:
        both, log_count, num_heads = example(*sizes, device)
        weight = None
        results = []
        for attend in (Attention.apply, reference("attention")):
            found = attend(both, log_count, num_heads, 0.2)
            weight = torch.randn(found.shape, generator=generator(2)).to(device) if weight is None else weight
            (grad,) = torch.autograd.grad((found * weight).sum(), both)
            results.append((found.detach(), grad))
        torch.testing.assert_close(*results, atol=1e-5, rtol=1e-4)


@pytest.mark.skipif(not (torch.cuda.is_available() and HAS_TRITON), reason="needs a GPU and Triton")
def test_the_kernel_is_the_plain_path() -> None:
    compare_with_the_plain_path("cuda")


@pytest.mark.slow
@needs_triton
def test_the_kernel_is_the_plain_path_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_with_the_plain_path")
