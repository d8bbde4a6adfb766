"""Functions captured as CUDA graphs: their kernels are replayed without Python.

A replay reads and writes the same memory every time; what changes between replays lies in tensors that the caller
fills. Random numbers come from a generator per run, so that runs side by side draw what each would draw alone.
"""

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class PrivateGenerator:
    """A generator that replaces the device's default one."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.generator = torch.Generator(device)

    def seed(self, number: int) -> None:
        self.generator.manual_seed(number)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        torch.cuda.init()
        index = torch.cuda.current_device() if self.device.index is None else self.device.index
        default = torch.cuda.default_generators[index]
        kept = default.graphsafe_get_state()
        default.graphsafe_set_state(self.generator.graphsafe_get_state())
        try:
            yield
        finally:
            default.graphsafe_set_state(kept)


class CapturedGraph:
    """The kernels of one call of a function."""

    def __init__(self, function: Callable[[], None]) -> None:
        self.graph = torch.cuda.CUDAGraph()
        # Not torch.cuda.graph, which empties the allocator's cache: with hundreds of short runs that costs more than
        # the runs. Nothing may be freed during a capture, hence no garbage collection.
        collects = gc.isenabled()
        gc.disable()
        try:
            self.graph.capture_begin(capture_error_mode="thread_local")
            try:
                function()
            finally:
                self.graph.capture_end()
        finally:
            if collects:
                gc.enable()

    def replay(self) -> None:
        self.graph.replay()


def synchronizes(function: Callable[[], None]) -> bool:
    """Call the function; whether it makes the host wait for the device, which cannot be captured."""
    before = torch.cuda.get_sync_debug_mode()
    _set_sync_debug_mode("error")
    try:
        function()
    except RuntimeError as error:
        if "synchronizing" not in str(error):
            raise
        return True
    finally:
        _set_sync_debug_mode(before)
    return False


def _set_sync_debug_mode(mode: int | str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Synchronization debug mode is a prototype")
        torch.cuda.set_sync_debug_mode(mode)


@contextmanager
def restored(tensors: list[Tensor]) -> Iterator[None]:
    """The tensors have the same values afterwards."""
    copies = [tensor.detach().clone() for tensor in tensors]
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, copy in zip(tensors, copies, strict=True):
                tensor.copy_(copy)
