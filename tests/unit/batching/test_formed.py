"""The terms of every layer, formed at once."""

import pytest
import torch
from torch import Tensor

from graph_builders import generator
from interpreted import call_interpreted, needs_triton
from lanczosnet.affinity import Padding
from lanczosnet.batching.formed import formed_layers, layer_matrices


def parts(sizes: tuple[int, ...], device: str = "cpu") -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Vectors, responses, and what all layers have, for so many graphs, nodes, steps, layers, scales, powers, types."""
    graphs, nodes, steps, layers, scales, powers, types = sizes
    shapes = ((graphs, nodes, steps), (graphs, steps, layers, scales), (graphs, nodes, powers, nodes))
    drawn = (torch.randn(shape, generator=generator(0)) for shape in (*shapes, (graphs, nodes, types, nodes)))
    return tuple(part.to(device) for part in drawn)


def test_terms_are_powers_then_long_scales_then_types() -> None:
    vectors, response, short, typed = parts((2, 5, 3, 2, 4, 1, 2))
    formed = formed_layers(layer_matrices(vectors, response, short, typed), Padding(2, 5))
    assert len(formed) == 2
    for layer, operators in enumerate(formed):
        terms = operators.matrix.movedim(2, 1)  # [graph, term, node, node]
        torch.testing.assert_close(terms[:, 0], short[:, :, 0])
        torch.testing.assert_close(terms[:, 5:], typed.movedim(2, 1))
        for scale in range(4):
            long = vectors @ torch.diag_embed(response[:, :, layer, scale]) @ vectors.mT
            torch.testing.assert_close(terms[:, 1 + scale], long)


def compare_operators(device: str = "cpu") -> None:
    from lanczosnet.backends.triton.spectral_operators import LayerMatrices

    for sizes in ((3, 5, 4, 2, 3, 1, 2), (2, 33, 20, 1, 1, 0, 0), (1, 16, 17, 2, 2, 0, 1), (0, 4, 4, 1, 1, 1, 1)):
        vectors, response, short, typed = parts(sizes, device)
        response.requires_grad_()
        found = LayerMatrices.apply(vectors, response, short, typed)
        exact = [part.detach().cpu().double() for part in (vectors, response, short, typed)]
        exact[1].requires_grad_()
        expected = layer_matrices(*exact)
        torch.testing.assert_close(found.cpu(), expected.float(), rtol=1e-4, atol=1e-4)
        grad = torch.randn(found.shape, generator=generator(1))
        found.backward(grad.to(device))
        expected.backward(grad.double())
        torch.testing.assert_close(response.grad.cpu(), exact[1].grad.float(), rtol=1e-4, atol=1e-3)


@needs_triton
def test_the_kernels_form_what_pytorch_does_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_operators")


@needs_triton
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernels_form_what_pytorch_does_on_a_gpu() -> None:
    compare_operators("cuda")
