"""Where a training runs: device, precision, processes."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import torch

from lanczosnet.backends.determinism import deterministic_algorithms
from lanczosnet.training.errors import TrainingError

if TYPE_CHECKING:
    from lightning.fabric import Fabric  # takes seconds, and only those who train need it

DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("32-true", "32-exact", "bf16-mixed", "16-mixed", "64-true")


def fabric_for(device: str = "auto", precision: str = "32-true", *, any_order: bool = False) -> "Fabric":
    """One process, or those that `torchrun` started.

    In "32-true" a GPU multiplies float32 matrices with ten bits of mantissa (TF32), several times faster; "32-exact"
    keeps all bits. What is prepared before training, and all that Lanczos does, keeps them in either case.

    A GPU trains in one order of additions, so that a seed determines every bit; with `any_order` as fast as it can.
    """
    check_available(device, precision)
    from lightning.fabric import Fabric

    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    fabric = Fabric(
        accelerator=device,
        devices=local,
        num_nodes=world // local,
        strategy="ddp" if world > 1 else "auto",
        precision=precision.replace("exact", "true"),  # type: ignore[arg-type]
    )
    with float32_products("high"):  # else Lightning advises it at every start; `products_of` does so while training
        fabric.launch()
    fabric.float32_products = "high" if precision == "32-true" else "highest"  # type: ignore[attr-defined]
    fabric.any_order = any_order  # type: ignore[attr-defined]
    return fabric


def check_available(device: str, precision: str) -> None:
    """Wrong names, and devices that are not here, are errors; costs nothing."""
    if device not in DEVICES:
        raise TrainingError(f"there is no device {device!r}; known are {', '.join(DEVICES)}")
    if precision not in PRECISIONS:
        raise TrainingError(f"there is no precision {precision!r}; known are {', '.join(PRECISIONS)}")
    is_here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not is_here.get(device, True):
        raise TrainingError(f"PyTorch finds no {device} device here: choose auto or cpu")


def best_device() -> "Fabric":
    """One process on the best device, with products as the caller has set them."""
    from lightning.fabric import Fabric

    return Fabric(devices=1)


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """How float32 matrices are multiplied, in the words of `torch.set_float32_matmul_precision`; then as before."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def products_of(fabric: "Fabric") -> AbstractContextManager[None]:
    """As the precision of `fabric_for` says, for as long as something is trained: what a caller does later keeps all
    bits. Other fabrics leave products as the caller has set them."""
    return float32_products(getattr(fabric, "float32_products", torch.get_float32_matmul_precision()))


def order_of(fabric: "Fabric") -> AbstractContextManager[None]:
    """One order of additions, so that a seed determines every bit, unless the fabric was made for any."""
    return nullcontext() if getattr(fabric, "any_order", False) else deterministic_algorithms(fabric.device)


def exact_products() -> AbstractContextManager[None]:
    """All bits of float32 products, for what is computed once and used in every step."""
    return float32_products("highest")
