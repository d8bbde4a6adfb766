"""Packed graphs in one safetensors file that knows what it was made from and whether it is whole."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lanczosnet._extras import require
from lanczosnet.files import atomic_write
from lanczosnet.graphs.errors import DataError
from lanczosnet.processes import check_memory, check_memory_to_save
from lanczosnet.schemas.packed_molecules import (
    FORMAT,
    REMEDY,
    OriginRecord,
    PackedHeader,
    check_arrays,
    header_text,
    packed_header,
)
from lanczosnet.schemas.record import FileError

Content = tuple[dict[str, np.ndarray], OriginRecord]  # arrays, and what they were made from


def write_cache(path: Path, arrays: dict[str, np.ndarray], origin: dict[str, Any]) -> None:
    """Write arrays and what they were made from; the file appears whole or not at all."""
    write_arrays(path, arrays, header_text(origin, content_digest(arrays)))


def read_cache(path: Path) -> Content:
    """The arrays and their origin, everything verified."""
    try:
        arrays, text = read_arrays(path)
    except FileError as error:
        raise _unusable(path, str(error)) from error
    try:
        header = _header(text, path)
        if header.content != content_digest(arrays):
            raise _unusable(path, "its content does not fit its checksum")
        check_arrays(arrays, header.origin, path)
    except FileError as error:
        raise DataError(str(error)) from error
    return arrays, header.origin


def write_arrays(path: Path, arrays: dict[str, np.ndarray], header: str) -> None:
    """Arrays under a header of ours; the file appears whole or not at all."""
    require("safetensors", to="to write packed graphs")
    from safetensors.numpy import save as serialized

    check_memory_to_save(arrays)
    with atomic_write(path) as temporary:
        temporary.write_bytes(serialized(arrays, {"lanczosnet": header}))


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], str]:
    """What `write_arrays` wrote, not yet verified."""
    require("safetensors", to="to read packed graphs")
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("lanczosnet", "")
            check_memory(path.stat().st_size)
            return {key: file.get_tensor(key) for key in file.keys()}, text  # noqa: SIM118 - not a dictionary
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise FileError(f"it is torn or damaged ({error})") from error


def _header(text: str, path: Path) -> PackedHeader:
    if f'"{FORMAT}"' not in text:
        raise _unusable(path, "it is not a file of packed molecules")
    return packed_header(text, path)


def read_if(path: Path, accepts: Callable[[OriginRecord], bool]) -> Content | None:
    """What `read_cache` gives, or None where the file is absent, torn, or made from something not accepted."""
    try:
        arrays, origin = read_cache(path)
    except DataError:
        return None
    return (arrays, origin) if accepts(origin) else None


def content_digest(arrays: dict[str, np.ndarray]) -> str:
    """SHA-256 of names, types, shapes and numbers."""
    digest = hashlib.sha256()
    for key in sorted(arrays):
        digest.update(f"{key} {arrays[key].dtype} {arrays[key].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[key]).data)
    return digest.hexdigest()


def _unusable(path: Path, reason: str) -> DataError:
    return DataError(f"the cache cannot be used: {reason}", file=path, remedy=REMEDY)
