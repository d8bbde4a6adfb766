"""Hostile versions of a file, drawn by hypothesis: what was done to it, and a function that gives its bytes."""

import json
import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

Effect = Literal["damaging", "plausible"]
"""A damaged file can be told from a good one; a plausible one (another number of the same type) cannot."""

Place = tuple[str | int, ...]
Strategy = st.SearchStrategy["Mutant"]


@dataclass(frozen=True)
class Mutant:
    """A hostile file; it is built where it is used, since some are large."""

    says: str
    build: Callable[[], bytes]
    effect: Effect = "damaging"


def draws(strategy: Strategy, count: int, number: int) -> list[Mutant]:
    """So many mutants, the same for the same number."""
    found: list[Mutant] = []

    @seed(number)
    @settings(
        max_examples=count, database=None, phases=[Phase.generate], deadline=None, suppress_health_check=HealthCheck
    )
    @given(strategy)
    def collect(mutant: Mutant) -> None:
        found.append(mutant)

    collect()
    return found


# Bytes.


def damaged_bytes(content: bytes) -> Strategy:
    """Flip a bit, cut, insert, overwrite, repeat, or drop a piece."""
    place = st.integers(0, max(len(content) - 1, 0))
    length = st.sampled_from([1, 2, 8, 64, 4096])
    junk = st.sampled_from([b"\0", b"\xff", b"\xfe\xff", b"{", b"NaN", b"\r\n", b"9" * 400, "\u202e".encode()])
    return st.one_of(
        st.builds(
            lambda at, bit: Mutant(f"bit {bit} of byte {at} flipped", partial(_flipped, content, at, bit)),
            place,
            st.integers(0, 7),
        ),
        st.builds(lambda at: Mutant(f"cut to {at} bytes", partial(_cut, content, at)), place),
        st.builds(
            lambda at, more: Mutant(f"{more!r:.30} put in at byte {at}", partial(_inserted, content, at, more)),
            place,
            junk,
        ),
        st.builds(lambda at, n: Mutant(f"{n} bytes zeroed from {at}", partial(_zeroed, content, at, n)), place, length),
        st.builds(
            lambda at, n: Mutant(f"{n} bytes left out from {at}", partial(_dropped, content, at, n)), place, length
        ),
        st.sampled_from([0, 1 << 20, 64 << 20]).map(
            lambda n: Mutant(f"followed by {n} bytes of 0x41", partial(_followed, content, n))
        ),
    )


def _flipped(content: bytes, at: int, bit: int) -> bytes:
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :] if content else b"\1"


def _cut(content: bytes, at: int) -> bytes:
    return content[:at]


def _inserted(content: bytes, at: int, more: bytes) -> bytes:
    return content[:at] + more + content[at:]


def _zeroed(content: bytes, at: int, length: int) -> bytes:
    length = min(length, len(content) - at)
    return content[:at] + bytes(length) + content[at + length :]


def _dropped(content: bytes, at: int, length: int) -> bytes:
    return content[:at] + content[at + length :]


def _followed(content: bytes, length: int) -> bytes:
    return content + b"A" * length if length else b""


# JSON.

_TEXTS = ["", "nan", "../../../etc/passwd", "\x00", "\ud800", "Infinity", "__class__", "1e400", "\n"]
_NUMBERS = [0, -1, 1, 2**31, 2**63, -(2**63), 10**400, 10**7, 1e308, -1e308, 1e-320, math.nan, math.inf, -math.inf, 0.5]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(_NUMBERS),
    st.sampled_from(_TEXTS),
    st.just(100_000).map("A".__mul__),
    st.integers(),
    st.floats(),
)
VALUES = st.one_of(
    SCALARS,
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=5,
    ),
)


