"""Whether Triton kernels can take the place of PyTorch's operations."""

import importlib.util

from torch import Tensor

HAS_TRITON = importlib.util.find_spec("triton") is not None


def kernels_serve(tensor: Tensor) -> bool:
    """On a GPU, where Triton is installed."""
    return tensor.is_cuda and HAS_TRITON
