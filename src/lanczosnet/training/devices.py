"""Where a training runs: device, precision, processes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from lanczosnet.training.errors import TrainingError

if TYPE_CHECKING:
    from lightning.fabric import Fabric  # takes seconds, and only those who train need it

DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("32-true", "32-exact", "bf16-mixed", "16-mixed", "64-true")


def fabric_for(device: str = "auto", precision: str = "32-true") -> "Fabric":
    """One process, or those that `torchrun` started.

    In "32-true" a GPU multiplies float32 matrices with ten bits of mantissa (TF32), several times faster; "32-exact"
    keeps all bits. What is prepared before training, and all that Lanczos does, keeps them in either case.
    """
    if device not in DEVICES:
        raise TrainingError(f"there is no device {device!r}; known are {', '.join(DEVICES)}")
    if precision not in PRECISIONS:
        raise TrainingError(f"there is no precision {precision!r}; known are {', '.join(PRECISIONS)}")
    from lightning.fabric import Fabric

    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    torch.set_float32_matmul_precision("high" if precision == "32-true" else "highest")
    fabric = Fabric(
        accelerator=device,
        devices=local,
        num_nodes=world // local,
        strategy="ddp" if world > 1 else "auto",
        precision=precision.replace("exact", "true"),  # type: ignore[arg-type]
    )
    fabric.launch()
    return fabric


def best_device() -> "Fabric":
    """One process on the best device, with products as the caller has set them."""
    from lightning.fabric import Fabric

    return Fabric(devices=1)


@contextmanager
def exact_products() -> Iterator[None]:
    """All bits of float32 products, for what is computed once and used in every step."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
