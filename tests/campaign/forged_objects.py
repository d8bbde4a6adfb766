"""PyG objects and pickles of every wrong shape, and payloads that would run if something let them."""

import io
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st

from campaign.materials import graph, planetoid
from campaign.mutants import Mutant, Strategy, damaged_bytes
from campaign.verdicts import CANARY


class Payload:
    """Creates a file when it is unpickled by something that lets it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (CANARY, "w")


PAYLOADS = {
    "open": pickle.dumps(Payload(), protocol=2),
    "system": f"cos\nsystem\n(S'touch {CANARY}'\ntR.".encode(),
    "builtins": f"c__builtin__\nopen\n(S'{CANARY}'\nS'w'\ntR.".encode(),
    "eval": f'c__builtin__\neval\n(S\'open("{CANARY}","w")\'\ntR.'.encode(),
    "numpy": f"cnumpy\nsave\n(S'{CANARY}'\nI1\ntR.".encode(),
    "instance": f"(S'touch {CANARY}'\nios\nsystem\n.".encode(),
    "chained": b"ccollections\ndefaultdict\n(c__builtin__\nlist\ntR(dS'a'\n"
    + f"cos\nsystem\n(S'touch {CANARY}'\ntRsb.".encode(),
}


# PyG objects.


def objects(content: bytes) -> Strategy:
    """Data objects of every wrong shape, payloads, and damage."""
    special = {name: partial(_saved, make) for name, make in _OBJECTS.items()}
    special |= {f"a payload by {name}": partial(_bytes, payload) for name, payload in PAYLOADS.items()}
    listed = [
        Mutant(says, build, "plausible" if "payload" not in says else "damaging") for says, build in special.items()
    ]
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
    "masks of two columns": _with(
        train_mask=_tensor(12, 10, dtype="bool"),
        val_mask=_tensor(12, 10, dtype="bool"),
        test_mask=_tensor(12, 10, dtype="bool"),
    ),
    "masks of numbers": _with(train_mask=_tensor(12), val_mask=_tensor(12), test_mask=_tensor(12)),
    "masks too short": _with(
        train_mask=_tensor(3, dtype="bool"), val_mask=_tensor(3, dtype="bool"), test_mask=_tensor(3, dtype="bool")
    ),
    "negative weights": _with(edge_weight=lambda d: -d.edge_index[0].float() - 1),
    "weights of NaN": _with(edge_weight=lambda d: d.edge_index[0] * float("nan")),
    "weights too few": _with(edge_weight=_tensor(2)),
    "edge_attr too long": _with(edge_attr=_tensor(99, 2)),
    "an odd name": _with(name={"a": 1}),
    "sparse x": _with(x=lambda d: d.x.to_sparse()),
}


# Planetoid's pickles.


def pickles(part: str) -> Strategy:
    """One of the eight files, as a payload, as an object of another kind, or damaged."""
    content = planetoid()[part]
    others = [value for name, value in planetoid().items() if name != part]
    odd: list[Any] = [
        5,
        None,
        "text",
        [1, 2],
        {},
        {0: None},
        {0: ["a"]},
        {"a": [1]},
        {0: [10**18]},
        {0: [-1]},
        [[]] * 5,
        b"x" * 100,
    ]
    deep = b"(" * 100_000 + b"l" * 100_000 + b"."
    return st.one_of(
        damaged_bytes(content),
        st.sampled_from([Mutant(f"a payload by {name}", partial(_bytes, p)) for name, p in PAYLOADS.items()]),
        st.sampled_from([Mutant(f"{value!r:.20}", partial(pickle.dumps, value, 2)) for value in odd]),
        st.sampled_from([Mutant(f"another part of {len(value)} bytes", partial(_bytes, value)) for value in others]),
        st.just(Mutant("100,000 lists deep", partial(_bytes, deep))),
        st.just(Mutant("a memo of 2^31", partial(_bytes, b"\x80\x02]r\xff\xff\xff\x7f."))),
    )
