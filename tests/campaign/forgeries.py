"""Hostile files that need to be built: arrays under a right checksum, archives, payloads."""

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st
from safetensors import numpy as safetensors

from campaign.forged_objects import Payload
from campaign.materials import node_arrays, read_packed, with_checksum, write_packed
from campaign.mutants import Mutant, Strategy, damaged_bytes, damaged_json
from campaign.verdicts import CANARY

Arrays = dict[str, np.ndarray]
BOMB = 3 << 30  # bytes of zeros


# Arrays.

_DTYPES = ["bool", "int8", "int64", "uint8", "float16", "float64", "int32"]
_FILLS = [float("nan"), float("inf"), 1e38, -1.0, 2.0**31, 1e9]


def changed_arrays(names: list[str], rebuild: Callable[[Callable[[Arrays], None]], bytes]) -> Strategy:
    """One array gets another type, shape or content; or it goes, or one comes."""
    name = st.sampled_from(names)
    return st.one_of(
        st.builds(
            lambda key, kind: _mutant(f"{key} as {kind}", rebuild, partial(_retyped, key, kind)),
            name,
            st.sampled_from(_DTYPES),
        ),
        st.builds(
            lambda key, value: _mutant(f"{key} has {value}", rebuild, partial(_filled, key, value)),
            name,
            st.sampled_from(_FILLS),
        ),
        st.builds(
            lambda key, value: _mutant(f"{key} is all {value}", rebuild, partial(_filled, key, value, every=True)),
            name,
            st.sampled_from(_FILLS),
        ),
        name.map(lambda key: _mutant(f"{key} lacks its last row", rebuild, partial(_shorter, key))),
        name.map(lambda key: _mutant(f"{key} is empty", rebuild, partial(_emptied, key))),
        name.map(lambda key: _mutant(f"{key} has an axis more", rebuild, partial(_deeper, key))),
        name.map(lambda key: _mutant(f"{key} is missing", rebuild, lambda arrays: arrays.pop(key, None))),
        name.map(lambda key: _mutant(f"{key} is reversed", rebuild, partial(_reversed, key))),
        name.map(lambda key: _mutant(f"{key} stands a second time", rebuild, partial(_doubled, key))),
    )


def _mutant(says: str, rebuild: Callable[[Callable[[Arrays], None]], bytes], change: Callable[[Arrays], Any]) -> Mutant:
    plausible = "reversed" in says or "2147483648" in says or "1000000000" in says or "-1.0" in says
    return Mutant(says, lambda: rebuild(change), "plausible" if plausible else "damaging")


def _retyped(key: str, kind: str, arrays: Arrays) -> None:
    with np.errstate(all="ignore"):
        arrays[key] = arrays[key].astype(kind)


def _filled(key: str, value: float, arrays: Arrays, every: bool = False) -> None:
    with np.errstate(all="ignore"):
        arrays[key] = arrays[key].copy()
        arrays[key].reshape(-1)[: None if every else 1] = np.float64(value).astype(arrays[key].dtype)


def _shorter(key: str, arrays: Arrays) -> None:
    arrays[key] = arrays[key][:-1] if arrays[key].ndim else arrays[key]


def _emptied(key: str, arrays: Arrays) -> None:
    arrays[key] = arrays[key][:0] if arrays[key].ndim else np.zeros(0, arrays[key].dtype)


def _deeper(key: str, arrays: Arrays) -> None:
    arrays[key] = arrays[key][None]


def _reversed(key: str, arrays: Arrays) -> None:
    arrays[key] = np.ascontiguousarray(np.flip(arrays[key]))


def _doubled(key: str, arrays: Arrays) -> None:
    arrays[f"{key}_2"] = arrays[key]


# safetensors.


