"""Looking rows up is PyTorch's embedding, with the same gradient to rounding."""

import pytest
import torch
from torch import nn

from graph_builders import generator
from lanczosnet.layers import NodeEncoder
from lanczosnet.layers import lookup as module
from lanczosnet.layers.lookup import lookup
from waiting import Waits


@pytest.fixture(autouse=True)
def _by_product_everywhere(monkeypatch) -> None:
    monkeypatch.setattr(module, "BY_PRODUCT_ON", {"cpu", "cuda"})


@pytest.mark.parametrize("num_rows", [1, 10, 256])
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
    assert torch.equal(encoder(types), encoder.embedding(types))
    with Waits() as waits:
        names = backward_operations(encoder, types)
    assert "aten::mm" in names
    assert "aten::embedding_dense_backward" not in names
    assert not waits.found


@pytest.mark.filterwarnings("ignore:.*Profiler clears events:UserWarning")
@pytest.mark.parametrize(("name", "value"), [("MOST", 399), ("BY_PRODUCT_ON", set())])
def test_large_products_and_other_devices_add_up_row_by_row(monkeypatch, name, value) -> None:
    monkeypatch.setattr(module, name, value)
    types = torch.randint(10, (40,), generator=generator(0))
    assert "aten::embedding_dense_backward" in backward_operations(NodeEncoder(10, "learned", 4), types)


def backward_operations(encoder: NodeEncoder, types: torch.Tensor) -> set[str]:
    x = encoder(types)
    with torch.profiler.profile() as profile:
        x.square().sum().backward()
    return {event.key for event in profile.key_averages()}
