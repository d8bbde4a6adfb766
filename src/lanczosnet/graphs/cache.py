"""Packed graphs in one safetensors file that knows what it was made from and whether it is whole."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lanczosnet._extras import require
from lanczosnet.files import atomic_write
from lanczosnet.graphs.errors import DataError

Content = tuple[dict[str, np.ndarray], dict[str, Any]]  # arrays, and what they were made from

FORMAT = "lanczosnet-molecules"
VERSION = 1  # of the file format and of the featurisation; raise it whenever either changes


def write_cache(path: Path, arrays: dict[str, np.ndarray], origin: dict[str, Any]) -> None:
    """Write arrays and what they were made from; the file appears whole or not at all."""
    require("safetensors", to="to write packed graphs")
    from safetensors.numpy import save as serialized

    header = {"format": FORMAT, "version": VERSION, "origin": origin, "content": _digest(arrays)}
    with atomic_write(path) as temporary:
        temporary.write_bytes(serialized(arrays, {"lanczosnet": json.dumps(header)}))


def read_cache(path: Path) -> Content:
    """The arrays and their origin, everything verified."""
    require("safetensors", to="to read packed graphs")
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {}).get("lanczosnet", "{}"))
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a dictionary
    except (SafetensorError, OSError, ValueError) as error:
        raise _unusable(path, f"it is torn or damaged ({error})") from error
    if header.get("format") != FORMAT:
        raise _unusable(path, "it is not a file of packed molecules")
    if header["version"] != VERSION:
        raise _unusable(path, f"it has format version {header['version']}, this program reads {VERSION}")
    if header["content"] != _digest(arrays):
        raise _unusable(path, "its content does not fit its checksum")
    return arrays, header["origin"]


def read_if(path: Path, accepts: Callable[[dict[str, Any]], bool]) -> Content | None:
    """What `read_cache` gives, or None where the file is absent, torn, or made from something not accepted."""
    try:
        arrays, origin = read_cache(path)
    except DataError:
        return None
    return (arrays, origin) if accepts(origin) else None


def _digest(arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for key in sorted(arrays):
        digest.update(f"{key} {arrays[key].dtype} {arrays[key].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[key]).data)
    return digest.hexdigest()


def _unusable(path: Path, reason: str) -> DataError:
    return DataError(
        f"the cache cannot be used: {reason}", file=path, remedy="Delete it; it is made again from the source"
    )
