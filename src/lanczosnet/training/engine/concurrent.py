"""Runs that share a device: their settings, their queues, and their memory."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lanczosnet.backends.processes import lost_a_process
from lanczosnet.processes import is_out_of_memory
from lanczosnet.training.engine.devices import determinism_of, matmul_precision_of
from lanczosnet.training.errors import TrainingError

if TYPE_CHECKING:
    from lightning.fabric import Fabric


def side_by_side(fabric: "Fabric") -> bool:
    """Whether runs take their epochs at the same time: on a GPU, which small networks do not fill."""
    return fabric.device.type == "cuda"


def in_turn(epochs: Sequence[Generator[None, None, Tensor]]) -> list[Tensor]:
    """What all of them return, with one step of each queued after the other.

    Streams that are filled one by one would run one by one.
    """
    results: dict[int, Tensor] = {}
    while len(results) < len(epochs):
        for place, epoch in enumerate(epochs):
            if place not in results:
                try:
                    next(epoch)
                except StopIteration as end:
                    results[place] = end.value
    return [results[place] for place in range(len(epochs))]


@contextmanager
def training_on(fabric: "Fabric", advice: str) -> Iterator[None]:
    """Determinism and precision of the fabric, and the caller's random state afterwards; `advice` for little memory."""
    devices = [fabric.device] if fabric.device.type == "cuda" else []
    with (
        _explained_loss(),
        _explained_memory(advice),
        torch.random.fork_rng(devices=devices),
        determinism_of(fabric),
        matmul_precision_of(fabric),
    ):
        yield


def wait_for(device: torch.device) -> None:
    """Let queued steps end: after an error their memory must not serve anyone else before."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def free_memory(device: torch.device) -> None:
    """Give back the memory of captured graphs, which can serve nothing else."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


@contextmanager
def _explained_loss() -> Iterator[None]:
    """A process that does not answer becomes a message that says what to do."""
    try:
        yield
    except RuntimeError as error:
        if lost_a_process(error):
            raise TrainingError(
                "another process of this run has ended, and with it the run. It continues from its checkpoint with "
                "resume=True, with as many processes as you like"
            ) from error
        raise


@contextmanager
def _explained_memory(advice: str) -> Iterator[None]:
    """Out of memory becomes a message that says what to do."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, torch.OutOfMemoryError) and not is_out_of_memory(error):
            raise
        raise TrainingError(f"{advice}, a smaller hidden_channels, or another device") from error
