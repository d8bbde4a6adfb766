"""Additions in one order, so that the same input has the same bits every time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


@contextmanager
def one_order(device: torch.device) -> Iterator[None]:
    """For a while a CUDA device adds up in the same order every time, for all threads of the process; then as before.

    A CPU does so anyway, and a caller who has asked PyTorch for deterministic algorithms is left with what was asked.
    """
    if device.type != "cuda" or torch.are_deterministic_algorithms_enabled():
        yield
        return
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic
    fills = memory.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    memory.fill_uninitialized_memory = False  # would cost time; nothing here reads what it did not write
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False, warn_only=warned)
        memory.fill_uninitialized_memory = fills


def wants_one_order(tensor: Tensor) -> bool:
    """Whether sums of the tensor's numbers, on a GPU, are asked to have one order."""
    return tensor.is_cuda and torch.are_deterministic_algorithms_enabled()
