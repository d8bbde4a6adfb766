"""`training.tasks.mean_regression_loss` as one Triton kernel, which makes the gradient along the way.

PyTorch's operations are two dozen kernels for a batch of a thousand numbers, each over sooner than it is started.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from lanczosnet.backends.autograd import first_order

SIZE = 1024  # numbers that the only program takes at a time


def mean_regression_loss(output: Tensor, y: Tensor, task: Any) -> Tensor:
    """`training.tasks.mean_regression_loss`."""
    return MeanLoss.apply(output, y, *task.constants(output), task.loss == "mse")


class MeanLoss(torch.autograd.Function):
    """The mean over known targets of the squares or absolute values of (output - standardised y), times a weight.

    `output` and `y` are float32, `[item, target]`; mean, deviation and weight are `[target]`.
    """

    @staticmethod
    def forward(
        ctx: Any, output: Tensor, y: Tensor, mean: Tensor, deviation: Tensor, weight: Tensor, is_square: bool
    ) -> Tensor:
        output, y = output.contiguous(), y.contiguous()
        loss, gradient = output.new_empty(()), torch.empty_like(output)
        _mean_loss[(1,)](
            output, y, mean, deviation, weight, loss, gradient, output.numel(),
            TARGETS=output.shape[1], SQUARE=is_square, SIZE=SIZE, num_warps=4,
        )  # fmt: skip
        ctx.save_for_backward(output, gradient)
        return loss

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        _, gradient = ctx.saved_tensors
        return gradient * grad, None, None, None, None, None


@triton.jit
def _mean_loss(  # type: ignore[no-untyped-def]
    output, y, mean, deviation, weight, loss, gradient, n,
    TARGETS: tl.constexpr, SQUARE: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    total = tl.zeros([SIZE], tl.float32)
    count = tl.zeros([SIZE], tl.float32)
    for begin in range(0, n, SIZE):
        difference, w, known = _difference(output, y, mean, deviation, weight, begin, n, TARGETS, SIZE)
        total += w * (difference * difference if SQUARE else tl.abs(difference))
        count += tl.where(known, 1.0, 0.0)
    number = tl.maximum(tl.sum(count, 0), 1.0)
    tl.store(loss, tl.sum(total, 0) / number)
    for begin in range(0, n, SIZE):
        difference, w, known = _difference(output, y, mean, deviation, weight, begin, n, TARGETS, SIZE)
        sign = tl.where(difference > 0, 1.0, tl.where(difference < 0, -1.0, 0.0))
        slope = w * (2.0 * difference if SQUARE else sign) / number
        at = begin + tl.arange(0, SIZE)
        tl.store(gradient + at, slope, mask=at < n)


@triton.jit
def _difference(  # type: ignore[no-untyped-def]
    output, y, mean, deviation, weight, begin, n, TARGETS: tl.constexpr, SIZE: tl.constexpr
):
    """Of the next numbers, zero where the target is not known; their weights; and which are known."""
    at = begin + tl.arange(0, SIZE)
    inside = at < n
    wanted = tl.load(y + at, mask=inside, other=float("nan"))
    known = wanted == wanted  # which not a number is not
    target = at % TARGETS
    standardised = (wanted - tl.load(mean + target)) / tl.load(deviation + target)
    found = tl.load(output + at, mask=inside, other=0.0)
    # An output that is not a number stays so where its target is known: training has to notice.
    return tl.where(known, found - standardised, 0.0), tl.load(weight + target), known
