"""npy files, memory-mapped and without objects."""

from pathlib import Path
from tokenize import TokenError
from typing import Literal

import numpy as np

from lanczosnet.graphs.errors import DataError

UNREADABLE = (OSError, ValueError, EOFError, SyntaxError, OverflowError, TokenError)  # a header is Python's syntax


def mapped_array(path: Path, mode: Literal["r", "c"] = "r", remedy: str = "") -> np.ndarray:
    """The array of a file; "c" may be written to, and nothing reaches the disk."""
    try:
        array: np.ndarray = np.load(path, mmap_mode=mode, allow_pickle=False)
    except UNREADABLE as error:
        raise DataError(f"the array cannot be read ({error})", file=path, remedy=remedy) from error
    return array
