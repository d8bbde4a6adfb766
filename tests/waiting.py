"""Finds, on the CPU, what would make the host wait for a GPU and so keep a step from being recorded."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal", "unique2", "_unique2"}
FRESH = {"lift_fresh", "lift_fresh_copy"}  # torch.tensor(...): a copy from the host


class Waits(TorchDispatchMode):
    """Notes operations whose result, or whose shape, the host must know."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.split("::")[1]
        if name in WAITING or name in FRESH:
            self.found.append(name)
        if name.startswith("index") and any(_is_mask(index) for index in _indices(args)):
            self.found.append(f"{name} by mask")
        if name.startswith("repeat_interleave") and (kwargs or {}).get("output_size") is None:
            self.found.append(name)
        return function(*args, **(kwargs or {}))


def _indices(args):
    return args[1] if len(args) > 1 and isinstance(args[1], list | tuple) else ()


def _is_mask(index) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype == torch.bool
