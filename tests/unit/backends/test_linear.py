"""A linear map whose bias gets its gradient by a product is the same map."""

from collections.abc import Iterator

import pytest
import torch

from forced import forced
from graph_builders import generator
from lanczosnet.backends import conditions
from lanczosnet.backends.linear import linear
from waiting import Waits


@pytest.fixture
def by_product(device) -> Iterator[None]:
    with forced("linear", "bias-product", device.type, conditions.no_autocast):
        yield


def tensors(num_rows: int, dtype: torch.dtype, device: torch.device) -> list[torch.Tensor]:
    shapes = [(num_rows, 5), (5, 3), (3,)]
    made = [torch.randn(shape, generator=generator(i), dtype=dtype) for i, shape in enumerate(shapes)]
    return [tensor.to(device).requires_grad_() for tensor in made]


def with_gradients(function, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    value = function(*inputs)
    weight = torch.randn(value.shape, generator=generator(9), dtype=value.dtype).to(value.device)
    needed = [each for each in inputs if each.requires_grad]
    return [value, *torch.autograd.grad((value * weight).sum(), needed)]


@pytest.mark.parametrize("num_rows", [0, 1, 7, 8, 100])
def test_values_and_gradients_are_those_of_pytorch(by_product, num_rows, dtype, device) -> None:
    inputs = tensors(num_rows, dtype, device)
    found = with_gradients(linear, inputs)
    assert "_Linear" in type(linear(*inputs).grad_fn).__name__
    expected = with_gradients(lambda x, weight, bias: torch.addmm(bias, x, weight), inputs)
    for each in zip(found, expected, strict=True):
        torch.testing.assert_close(*each)


@pytest.mark.parametrize("fixed", [0, 1, 2])
def test_what_needs_no_gradient_gets_none(by_product, fixed) -> None:
    inputs = tensors(7, torch.float64, torch.device("cpu"))
    inputs[fixed].requires_grad_(False)
    found = with_gradients(linear, inputs)
    expected = with_gradients(lambda x, weight, bias: x @ weight + bias, inputs)
    for each in zip(found, expected, strict=True):
        torch.testing.assert_close(*each)


def test_derivatives_are_those_of_finite_differences(by_product) -> None:
    inputs = tensors(7, torch.float64, torch.device("cpu"))
    assert torch.autograd.gradcheck(linear, inputs)
    assert torch.autograd.gradgradcheck(linear, inputs)


def test_autocast_has_its_own_types(by_product) -> None:
    inputs = tensors(7, torch.float32, torch.device("cpu"))
    with torch.autocast("cpu", torch.bfloat16):
        value = linear(*inputs)
    assert value.dtype == torch.bfloat16
    value.float().sum().backward()
    assert all(each.grad.dtype == torch.float32 for each in inputs)


def test_a_step_would_not_wait_for_a_gpu(by_product) -> None:
    inputs = tensors(7, torch.float32, torch.device("cpu"))
    linear(*inputs).sum().backward()
    with Waits() as waits:
        linear(*inputs).sum().backward()
    assert not waits.found


def test_a_cpu_keeps_the_sum() -> None:
    inputs = tensors(7, torch.float32, torch.device("cpu"))
    assert "Addmm" in type(linear(*inputs).grad_fn).__name__