def damaged_json(document: Any) -> Strategy:
    """Delete, retype, nest, enlarge, rename or double a place of a document."""
    place = st.sampled_from(list(places(document)))
    inner = st.sampled_from([p for p in places(document) if p] or [()])
    return st.one_of(
        inner.map(lambda at: _json_mutant(document, at, "deleted", _delete)),
        st.builds(
            lambda at, value: _json_mutant(document, at, f"now {value!r:.60}", partial(_put, value=value)),
            place,
            VALUES,
        ),
        st.builds(
            lambda at, value: _json_mutant(document, at, f"now {value!r:.60}", partial(_put, value=value)),
            place,
            VALUES,
        ),
        st.builds(
            lambda at, deep: _json_mutant(document, at, f"nested {deep} deep", partial(_nest, deep=deep)),
            place,
            st.sampled_from([1, 50, 5000]),
        ),
        st.builds(
            lambda at, times: _json_mutant(document, at, f"enlarged {times} times", partial(_enlarge, times=times)),
            place,
            st.sampled_from([2, 1000, 100_000]),
        ),
        inner.map(lambda at: _json_mutant(document, at, "renamed", _rename)),
    )


def places(document: Any, here: Place = ()) -> Iterator[Place]:
    """The ways to every value; of a long list the first, middle and last only."""
    yield here
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*here, key))
    elif isinstance(document, list):
        for i in sorted({0, len(document) // 2, len(document) - 1} & set(range(len(document)))):
            yield from places(document[i], (*here, i))


def _json_mutant(document: Any, at: Place, done: str, change: Callable[[Any, Place], Any]) -> Mutant:
    name = ".".join(map(str, at)) or "the document"
    changed = partial(change, deepcopy(document), at)
    options = change.keywords if isinstance(change, partial) else {}
    value = options.get("value", ...)
    if "times" in options and isinstance(value_at(document, at), int | float):
        value = _larger(options["times"])
    is_plausible = alike(value_at(document, at), value) if value is not ... else change is _rename and _is_listed(at)
    effect: Effect = "plausible" if is_plausible else "damaging"
    return Mutant(f"{name} {done}", lambda: _encoded(changed()), effect)


def _is_listed(at: Place) -> bool:
    """A list in another order cannot be told from the right one."""
    return bool(at) and isinstance(at[-1], int)


def _encoded(document: Any) -> bytes:
    if isinstance(document, bytes):
        return document
    return json.dumps(document).encode()


def alike(old: Any, new: Any) -> bool:
    """A scalar in place of one of its type, finite and of its sign, may be what somebody meant; 2 is as good as 2.0."""
    if type(old) is float and type(new) is int and abs(new) < 2**53:
        new = float(new)
    if type(old) is not type(new) or isinstance(old, dict | list):
        return old == new
    if isinstance(old, int | float) and not isinstance(old, bool):
        return (old < 0) == (new < 0) and (old == 0) == (new == 0) and abs(new) < 1e6
    return True


def value_at(document: Any, at: Place) -> Any:
    for step in at:
        document = document[step]
    return document


def _at_parent(document: Any, at: Place, do: Callable[[Any, Any], None]) -> Any:
    """Wrapped, so that the document itself has a parent."""
    wrapped: Any = [document]
    *way, last = (0, *at)
    do(value_at(wrapped, tuple(way)), last)
    return wrapped[0] if wrapped else b""


def _delete(document: Any, at: Place) -> Any:
    return _at_parent(document, at, lambda parent, key: parent.__delitem__(key))


def _put(document: Any, at: Place, value: Any) -> Any:
    return _at_parent(document, at, lambda parent, key: parent.__setitem__(key, value))


def _nest(document: Any, at: Place, deep: int) -> Any:
    text = json.dumps(_put(document, at, "@here@"))
    inner = json.dumps(value_at(document, at) if not at else None)
    return text.replace('"@here@"', "[" * deep + inner + "]" * deep).encode()


def _enlarge(document: Any, at: Place, times: int) -> Any:
    old = value_at(document, at)
    large = old * times if isinstance(old, list | str) else [old] * times if isinstance(old, dict) else _larger(times)
    return _put(document, at, large)


def _larger(times: int) -> int:
    return 10 ** min(times, 4000)


def _rename(document: Any, at: Place) -> Any:
    def rename(parent: Any, key: Any) -> None:
        value = parent.pop(key)
        parent.insert(0, value) if isinstance(parent, list) else parent.__setitem__(f"{key}_", value)

    return _at_parent(document, at, rename)


# CSV. A cell is replaced; a column or a row is dropped or doubled.

_WORDS = [
    "",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e38",
    "1e400",
    "abc",
    "0x10",
    "1_000",
    "١٢",
    "\x00",
    "a\nb",
    'x"y',
    "," * 50,
    "9" * 5000,
    "=1+1",
]
_CELLS = [
    *_WORDS,
    "-1",
    "10000000",
    "1e-320",
    "True",
    "None",
    "  ",
    "\u202e1",
    "C" * 300,
    "(" * 2000,
    "CC\nCC",
    "[Og]",
    "C.C",
    "*",
    "c1ccccc",
]
_NAMES = ["error", "label", "y", "id", "", "smiles", "predicted_logS", "source", "a\nb", "x" * 10_000, "nan"]


def damaged_table(content: bytes) -> Strategy:
    """Cells, columns, rows, names and the encoding of a CSV."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    row, column = st.integers(1, len(rows) - 1), st.integers(0, len(rows[0]) - 1)
    cell = st.one_of(st.sampled_from(_CELLS), st.text(max_size=6), st.floats().map(repr))
    return st.one_of(
        st.builds(
            lambda i, j, text: Mutant(
                f"row {i}, {rows[0][j]}: {text!r:.40}", partial(_cell, rows, i, j, text), "plausible"
            ),
            row,
            column,
            cell,
        ),
        st.builds(
            lambda i, j, text: Mutant(
                f"row {i}, {rows[0][j]}: {text!r:.40}", partial(_cell, rows, i, j, text), "plausible"
            ),
            row,
            column,
            cell,
        ),
        st.builds(
            lambda j, name: Mutant(
                f"column {rows[0][j]} named {name!r:.40}", partial(_cell, rows, 0, j, name), "plausible"
            ),
            column,
            st.sampled_from(_NAMES),
        ),
        column.map(lambda j: Mutant(f"column {rows[0][j]} left out", partial(_without_column, rows, j), "plausible")),
        column.map(lambda j: Mutant(f"column {rows[0][j]} twice", partial(_with_column, rows, j), "plausible")),
        row.map(lambda i: Mutant(f"row {i} has a cell too many", partial(_ragged, rows, i, 1))),
        row.map(lambda i: Mutant(f"row {i} has a cell too few", partial(_ragged, rows, i, -1), "plausible")),
        row.map(lambda i: Mutant(f"row {i} twice", partial(_with_row, rows, i), "plausible")),
        st.sampled_from([3000, 100_000]).map(
            lambda n: Mutant(f"{n} columns more", partial(_wider, rows, n), "plausible")
        ),
        st.sampled_from([1 << 16, 1 << 24]).map(
            lambda n: Mutant(f"a cell of {n} letters", partial(_cell, rows, 1, 0, "C" * n), "plausible")
        ),
        st.sampled_from(["utf-16", "utf-8-sig", "cp037"]).map(
            lambda code: Mutant(f"in {code}", lambda: content.decode().encode(code), "plausible")
        ),
        damaged_bytes(content).map(lambda m: Mutant(m.says, m.build, "plausible")),
    )


def table_text(rows: list[list[str]]) -> bytes:
    import csv
    import io

    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue().encode("utf-8", "surrogatepass")


def _cell(rows: list[list[str]], i: int, j: int, text: str) -> bytes:
    return table_text([[text if (i, j) == (a, b) else old for b, old in enumerate(row)] for a, row in enumerate(rows)])


def _without_column(rows: list[list[str]], j: int) -> bytes:
    return table_text([row[:j] + row[j + 1 :] for row in rows])


def _with_column(rows: list[list[str]], j: int) -> bytes:
    return table_text([[*row, row[j]] for row in rows])


def _with_row(rows: list[list[str]], i: int) -> bytes:
    return table_text([*rows, rows[i]])


def _wider(rows: list[list[str]], count: int) -> bytes:
    return table_text([[*rows[0], *(f"more{i}" for i in range(count))], *([*row, *["1"] * count] for row in rows[1:4])])


def _ragged(rows: list[list[str]], i: int, by: int) -> bytes:
    return table_text([row if a != i else [*row, "1"] if by > 0 else row[:-1] for a, row in enumerate(rows)])
