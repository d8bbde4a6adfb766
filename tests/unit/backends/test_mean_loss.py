"""The mean loss of a regression as a kernel is that of PyTorch's operations."""

import pytest
import torch
from torch import Tensor

from graph_builders import generator
from interpreted import call_interpreted, needs_triton
from lanczosnet.training.tasks import Regression, mean_of_known

NAN = float("nan")


def some_targets(items: int, device: str) -> Tensor:
    y = torch.randn(items, 3, generator=generator(0))
    y[::2, 1] = NAN
    return y.to(device)


def compare_losses(device: str = "cpu") -> None:
    from lanczosnet.backends.triton.mean_loss import MeanLoss

    cases = (some_targets(5, device), some_targets(700, device), torch.full((2, 3), NAN, device=device))
    for loss in ("mse", "l1", "mae"):
        task = Regression("graph", ("a", "b", "c"), (0.5, -1.0, 0.0), (2.0, 0.5, 1.0), loss=loss)
        for y in cases:
            output = torch.randn(y.shape, generator=generator(1)).to(device).requires_grad_()
            constants = task._mean(output), task._deviation(output), task._weight(output)
            found = MeanLoss.apply(output, y, *constants, loss == "mse")
            expected = mean_of_known(task, output, y)
            torch.testing.assert_close(found, expected)
            gradients = (torch.autograd.grad(3.0 * value, output)[0] for value in (found, expected))
            torch.testing.assert_close(*gradients)


def notice_divergence() -> None:
    from lanczosnet.backends.triton.mean_loss import MeanLoss

    constants = torch.zeros(1), torch.ones(1), torch.ones(1)
    output = torch.tensor([[1.0], [NAN]])
    assert MeanLoss.apply(output, torch.zeros(2, 1), *constants, True).isnan()


def refuse_second_derivatives() -> None:
    from lanczosnet.backends.triton.mean_loss import MeanLoss

    output = torch.ones(2, 1, requires_grad=True)
    constants = torch.zeros(1), torch.ones(1), torch.ones(1)
    loss = MeanLoss.apply(output, torch.zeros(2, 1), *constants, True)
    (gradient,) = torch.autograd.grad(loss, output, create_graph=True)
    with pytest.raises(RuntimeError):
        gradient.sum().backward()


@needs_triton
@pytest.mark.parametrize("check", ["compare_losses", "notice_divergence", "refuse_second_derivatives"])
def test_the_kernel_of_a_loss_is_plain_pytorch_in_the_interpreter(check: str) -> None:
    call_interpreted(__file__, check)


@needs_triton
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernel_of_a_loss_is_plain_pytorch_on_a_gpu() -> None:
    compare_losses("cuda")
    task = Regression("graph", ("a", "b", "c"), (0.0,) * 3, (1.0,) * 3)
    y = some_targets(5, "cuda")
    output = torch.zeros_like(y)
    torch.testing.assert_close(task.mean_loss(output, y), mean_of_known(task, output, y))