def split_safetensors(content: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def joined_safetensors(header: bytes, data: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def damaged_header(content: bytes) -> Strategy:
    """The JSON at the head of a safetensors file."""
    header, data = split_safetensors(content)
    return damaged_json(header).map(lambda m: Mutant(m.says, lambda: joined_safetensors(m.build(), data)))


def damaged_metadata(content: bytes, key: str) -> Strategy:
    """The JSON in a text of the metadata, in a file that is whole otherwise."""
    header, data = split_safetensors(content)
    inner = json.loads(header["__metadata__"][key])

    def joined(changed: bytes) -> bytes:
        metadata = header["__metadata__"] | {key: changed.decode(errors="replace")}
        return joined_safetensors(json.dumps(header | {"__metadata__": metadata}).encode(), data)

    return damaged_json(inner).map(lambda m: Mutant(m.says, lambda: joined(m.build()), m.effect))


def retensored(content: bytes) -> Strategy:
    """The tensors of a safetensors file, its metadata kept."""
    header, _ = split_safetensors(content)

    def rebuild(change: Callable[[Arrays], None]) -> bytes:
        arrays = safetensors.load(content)
        change(arrays)
        return safetensors.save(arrays, header.get("__metadata__"))

    return changed_arrays(sorted(safetensors.load(content)), rebuild)


def resigned_tensors(content: bytes) -> Strategy:
    """The tensors of a checkpoint, under a right checksum."""
    record = checkpoint_record(content)

    def rebuild(change: Callable[[Arrays], None]) -> bytes:
        arrays = safetensors.load(content)
        change(arrays)
        return checkpoint(arrays, json.dumps(record))

    return changed_arrays(sorted(safetensors.load(content)), rebuild)


def resigned_record(content: bytes) -> Strategy:
    """The record of a checkpoint, under a right checksum."""
    arrays = safetensors.load(content)

    def signed(mutant: Mutant) -> Mutant:
        return Mutant(mutant.says, lambda: checkpoint(arrays, mutant.build().decode(errors="replace")), mutant.effect)

    return damaged_json(checkpoint_record(content)).map(signed)


def checkpoint_record(content: bytes) -> Any:
    return json.loads(split_safetensors(content)[0]["__metadata__"]["run"])


def checkpoint(arrays: Arrays, text: str) -> bytes:
    """As the package writes it."""
    digest = hashlib.sha256(text.encode())
    for key in sorted(arrays):
        digest.update(f"{key} torch.{arrays[key].dtype} {arrays[key].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[key]).data)
    return safetensors.save(arrays, {"run": text, "checksum": digest.hexdigest()})


def signed_config(config: bytes, weights: bytes) -> bytes:
    """The configuration of a model directory whose weights somebody replaced, under a right checksum."""
    document = json.loads(config) | {"weights": hashlib.sha256(weights).hexdigest()}
    return json.dumps(with_checksum(document)).encode()


def resigned_config(content: bytes) -> Strategy:
    """A configuration under a right checksum, which says something else."""
    return damaged_json(json.loads(content)).map(lambda m: Mutant(m.says, lambda: _resigned(m.build()), m.effect))


def _resigned(content: bytes) -> bytes:
    try:
        document = json.loads(content)
        return json.dumps(with_checksum(document)).encode() if isinstance(document, dict) else content
    except (ValueError, RecursionError):
        return content


def repacked(content: bytes) -> Strategy:
    """Packed molecules whose arrays or origin were changed by somebody who knows the digest."""
    arrays, header = read_packed(content)

    def rebuild(change: Callable[[Arrays], None]) -> bytes:
        changed = dict(arrays)
        change(changed)
        return write_packed(changed, header)

    def described(mutant: Mutant) -> Mutant:
        return Mutant(mutant.says, lambda: write_packed(arrays, _resigned(mutant.build()).decode()), mutant.effect)

    return st.one_of(changed_arrays(sorted(arrays), rebuild), damaged_json(header).map(described))


# npz.


def npz(content: bytes) -> Strategy:
    """Arrays, archives and payloads."""

    def rebuild(change: Callable[[Arrays], None]) -> bytes:
        arrays = node_arrays()
        change(arrays)
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        return stream.getvalue()

    special = {
        "a payload as x": partial(_npz_of, {"x.npy": _object_npy()}),
        "a payload as y": partial(_npz_of, {"x.npy": _npy(node_arrays()["x"]), "y.npy": _object_npy()}),
        "a header of 1e10 rows": partial(_npz_of, {"x.npy": _npy_header("(10000000000, 3)")}),
        "a header of 1e18 rows": partial(_npz_of, {"x.npy": _npy_header("(1000000000000000000, 30)")}),
        "a header that is a program": partial(_npz_of, {"x.npy": _npy_header(f"open('{CANARY}','w')")}),
        "negative rows": partial(_npz_of, {"x.npy": _npy_header("(-3, 3)")}),
        "3 GiB of zeros": partial(_zip_bomb, _npy_header("(268435456, 3)")),
        "a name that leaves the folder": partial(_npz_of, {"../x.npy": _npy(node_arrays()["x"])}),
        "no arrays": partial(_npz_of, {}),
        "100,000 columns": partial(_npz_of, {"x.npy": _npy(np.ones((3, 100_000), np.float32))}),
        "1e7 classes": partial(_npz_of, {"x.npy": _npy(node_arrays()["x"]), "y.npy": _npy(np.arange(30) * 400_000)}),
        "texts as x": partial(_npz_of, {"x.npy": _npy(np.array([["a", "b"]] * 5))}),
        "dates as x": partial(_npz_of, {"x.npy": _npy(np.zeros((5, 2), "datetime64[s]"))}),
        "complex x": partial(_npz_of, {"x.npy": _npy(np.ones((5, 2), complex))}),
    }
    return st.one_of(
        changed_arrays(list(node_arrays()), rebuild),
        damaged_bytes(content),
        st.sampled_from([Mutant(says, build) for says, build in special.items()]),
    )


def _npz_of(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _object_npy() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([Payload()], dtype=object), allow_pickle=True)
    return stream.getvalue()


def _npy_header(shape: str) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def _zip_bomb(head: bytes) -> bytes:
    """An archive of zeros; the compressed piece is made once and repeated."""
    piece, step = bytes(64 << 20), 64 << 20
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    middle = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    body = first + middle * (BOMB // step) + packer.flush(zlib.Z_FINISH)
    check = zlib.crc32(head)
    for _ in range(BOMB // step):
        check = zlib.crc32(piece, check)
    sizes = struct.pack("<III", check, len(body), len(head) + BOMB)
    local = struct.pack("<4sHHHHH", b"PK\3\4", 20, 0, 8, 0, 0) + sizes + struct.pack("<HH", 5, 0) + b"x.npy"
    central = (
        struct.pack("<4sHHHHHH", b"PK\1\2", 20, 20, 0, 8, 0, 0)
        + sizes
        + struct.pack("<HHHHHII", 5, 0, 0, 0, 0, 0, 0)
        + b"x.npy"
    )
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, len(central), len(local) + len(body), 0)
    return local + body + central + end
