"""Where a training runs: device, precision, processes, determinism."""

import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from lanczosnet._extras import require
from lanczosnet.backends.determinism import deterministic_algorithms
from lanczosnet.backends.host_memory import free_host_memory
from lanczosnet.batching.padded import MOST_BYTES
from lanczosnet.training.engine import DEVICES, PRECISIONS
from lanczosnet.training.errors import TrainingError

if TYPE_CHECKING:
    from lightning.fabric import Fabric  # takes seconds to import, and only training needs it

EVALUATION_BATCH = 1024  # graphs, on a GPU, where small batches leave most of it idle


def fabric_for(
    device: str = "auto",
    precision: str = "32-true",
    *,
    deterministic: bool = True,
    host_features: bool | None = None,
    any_order: bool | None = None,
    gpu: int | None = None,
) -> "Fabric":
    """One process, or those that `torchrun` started.

    In "32-true" a GPU multiplies float32 matrices in TF32 (ten bits of mantissa), several times faster; "32-exact"
    keeps all bits; on a CPU "16-mixed" is "bf16-mixed". Preparation and Lanczos keep them in either case.

    With `deterministic`, a seed determines every bit of the result on a GPU. `any_order` is its old name, inverted.
    With `host_features`, those of one graph stay on the host and travel chunk by chunk in every step; by default where
    they would take more than half of a GPU's free memory.
    Of several GPUs, `gpu` is the number of the one to take, counted round; a CPU leaves it out.
    """
    if any_order is not None:
        warnings.warn("any_order is deprecated: use deterministic, its opposite", DeprecationWarning, stacklevel=2)
        deterministic = not any_order
    check_available(device, precision)
    require("lightning", to="to train")
    from lightning.fabric import Fabric

    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    fabric = Fabric(
        accelerator=device,
        devices=local if gpu is None or not is_cuda(device) else [gpu % torch.cuda.device_count()],
        num_nodes=world // local,
        strategy="ddp" if world > 1 else "auto",
        precision=_of_lightning(device, precision),  # type: ignore[arg-type]
    )
    with matmul_precision("high"):  # else Lightning advises it at every start; `matmul_precision_of` sets it
        fabric.launch()
    fabric.matmul_precision = "high" if precision == "32-true" else "highest"  # type: ignore[attr-defined]
    fabric.deterministic = deterministic  # type: ignore[attr-defined]
    fabric.host_features = host_features  # type: ignore[attr-defined]
    fabric.is_exact = precision == "32-exact"  # type: ignore[attr-defined]
    return fabric


def _of_lightning(device: str, precision: str) -> str:
    """On a CPU, PyTorch has no automatic precision of 16 bits but bfloat16."""
    has_own = torch.cuda.is_available() or torch.backends.mps.is_available()
    is_cpu = device == "cpu" or (device == "auto" and not has_own)
    return "bf16-mixed" if precision == "16-mixed" and is_cpu else precision.replace("exact", "true")


def numerics_of(fabric: "Fabric | None") -> dict[str, Any]:
    """The precision and determinism that a run has, by their names on the command line."""
    if fabric is None:
        return {"precision": "32-true", "deterministic": True}
    precision = "32-exact" if getattr(fabric, "is_exact", False) else fabric._precision.precision
    return {"precision": precision, "deterministic": getattr(fabric, "deterministic", True)}


def check_available(device: str, precision: str) -> None:
    """Raise an error for wrong names and missing devices; costs nothing."""
    if device not in DEVICES:
        raise TrainingError(f"there is no device {device!r}; known are {', '.join(DEVICES)}")
    if precision not in PRECISIONS:
        raise TrainingError(f"there is no precision {precision!r}; known are {', '.join(PRECISIONS)}")
    is_here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not is_here.get(device, True):
        raise TrainingError(f"PyTorch finds no {device} device here: choose auto or cpu")


def best_device() -> "Fabric":
    """One process on the best device; matrix products stay as the caller has set them."""
    require("lightning", to="to train")
    from lightning.fabric import Fabric

    return Fabric(devices=1)


def is_cuda(device: str) -> bool:
    """Whether a device of this name is a CUDA device here."""
    return device == "cuda" or (device == "auto" and torch.cuda.is_available())


def hardware(device: torch.device) -> str:
    """The device's name; of a CPU that of the instructions in use, which decide how sums are rounded."""
    if device.type == "cuda":
        return torch.cuda.get_device_name()
    return f"{device.type} ({platform.machine()}, {torch.backends.cpu.get_cpu_capability()})"


def free_memory_of(device: torch.device) -> int | None:
    """Bytes that nothing uses, of a GPU or of the host; None where nothing says so."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return free_host_memory() if device.type == "cpu" else None


def default_device() -> tuple[str, str]:
    """The type of the best device that has kernels of its own, and its description."""
    if torch.cuda.is_available():
        return "cuda", f"cuda: {torch.cuda.get_device_name()}"
    return "cpu", f"cpu, {torch.get_num_threads()} threads"


def evaluation_batch_size(batch_size: int, device: torch.device) -> int:
    return max(batch_size, EVALUATION_BATCH) if device.type == "cuda" else batch_size


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """`torch.set_float32_matmul_precision` inside a block."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def matmul_precision_of(fabric: "Fabric") -> AbstractContextManager[None]:
    """The precision given to `fabric_for`, inside a block. Other fabrics leave the caller's setting."""
    return matmul_precision(getattr(fabric, "matmul_precision", torch.get_float32_matmul_precision()))


def determinism_of(fabric: "Fabric") -> AbstractContextManager[None]:
    """Deterministic algorithms inside a block, unless the fabric was made without them."""
    return deterministic_algorithms(fabric.device) if getattr(fabric, "deterministic", True) else nullcontext()


def exact_matmul() -> AbstractContextManager[None]:
    """All bits of float32 products, for what is computed once and used in every step."""
    return matmul_precision("highest")


def block_bytes(device: torch.device) -> int:
    """How much of the device's memory the operators of a data set may take: a quarter on a GPU."""
    if device.type != "cuda":
        return MOST_BYTES
    return max(MOST_BYTES, torch.cuda.get_device_properties(device).total_memory // 4)
