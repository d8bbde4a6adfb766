"""Looking rows up is PyTorch's embedding, with the same gradient to rounding."""

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from forced import forced
from graph_builders import generator
from lanczosnet.backends import REFERENCE, conditions, use_backend
from lanczosnet.backends.linear import embedding
from lanczosnet.layers import NodeEncoder
from waiting import Waits


@pytest.fixture(autouse=True)
def _by_product_everywhere(device) -> Iterator[None]:
    with forced("embedding", "one-hot-product", device.type, conditions.few_rows_looked_up):
        yield


@pytest.mark.parametrize("num_rows", [1, 10, 256])
@pytest.mark.parametrize("shape", [(300,), (3, 50), (0,)])
def test_values_are_equal_and_gradients_to_rounding(num_rows, shape, dtype, device) -> None:
    first = torch.randn(num_rows, 6, generator=generator(0), dtype=dtype).to(device).requires_grad_()
    second = first.detach().clone().requires_grad_()
    rows = torch.randint(num_rows, shape, generator=generator(1)).to(device)
    found, expected = embedding(first, rows), nn.functional.embedding(rows, second)
    assert torch.equal(found, expected)
    weight = torch.randn(expected.shape, generator=generator(2), dtype=dtype).to(device)
    (found * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(first.grad, second.grad)


def test_derivatives_are_those_of_finite_differences() -> None:
    table = torch.randn(4, 3, generator=generator(0), dtype=torch.float64, requires_grad=True)
    rows = torch.tensor([3, 0, 0, 2, 3])
    assert torch.autograd.gradcheck(lambda table: embedding(table, rows), table)
    assert torch.autograd.gradgradcheck(lambda table: embedding(table.square(), rows), table)


@pytest.mark.filterwarnings("ignore:.*Profiler clears events:UserWarning")
def test_the_encoder_adds_up_its_gradient_in_a_product(device) -> None:
    encoder = NodeEncoder(10, "learned", 4).to(device)
    assert list(encoder.state_dict()) == ["embedding.weight"]
    types = torch.randint(10, (40,), generator=generator(0)).to(device)
    assert torch.equal(encoder(types), encoder.embedding(types))
    with Waits() as waits:
        names = backward_operations(encoder, types)
    assert "aten::mm" in names
    assert "aten::embedding_dense_backward" not in names
    assert not waits.found


@pytest.mark.filterwarnings("ignore:.*Profiler clears events:UserWarning")
def test_large_products_and_other_devices_add_up_row_by_row(monkeypatch) -> None:
    types = torch.randint(10, (40,), generator=generator(0))
    with use_backend(REFERENCE):
        assert "aten::embedding_dense_backward" in backward_operations(NodeEncoder(10, "learned", 4), types)
    monkeypatch.setattr(conditions, "ONE_HOT_NUMBERS", 399)
    assert "aten::embedding_dense_backward" in backward_operations(NodeEncoder(10, "learned", 4), types)


def backward_operations(encoder: NodeEncoder, types: torch.Tensor) -> set[str]:
    x = encoder(types)
    with torch.profiler.profile() as profile:
        x.square().sum().backward()
    return {event.key for event in profile.key_averages()}
