"""Memory of the host: what was freed goes back to the system, and what lies there goes to a device."""

import ctypes
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of mallopt(3)
FIXED_SIZE = 2**20  # bytes


def return_freed_blocks() -> None:
    """glibc keeps freed blocks of up to 32 MB, in pieces that larger ones do not fit into; from now on, up to 1 MB.

    A step then needs about half of the memory. On a CPU it takes longer, as pages are asked for again. Other libraries
    have no such setting, and nothing changes.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, FIXED_SIZE)


def free_host_memory(system: Path = Path("/")) -> int | None:
    """Bytes that this process may still take, of the machine or of its container; None where nothing says so."""
    found = []
    with suppress(OSError, ValueError, StopIteration):
        lines = (system / "proc/meminfo").read_text().splitlines()
        found.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]))
    with suppress(OSError, ValueError):  # "max" is no number
        group = system / "sys/fs/cgroup"
        found.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return max(0, min(found)) if found else None


def from_host(rows: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Rows of a tensor on the host, on the device; a GPU computes while the next ones are copied to pinned memory."""
    if device.type != "cuda":
        return rows.to(device, dtype)
    return rows.pin_memory().to(device, non_blocking=True).to(dtype)
