"""Splits that the user brings: a column with the part of every item, or a file."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lanczosnet.files.json_text import parsed_json
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.columns import WORDS, csv_rows
from lanczosnet.graphs.packed import PackedGraphs
from lanczosnet.graphs.splits.record import PARTS, Split


def split_from_column(data: Any, parts: Sequence[str | None], *, name: str = "column") -> Split:
    """A split from the part of every item: "train", "val" or "test". An empty cell leaves the item out."""
    size = _size(data)
    if len(parts) != size:
        raise DataError(f"the split column has {len(parts)} cells, but {_name(data)} has {size} items")
    pairs = ((item, str(part)) for item, part in enumerate(parts) if not _is_empty(part))
    return _split(data, name, _by_part(pairs))


def split_from_file(data: Any, path: str | Path) -> Split:
    """A split from a file: JSON with the lists `train`, `val` and `test` of item numbers, or CSV with `item,part`.

    Items are numbered from 0. A CSV may have a header. What `Split.save` writes is read, too.
    """
    path = Path(path)
    readers: dict[str, Callable[[Path], dict[str, list[int]]]] = {".json": _read_json, ".csv": _read_csv}
    if path.suffix not in readers:
        raise DataError("a split file ends in .json or .csv", file=path)
    if not path.is_file():
        raise DataError("there is no such file", file=path, remedy="Check the path")
    return _split(data, f"file/{_digest(path)}", readers[path.suffix](path), path)


def _read_json(path: Path) -> dict[str, list[int]]:
    try:
        content = parsed_json(path.read_text(encoding="utf-8"))
        keys = [key for key in content if key in WORDS]
        lists = {WORDS[key]: content[key] for key in keys}
    except (ValueError, TypeError) as error:
        raise DataError(f"not a JSON file with lists of item numbers ({error})", file=path) from error
    if sorted(WORDS[key] for key in keys) != sorted(PARTS):
        raise DataError(f"the file must have the lists train, val and test once, but has {keys}", file=path)
    for part, items in lists.items():
        if not isinstance(items, list) or not all(type(item) is int for item in items):
            raise DataError(f"{part} is not a list of item numbers", file=path)
    return lists


def _read_csv(path: Path) -> dict[str, list[int]]:
    rows = list(csv_rows(path))
    if rows and not _is_number(rows[0][1][0]):
        rows = rows[1:]  # the header
    for row, record in rows:
        if len(record) != 2 or not _is_number(record[0]):
            raise DataError("a line must have an item number and its part, such as `7,train`", file=path, row=row)
    return _by_part(((int(record[0]), record[1]) for _, record in rows), path)


def _is_number(cell: str) -> bool:
    return cell.strip().removeprefix("-").isdecimal()


def _by_part(pairs: Iterable[tuple[int, str]], path: str | Path = "") -> dict[str, list[int]]:
    found: dict[str, list[int]] = {part: [] for part in PARTS}
    for item, word in pairs:
        part = WORDS.get(word.strip().lower())
        if part is None:
            raise DataError(f"item {item} is of the part {word!r}", file=path, remedy="Use train, val or test")
        found[part].append(item)
    return found


def _split(data: Any, kind: str, lists: dict[str, list[int]], path: str | Path = "") -> Split:
    tensors = {part: _items(lists[part], part, _size(data), path) for part in PARTS}
    together = torch.cat(list(tensors.values()))
    values, counts = together.unique(return_counts=True)
    if len(values) < len(together):
        raise DataError(f"item {int(values[counts > 1][0])} appears twice in the split", file=path)
    train, val, test = tensors.values()
    return Split(_name(data), kind, None, None, train, val, test)


def _items(items: list[int], part: str, size: int, path: str | Path) -> Tensor:
    if not items:
        raise DataError(f"the part {part} has no items", file=path)
    for item in (min(items), max(items)):
        if not 0 <= item < size:
            raise DataError(f"{part} names item {item}, but the items are 0 to {size - 1}", file=path)
    return torch.tensor(items, dtype=torch.long).sort().values


def _is_empty(part: str | None) -> bool:
    return part is None or part != part or not str(part).strip()  # a NaN differs from itself


def _size(data: Any) -> int:
    return len(data) if isinstance(data, PackedGraphs) else data.num_nodes


def _name(data: Any) -> str:
    return getattr(data, "name", None) or "graph"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
