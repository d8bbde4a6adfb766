"""Activation checkpointing: less memory for a second forward pass."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint


def stage(function: Callable[..., Tensor], *inputs: Any, checkpointed: bool) -> Tensor:
    """`function(*inputs)`. Of a checkpointed stage only the inputs are stored for its gradient, and it runs again.

    It then draws the same random numbers, so that value and gradient stay the same to the bit.
    """
    if not checkpointed or not torch.is_grad_enabled() or torch.compiler.is_exporting():
        return function(*inputs)
    found: Tensor = checkpoint(function, *inputs, use_reentrant=False)
    return found
