"""The memory that a piece of work takes, counted tensor by tensor."""

import weakref
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only


class LiveBytes(TorchDispatchMode):
    """Counts the memory of all tensors that are made inside the block and not yet freed.

    What libraries take for themselves while they compute is not counted, nor is what NumPy makes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = self.largest = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        tree_map_only(Tensor, self._note, found)
        return found

    def _note(self, tensor: Tensor) -> None:
        if tensor.layout != torch.strided:
            return
        memory = tensor.untyped_storage()
        key = memory._cdata
        if key in self._sizes:
            return
        self._sizes[key] = size = memory.nbytes()
        self.live += size
        self.peak, self.largest = max(self.peak, self.live), max(self.largest, size)
        weakref.finalize(memory, partial(self._forget, key)).atexit = False

    def _forget(self, key: int) -> None:
        self.live -= self._sizes.pop(key)
