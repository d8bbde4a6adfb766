"""Which part of a graph every node belongs to: a file with one whole number per node, in their order.

Parts are numbered from 0. The file is NumPy's, or a text with a number in every line, as METIS writes it, below a name
or not. Nothing here imports torch.
"""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from lanczosnet.files import user_path
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.npy_file import mapped_array

AT_A_TIME = 2**20  # numbers
REMEDY = "Give every node the number of its part, from 0 on"


def read_partition(path: str | Path, num_nodes: int, num_processes: int) -> np.ndarray:
    """The process of every node, `[node]`. Of several parts for each process, it takes neighbouring numbers."""
    path = user_path(path)
    if not path.is_file():
        raise DataError("there is no such file", file=path, remedy=REMEDY)
    part = _mapped(path) if path.suffix == ".npy" else _column(path)
    if len(part) != num_nodes:
        raise DataError(f"it has {len(part):,} numbers, but the graph has {num_nodes:,} nodes", file=path)
    num_parts = len(_sizes(part, path))
    if num_parts % num_processes:
        remedy = "Their number must be that of the processes, or a multiple of it"
        raise DataError(f"{num_parts} parts for {num_processes} processes", file=path, remedy=remedy)
    process = np.empty(num_nodes, np.min_scalar_type(-num_processes))  # signed, as torch knows it
    for rows in _slices(num_nodes):
        process[rows] = part[rows] // (num_parts // num_processes)
    return process


def _mapped(path: Path) -> np.ndarray:
    part = mapped_array(path, remedy=REMEDY)
    if part.ndim != 1 or part.dtype.kind not in "iu":
        raise DataError(f"it is {part.dtype.name} {list(part.shape)}, not whole numbers [node]", file=path)
    return part


def _column(path: Path) -> np.ndarray:
    try:
        with path.open(encoding="utf-8-sig") as stream:
            return np.concatenate([np.empty(0, np.int64), *_blocks(stream, path)])
    except UnicodeDecodeError as error:
        raise DataError("it is not a text of numbers", file=path, remedy=REMEDY) from error


def _blocks(stream: IO[str], path: Path) -> Iterator[np.ndarray]:
    first = stream.readline()
    is_number = first.strip().removeprefix("-").isdecimal()
    row, lines = 1 if is_number else 2, chain([first] if is_number else [], stream)
    while block := list(islice(lines, AT_A_TIME)):
        yield np.array([_number(line, path, row + place) for place, line in enumerate(block)], np.int64)
        row += len(block)


def _number(line: str, path: Path, row: int) -> int:
    try:
        number = int(line)
        return int(np.int64(number))
    except (ValueError, OverflowError) as error:
        raise DataError(f"{line.strip()!r:.40} is no number of a part", file=path, row=row, remedy=REMEDY) from error


def _sizes(part: np.ndarray, path: Path) -> np.ndarray:
    """How many nodes are in each part; none is empty."""
    for rows in _slices(len(part)):
        if len(negative := np.flatnonzero(part[rows] < 0)):
            node = rows.start + int(negative[0])
            raise DataError(f"node {node} has the negative number {part[node]}", file=path, remedy=REMEDY)
    largest = max((int(part[rows].max()) for rows in _slices(len(part))), default=-1)
    if largest >= len(part):
        raise DataError(f"there is a part {largest}, but only {len(part):,} nodes", file=path, remedy=REMEDY)
    size = np.zeros(largest + 1, np.int64)
    for rows in _slices(len(part)):
        size += np.bincount(part[rows].astype(np.int64), minlength=len(size))
    if len(empty := np.flatnonzero(size == 0)):
        remedy = f"Number the parts from 0 to {len(size) - len(empty) - 1}"
        raise DataError(f"part {empty[0]} has no nodes", file=path, remedy=remedy)
    return size


def _slices(count: int) -> Iterator[slice]:
    return (slice(begin, begin + AT_A_TIME) for begin in range(0, count, AT_A_TIME))
