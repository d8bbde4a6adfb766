"""Memory of the host that was freed goes back to the system."""

import ctypes
from contextlib import suppress

MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of mallopt(3)
FIXED_SIZE = 2**20  # bytes


def return_freed_blocks() -> None:
    """glibc keeps freed blocks of up to 32 MB, in pieces that larger ones do not fit into; from now on, up to 1 MB.

    A step then needs about half of the memory. On a CPU it takes longer, as pages are asked for again. Other libraries
    have no such setting, and nothing changes.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, FIXED_SIZE)
