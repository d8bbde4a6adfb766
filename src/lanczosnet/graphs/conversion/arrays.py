"""Arrays in files, written and read by rows."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from lanczosnet.graphs.formats.npy_file import mapped_array

HEADER = 128  # bytes: NumPy leaves room for the first axis to grow


class ArrayWriter:
    """An array whose rows are appended; its file has a right header once it is closed."""

    def __init__(self, path: Path, dtype: Any, row_shape: tuple[int, ...] = (), rows: int = 0) -> None:
        """With `rows`, an unfinished file goes on after so many of them."""
        self.dtype, self.row_shape, self.rows = np.dtype(dtype), row_shape, rows
        self._stream = path.open("r+b" if rows else "wb")
        self._stream.truncate(HEADER + rows * self.row_bytes)
        self._write_header()

    @property
    def row_bytes(self) -> int:
        return int(self.dtype.itemsize * np.prod(self.row_shape, dtype=np.int64))

    def append(self, rows: np.ndarray) -> None:
        content = np.ascontiguousarray(rows, self.dtype)
        assert content.shape[1:] == self.row_shape
        self._stream.write(content.data)
        self.rows += len(content)

    def flush(self) -> int:
        """Bring what was written to the disk, and return the number of rows."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        return self.rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self._write_header()
            self.flush()
        self._stream.close()

    def _write_header(self) -> None:
        self._stream.seek(0)
        facts = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(self._stream, facts | {"shape": (self.rows, *self.row_shape)})
        assert self._stream.tell() == HEADER
        self._stream.seek(0, os.SEEK_END)


class ArrayFile:
    """An array in a `.npy` file, of which only the rows that are read take memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        array = self._mapped()
        self.shape, self.dtype = array.shape, array.dtype

    def part(self, *index: slice) -> np.ndarray:
        """A copy: the file is mapped anew each time, as pages that were read count as memory while it stays mapped."""
        return np.array(self._mapped()[index])

    def blocks(self, first: int, rows: int) -> Iterator[tuple[int, np.ndarray]]:
        """So many rows at a time from the first on, with the number of each block's first row."""
        for begin in range(first, self.shape[0], rows):
            yield begin, self.part(slice(begin, begin + rows))

    def _mapped(self) -> np.ndarray:
        return mapped_array(self.path)
