"""For gradients written by hand that have no second derivative."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Backward = Callable[..., tuple[Tensor | None, ...]]


def first_order(backward: Backward) -> Backward:
    """Let a `backward` run outside the graph and at full precision, and let its own gradient raise.

    `once_differentiable` raises only where the incoming gradient is itself differentiable, and otherwise passes for a
    constant: the second derivative of a loss that is linear in the output would silently lack a term. And a backward
    pass that is started under autocast would round to its low precision.

    The inputs must be among the saved tensors.
    """

    def wrapped(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        device_type = next(grad.device.type for grad in grads if grad is not None)
        with torch.no_grad(), torch.autocast(device_type, enabled=False):
            results = backward(ctx, *grads)
        if not torch.is_grad_enabled():  # no second derivative was asked for
            return results
        depends_on = (*ctx.saved_tensors, *grads)
        return tuple(None if result is None else _NoFurther.apply(result, *depends_on) for result in results)

    return wrapped


class _NoFurther(torch.autograd.Function):
    """A value that depends on others in a way nobody has differentiated."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, *depends_on: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        raise RuntimeError(
            "second derivatives of sparse products, Lanczos, matrix functions and fused kernels are not implemented: "
            "call backward without create_graph, or use gradient='autograd' with a dense operator"
        )
