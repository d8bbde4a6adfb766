"""Hostile files that need to be built: arrays under a right checksum, archives, payloads."""

import hashlib
import io
import json
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from campaign.materials import graph, node_arrays, planetoid, read_packed, write_packed
from campaign.mutants import Mutant, Strategy, damaged_bytes, damaged_json
from campaign.verdicts import CANARY

Arrays = dict[str, np.ndarray]
BOMB = 3 << 30  # bytes of zeros


class Payload:
    """Creates a file when it is unpickled by something that lets it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (CANARY, "w")


PAYLOADS = {
    "open": pickle.dumps(Payload(), protocol=2),
    "system": f"cos\nsystem\n(S'touch {CANARY}'\ntR.".encode(),
    "builtins": f"c__builtin__\nopen\n(S'{CANARY}'\nS'w'\ntR.".encode(),
    "eval": f"c__builtin__\neval\n(S'open(\"{CANARY}\",\"w\")'\ntR.".encode(),
    "numpy": f"cnumpy\nsave\n(S'{CANARY}'\nI1\ntR.".encode(),
    "instance": f"(S'touch {CANARY}'\nios\nsystem\n.".encode(),
    "chained": f"ccollections\ndefaultdict\n(c__builtin__\nlist\ntR(dS'a'\ncos\nsystem\n(S'touch {CANARY}'\ntRsb.".encode(),
}


# Arrays.

_DTYPES = ["bool", "int8", "int64", "uint8", "float16", "float64", "int32"]
_FILLS = [float("nan"), float("inf"), 1e38, -1.0, 2.0**31, 1e9]


def changed_arrays(names: list[str], rebuild: Callable[[Callable[[Arrays], None]], bytes]) -> Strategy:
    """One array gets another type, shape or content; or it goes, or one comes."""
    name = st.sampled_from(names)
    return st.one_of(
        st.builds(lambda key, kind: _mutant(f"{key} as {kind}", rebuild, partial(_retyped, key, kind)), name, st.sampled_from(_DTYPES)),
        st.builds(lambda key, value: _mutant(f"{key} has {value}", rebuild, partial(_filled, key, value)), name, st.sampled_from(_FILLS)),
        st.builds(lambda key, value: _mutant(f"{key} is all {value}", rebuild, partial(_filled, key, value, every=True)), name, st.sampled_from(_FILLS)),
        name.map(lambda key: _mutant(f"{key} lacks its last row", rebuild, partial(_shorter, key))),
        name.map(lambda key: _mutant(f"{key} is empty", rebuild, partial(_emptied, key))),
        name.map(lambda key: _mutant(f"{key} has an axis more", rebuild, partial(_deeper, key))),
        name.map(lambda key: _mutant(f"{key} is missing", rebuild, lambda arrays: arrays.pop(key, None))),
        name.map(lambda key: _mutant(f"{key} is reversed", rebuild, partial(_reversed, key))),
        name.map(lambda key: _mutant(f"{key} stands a second time", rebuild, partial(_doubled, key))),
    )  # fmt: skip


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
    from safetensors.numpy import load, save

    header, _ = split_safetensors(content)

    def rebuild(change: Callable[[Arrays], None]) -> bytes:
        arrays = load(content)
        change(arrays)
        return save(arrays, header.get("__metadata__"))

    return changed_arrays(sorted(load(content)), rebuild)


def signed_config(config: bytes, weights: bytes) -> bytes:
    """The configuration of a model directory whose weights somebody replaced."""
    return json.dumps(json.loads(config) | {"weights": hashlib.sha256(weights).hexdigest()}).encode()


def repacked(content: bytes) -> Strategy:
    """Packed molecules whose arrays or origin were changed by somebody who knows the digest."""
    arrays, header = read_packed(content)

    def rebuild(change: Callable[[Arrays], None]) -> bytes:
        changed = dict(arrays)
        change(changed)
        return write_packed(changed, header)

    def described(mutant: Mutant) -> Mutant:
        return Mutant(mutant.says, lambda: write_packed(arrays, mutant.build().decode()), mutant.effect)

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
    central = struct.pack("<4sHHHHHH", b"PK\1\2", 20, 20, 0, 8, 0, 0) + sizes + struct.pack("<HHHHHII", 5, 0, 0, 0, 0, 0, 0) + b"x.npy"
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, len(central), len(local) + len(body), 0)
    return local + body + central + end


# PyG objects.


def objects(content: bytes) -> Strategy:
    """Data objects of every wrong shape, payloads, and damage."""
    special = {name: partial(_saved, make) for name, make in _OBJECTS.items()}
    special |= {f"a payload by {name}": partial(_bytes, payload) for name, payload in PAYLOADS.items()}
    listed = [Mutant(says, build, "plausible" if "payload" not in says else "damaging") for says, build in special.items()]
    return st.one_of(damaged_bytes(content), st.sampled_from(listed), st.sampled_from(listed))


def _bytes(content: bytes) -> bytes:
    return content


def _saved(make: Callable[[], Any]) -> bytes:
    import torch

    stream = io.BytesIO()
    torch.save(make(), stream)
    return stream.getvalue()


def _with(**changes: Any) -> Callable[[], Any]:
    def make() -> Any:
        data = graph()
        for key, change in changes.items():
            setattr(data, key, change(data) if callable(change) else change)
        return data

    return make


def _hetero() -> Any:
    from torch_geometric.data import HeteroData

    return HeteroData()


def _empty() -> Any:
    from torch_geometric.data import Data

    return Data()


def _tensor(*shape: int, dtype: str = "float32") -> Callable[[Any], Any]:
    import torch

    return lambda data: torch.ones(shape, dtype=getattr(torch, dtype))


_OBJECTS: dict[str, Callable[[], Any]] = {
    "HeteroData": _hetero,
    "empty Data": _empty,
    "a number": lambda: 5,
    "a dictionary": lambda: {"x": 1},
    "an empty list": list,
    "a list of lists": lambda: [[graph()]],
    "a list of a payload": lambda: [graph(), Payload()],
    "a payload as x": _with(x=Payload()),
    "unequal features": lambda: [graph(), _with(x=_tensor(12, 9))()],
    "one graph without x": lambda: [graph(), _with(x=None)()],
    "x of NaN": _with(x=lambda d: d.x * float("nan")),
    "x of integers": _with(x=_tensor(12, 3, dtype="int64")),
    "x of complex numbers": _with(x=_tensor(12, 3, dtype="complex64")),
    "x of four axes": _with(x=_tensor(12, 3, 2, 2)),
    "x of no axis": _with(x=_tensor()),
    "x of other length": _with(x=_tensor(5, 3)),
    "x as text": _with(x="hello"),
    "x as a list": _with(x=[1, 2, 3]),
    "edges to nowhere": _with(edge_index=lambda d: d.edge_index + 100),
    "edges from -1": _with(edge_index=lambda d: d.edge_index - 1),
    "float edges": _with(edge_index=lambda d: d.edge_index.float()),
    "edges of one row": _with(edge_index=lambda d: d.edge_index[:1]),
    "edges as a list": _with(edge_index=lambda d: d.edge_index.tolist()),
    "directed edges": _with(edge_index=lambda d: d.edge_index[:, :5]),
    "no edges": _with(edge_index=lambda d: d.edge_index[:, :0]),
    "a trillion nodes": _with(num_nodes=10**12, x=None, y=None),
    "1e8 nodes": _with(num_nodes=10**8, x=None, y=None),
    "1e9 classes": _with(y=lambda d: d.y * 10**9),
    "1e7 classes": _with(y=lambda d: d.y * 10**7),
    "negative classes": _with(y=lambda d: d.y - 5),
    "y of NaN": _with(y=lambda d: d.y * float("nan")),
    "y of booleans": _with(y=lambda d: d.y.bool()),
    "y of text": _with(y="a"),
    "masks of two columns": _with(train_mask=_tensor(12, 10, dtype="bool"), val_mask=_tensor(12, 10, dtype="bool"), test_mask=_tensor(12, 10, dtype="bool")),
    "masks of numbers": _with(train_mask=_tensor(12), val_mask=_tensor(12), test_mask=_tensor(12)),
    "masks too short": _with(train_mask=_tensor(3, dtype="bool"), val_mask=_tensor(3, dtype="bool"), test_mask=_tensor(3, dtype="bool")),
    "negative weights": _with(edge_weight=lambda d: -d.edge_index[0].float() - 1),
    "weights of NaN": _with(edge_weight=lambda d: d.edge_index[0] * float("nan")),
    "weights too few": _with(edge_weight=_tensor(2)),
    "edge_attr too long": _with(edge_attr=_tensor(99, 2)),
    "an odd name": _with(name={"a": 1}),
    "sparse x": _with(x=lambda d: d.x.to_sparse()),
}  # fmt: skip


# Planetoid's pickles.


def pickles(part: str) -> Strategy:
    """One of the eight files, as a payload, as an object of another kind, or damaged."""
    content = planetoid()[part]
    others = [value for name, value in planetoid().items() if name != part]
    odd: list[Any] = [5, None, "text", [1, 2], {}, {0: None}, {0: ["a"]}, {"a": [1]}, {0: [10**18]}, {0: [-1]}, [[]] * 5, b"x" * 100]
    deep = b"(" * 100_000 + b"l" * 100_000 + b"."
    return st.one_of(
        damaged_bytes(content),
        st.sampled_from([Mutant(f"a payload by {name}", partial(_bytes, p)) for name, p in PAYLOADS.items()]),
        st.sampled_from([Mutant(f"{value!r:.20}", partial(pickle.dumps, value, 2)) for value in odd]),
        st.sampled_from([Mutant(f"another part of {len(value)} bytes", partial(_bytes, value)) for value in others]),
        st.just(Mutant("100,000 lists deep", partial(_bytes, deep))),
        st.just(Mutant("a memo of 2^31", partial(_bytes, b"\x80\x02]r\xff\xff\xff\x7f."))),
    )
