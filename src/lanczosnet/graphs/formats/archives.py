"""Arrays and tensors from archives, with their sizes checked before memory is taken. Nothing is unpickled freely."""

import io
import tarfile
import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path
from tokenize import TokenError

import numpy as np
import torch
from torch import Tensor

from lanczosnet.graphs.errors import DataError
from lanczosnet.schemas.limits import check_limit


def npz_names(path: Path) -> set[str]:
    """The names of the arrays in an npz."""
    with zipfile.ZipFile(path) as archive:
        return {name.removesuffix(".npy") for name in archive.namelist()}


def read_npz(
    path: Path, names: Iterable[str], largest: int | None = None, *, texts: Collection[str] = ()
) -> dict[str, np.ndarray]:
    """These arrays of an npz, which together may have `largest` bytes; without it the user's limit holds.

    Arrays of Python objects are refused. Those in `texts` may hold texts, all others hold numbers.
    """
    with zipfile.ZipFile(path) as archive:
        members = {name: _member(archive, name) for name in names}
        size = sum(member.file_size for member in members.values())
        if largest is None:
            check_decompressed(size, path)
        else:
            _check_size(size, largest)
        return {name: _array(archive, member, "US" if name in texts else "") for name, member in members.items()}


def check_decompressed(size: int, path: Path) -> None:
    """What a small file grows to is limited; a file that is large itself is as large as its owner wanted."""
    if size > path.stat().st_size:
        check_limit("BYTES", size, f"{path}: bytes when it is decompressed")


def read_tensors(path: Path, names: Iterable[str], largest: int) -> dict[str, Tensor]:
    """The tensors of these files of a tar archive, in whatever folder they are; together at most `largest` bytes."""
    wanted, found, total = set(names), {}, 0
    with tarfile.open(path) as archive:
        for member in archive:
            name = member.name.rsplit("/", 1)[-1]
            if member.isfile() and name in wanted:
                total += member.size
                _check_size(total, largest)
                found[name] = _tensor(archive.extractfile(member).read(), name, largest)  # type: ignore[union-attr]
    if missing := sorted(wanted - found.keys()):
        raise DataError(f"the archive has no {', '.join(missing)}")
    return found


def _member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    try:
        return archive.getinfo(f"{name}.npy")
    except KeyError:
        held = ", ".join(sorted(member.removesuffix(".npy") for member in archive.namelist()))
        raise DataError(f"there is no array {name!r}; the file has {held}") from None


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, kinds: str = "") -> np.ndarray:
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        try:
            shape, column_major, dtype = read(stream)
        except (SyntaxError, TokenError) as error:  # a header is Python's syntax
            raise DataError(f"the array {member.filename!r} has no header that can be read ({error})") from error
        if dtype.kind not in "biuf" + kinds:
            raise DataError(f"the array {member.filename!r} holds {dtype}, not numbers")
        # The header says how much memory is needed, the directory how much content there is.
        count = int(np.prod(shape, dtype=object))
        if count * dtype.itemsize > member.file_size:
            raise DataError(f"the array {member.filename!r} is shorter than its header says")
        content = stream.read(count * dtype.itemsize)
    flat = np.frombuffer(bytearray(content), dtype=dtype)
    flat = flat.astype(np.float32) if dtype == np.float16 else flat  # which pandas does not know as an index
    return flat.reshape(shape, order="F" if column_major else "C")


def _tensor(content: bytes, name: str, largest: int) -> Tensor:
    stream = io.BytesIO(content)
    if not zipfile.is_zipfile(stream):
        raise DataError(f"{name} is not in PyTorch's zip format")
    with zipfile.ZipFile(stream) as archive:
        _check_size(sum(member.file_size for member in archive.infolist()), largest)
    stream.seek(0)
    tensor = torch.load(stream, map_location="cpu", weights_only=True)
    if not isinstance(tensor, Tensor):
        raise DataError(f"{name} holds a {type(tensor).__name__}, not a tensor")
    _check_size(tensor.numel() * tensor.element_size(), largest)  # strides of 0 make much of little
    return tensor


def _check_size(size: int, largest: int) -> None:
    if size > largest:
        raise DataError(f"the content has {size:,} bytes decompressed, more than the {largest:,} expected")
