"""The array functions of a gather: NumPy on the host, whose calls cost a third of PyTorch's, else PyTorch."""

from typing import Any

import numpy as np
import torch
from torch import Tensor


def arrays_for(device: torch.device) -> Any:
    """The functions for tensors on this device."""
    return HostArrays() if device.type == "cpu" else DeviceArrays(device)


class HostArrays:
    """The array functions of a gather, in NumPy."""

    take = staticmethod(lambda values, rows: values.take(rows, axis=0))
    repeat = staticmethod(lambda values, counts: values.repeat(counts))
    arange = staticmethod(np.arange)
    tensor = staticmethod(torch.from_numpy)

    @staticmethod
    def array(tensor: Tensor) -> np.ndarray:
        return tensor.numpy()

    @staticmethod
    def pointers(lengths: np.ndarray) -> np.ndarray:
        pointers = np.zeros(len(lengths) + 1, dtype=np.int64)
        lengths.cumsum(out=pointers[1:])
        return pointers

    @staticmethod
    def transposed_sum(rows: np.ndarray, offset: np.ndarray) -> np.ndarray:
        return np.add(rows.T, offset, order="C")


class DeviceArrays:
    """The array functions of a gather, in PyTorch."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    take = staticmethod(lambda values, rows: values.index_select(0, rows))
    repeat = staticmethod(torch.repeat_interleave)
    tensor = staticmethod(lambda values: values)

    def arange(self, count: int) -> Tensor:
        return torch.arange(count, device=self.device)

    def array(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device)

    @staticmethod
    def pointers(lengths: Tensor) -> Tensor:
        return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])

    @staticmethod
    def transposed_sum(rows: Tensor, offset: Tensor) -> Tensor:
        return (rows.t() + offset).contiguous()
