"""Looking rows up is PyTorch's embedding, with the same gradient to rounding."""

import pytest
import torch
from torch import nn

from graph_builders import generator
from lanczosnet.layers import NodeEncoder
from lanczosnet.layers.lookup import LARGEST, lookup
from waiting import Waits


@pytest.mark.parametrize("num_rows", [1, 10, LARGEST, LARGEST + 1])
@pytest.mark.parametrize("shape", [(300,), (3, 50), (0,)])
def test_values_are_equal_and_gradients_to_rounding(num_rows, shape, dtype, device) -> None:
    first = torch.randn(num_rows, 6, generator=generator(0), dtype=dtype).to(device).requires_grad_()
    second = first.detach().clone().requires_grad_()
    rows = torch.randint(num_rows, shape, generator=generator(1)).to(device)
    found, expected = lookup(first, rows), nn.functional.embedding(rows, second)
    assert torch.equal(found, expected)
    weight = torch.randn(expected.shape, generator=generator(2), dtype=dtype).to(device)
    (found * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(first.grad, second.grad)


def test_derivatives_are_those_of_finite_differences() -> None:
    table = torch.randn(4, 3, generator=generator(0), dtype=torch.float64, requires_grad=True)
    rows = torch.tensor([3, 0, 0, 2, 3])
    assert torch.autograd.gradcheck(lambda table: lookup(table, rows), table)
    assert torch.autograd.gradgradcheck(lambda table: lookup(table.square(), rows), table)


@pytest.mark.filterwarnings("ignore:.*Profiler clears events:UserWarning")
def test_the_encoder_adds_up_its_gradient_in_a_product() -> None:
    encoder = NodeEncoder(10, "learned", 4)
    assert list(encoder.state_dict()) == ["embedding.weight"]
    types = torch.randint(10, (40,), generator=generator(0))
    x = encoder(types)
    assert torch.equal(x, encoder.embedding(types))
    with torch.profiler.profile() as profile, Waits() as waits:
        x.square().sum().backward()
    names = {event.key for event in profile.key_averages()}
    assert "aten::mm" in names
    assert "aten::embedding_dense_backward" not in names
    assert not waits.found
