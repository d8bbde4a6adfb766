"""Edges in any order become rows of sorted neighbours, on the disk.

Every edge is written in both directions to one of many files, by its row. Each file is then sorted in memory, or cut
into smaller ranges first. Self-loops go, and weights of repeated edges are averaged.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lanczosnet.graphs.conversion.arrays import ArrayWriter
from lanczosnet.graphs.conversion.ids import NodeIds
from lanczosnet.graphs.conversion.journal import Journal
from lanczosnet.graphs.conversion.tables import Block, TableReader
from lanczosnet.graphs.errors import DataError

NUM_FILES, FEWEST_ROWS = 256, 2**12  # of a file, so that small graphs have few files
IN_MEMORY = 2**23  # entries that are sorted at once
PIECES = 16  # of a file with more

Advance = Callable[[float], None]


class EdgeColumns(NamedTuple):
    """Where a table has its edges."""

    table: TableReader
    source: str
    target: str
    weight: str | None
    ids: NodeIds | None = None  # where nodes are not numbered by their rows

    @property
    def kinds(self) -> dict[str, str]:
        kinds = {self.source: "integer", self.target: "integer"}
        return kinds if self.weight is None else kinds | {self.weight: "number"}

    def arrays(self, block: Block, num_nodes: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Source, target and weight, checked."""
        ends = [self._whole(block, name, num_nodes) for name in (self.source, self.target)]
        if self.weight is None:
            return ends[0], ends[1], None
        weight = block.columns[self.weight].to_numpy(zero_copy_only=False).astype(np.float32)
        self._refuse(block, ~np.isfinite(weight), self.weight, "which is not finite")
        return ends[0], ends[1], weight

    def _whole(self, block: Block, name: str, num_nodes: int | None) -> np.ndarray:
        column = block.columns[name]
        if column.null_count:
            self._refuse(block, np.asarray(column.is_null()), name, "where a node must be named")
        numbers: np.ndarray = column.to_numpy(zero_copy_only=False)
        if self.ids is not None:
            rows = self.ids.rows(numbers)
            self._refuse(block, rows < 0, name, "but no node has this id")
            return rows
        wrong = numbers < 0 if num_nodes is None else (numbers < 0) | (numbers >= num_nodes)
        reason = "but nodes are numbered from 0" + ("" if num_nodes is None else f" to {num_nodes - 1:,}")
        self._refuse(block, wrong, name, reason)
        return numbers

    def _refuse(self, block: Block, wrong: np.ndarray, name: str, reason: str) -> None:
        if not wrong.any():
            return
        place = int(wrong.argmax())
        row, value = self.table.row_in_file(block.first_row + place), block.columns[name][place].as_py()
        shown = "empty" if value is None else value
        raise DataError(f"{name} is {shown}, {reason}", file=self.table.path, row=row, remedy="Correct the edge")


def count_nodes(edges: EdgeColumns, advance: Advance) -> int:
    """One more than the largest number, which takes a separate pass."""
    largest = -1
    columns = {edges.source: "integer", edges.target: "integer"}
    for block in edges.table.blocks(columns, None):
        source, target, _ = edges._replace(weight=None).arrays(block, None)
        largest = max(largest, int(source.max(initial=-1)), int(target.max(initial=-1)))
        advance(block.share)
    return largest + 1


class RowFiles:
    """The entries of the matrix in files by ranges of rows: keys row * nodes + column, and weights beside them."""

    def __init__(self, folder: Path, num_nodes: int, weighted: bool) -> None:
        self.folder, self.num_nodes, self.weighted = folder, num_nodes, weighted
        self.rows_per_file = max(FEWEST_ROWS, -(-num_nodes // NUM_FILES))

    def path(self, number: int) -> Path:
        return self.folder / f"rows-{number:03}.key"

    @property
    def count(self) -> int:
        return -(-self.num_nodes // self.rows_per_file)

    def scatter(self, edges: EdgeColumns, journal: Journal, advance: Advance) -> None:
        """Write all edges, from where an earlier run stopped."""
        noted = journal.get("scattered")
        if noted == "done":
            return
        if noted is None or not self._has(noted["entries"]):
            noted = {"position": None, "entries": [0] * self.count}
        entries: list[int] = noted["entries"]
        for number, kept in enumerate(entries):
            _truncate(self.path(number), kept, self.weighted)
        for block in edges.table.blocks(edges.kinds, noted["position"]):
            self._append(*edges.arrays(block, self.num_nodes), entries)
            advance(block.share)
            if journal.is_due:
                journal.note("scattered", {"position": block.position, "entries": entries})
        journal.note("scattered", "done")

    def _has(self, entries: list[int]) -> bool:
        """Whether the files are as long as was noted; after a power cut they may not be."""
        sizes = [self.path(number).stat().st_size if self.path(number).exists() else 0 for number in range(self.count)]
        return all(8 * count <= size for count, size in zip(entries, sizes, strict=True))

    def _append(self, source: np.ndarray, target: np.ndarray, weight: np.ndarray | None, entries: list[int]) -> None:
        is_edge = source != target
        # Both directions side by side, so that both average the weights of repeated edges in the same order.
        row = np.stack([source[is_edge], target[is_edge]], 1)
        key = (row * self.num_nodes + row[:, ::-1]).ravel()
        number = (row.ravel() // self.rows_per_file).astype(np.uint16)
        order = np.argsort(number, kind="stable")
        key, both = key[order], None if weight is None else np.repeat(weight[is_edge], 2)[order]
        count = np.bincount(number, minlength=self.count)
        end = count.cumsum()
        for place in count.nonzero()[0].tolist():
            part = slice(end[place] - count[place], end[place])
            _extend(self.path(place), key[part], None if both is None else both[part])
            entries[place] += int(count[place])

    def entries(self, number: int) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """The keys of a file, rising, each once, with their weights; in one piece where it is not too large."""
        first = number * self.rows_per_file * self.num_nodes
        yield from _sorted(self.path(number), first, first + self.rows_per_file * self.num_nodes, self.weighted)


def write_rows(files: RowFiles, out: Path, journal: Journal, advance: Advance) -> None:
    """`row_pointer`, `column` and `edge_weight`, file by file, from where an earlier run stopped."""
    done, entries, rows = journal.get("sorted") or (0, 0, 0)
    column_type: Any = np.int32 if files.num_nodes < 2**31 else np.int64
    with (
        ArrayWriter(out / "row_pointer.npy", np.int64, rows=rows) as pointer,
        ArrayWriter(out / "column.npy", column_type, rows=entries) as column,
        ArrayWriter(out / "edge_weight.npy", np.float32, rows=entries if files.weighted else 0) as weight,
    ):
        if rows == 0:
            pointer.append(np.zeros(1, np.int64))
        for number in range(done, files.count):
            _write_file(files, number, pointer, column, weight)
            advance((number + 1) / files.count)
            if journal.is_due or number + 1 == files.count:
                weight.flush()
                journal.note("sorted", (number + 1, column.flush(), pointer.flush()))
                # Only now is what was made of these files on the disk.
                for written in range(done, number + 1):
                    _remove(files.path(written))
    if not files.weighted:
        (out / "edge_weight.npy").unlink()


def _write_file(files: RowFiles, number: int, pointer: ArrayWriter, column: ArrayWriter, weight: ArrayWriter) -> None:
    first_row, begin = number * files.rows_per_file, column.rows
    num_rows = min(files.rows_per_file, files.num_nodes - first_row)
    count = np.zeros(num_rows, np.int64)
    for keys, weights in files.entries(number):
        row, neighbour = np.divmod(keys, files.num_nodes)
        count += np.bincount(row - first_row, minlength=num_rows)
        column.append(neighbour)
        if weights is not None:
            weight.append(weights)
    pointer.append(begin + count.cumsum())


def _sorted(path: Path, first: int, end: int, weighted: bool) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    size = path.stat().st_size // 8 if path.exists() else 0
    if size <= IN_MEMORY or end - first == 1:
        if size:
            yield _merged(path, weighted)
        return
    width = -(-(end - first) // PIECES)
    pieces = [path.with_name(f"{path.stem}-{piece:02}.key") for piece in range(PIECES)]
    for piece in pieces:
        _remove(piece)  # of a run that was killed
    for keys, weights in _read(path, weighted):
        number = (keys - first) // width
        for place in np.unique(number):
            is_here = number == place
            _extend(pieces[place], keys[is_here], None if weights is None else weights[is_here])
    for place, piece in enumerate(pieces):
        begin = first + place * width
        yield from _sorted(piece, begin, min(begin + width, end), weighted)
        _remove(piece)


def _merged(path: Path, weighted: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Every key once."""
    found = list(_read(path, weighted))  # several blocks only where all keys are one
    if len(found) > 1:
        total = sum(float(weights.sum(dtype=np.float64)) for _, weights in found if weights is not None)
        mean = total / sum(len(keys) for keys, _ in found)
        return found[0][0][:1], np.array([mean], np.float32) if weighted else None
    keys, weights = found[0]
    if weights is None:
        keys.sort()
        return keys[_is_new(keys)], None
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[order].astype(np.float64)
    is_new = _is_new(keys)
    begin = is_new.nonzero()[0]
    sums = np.add.reduceat(weights, begin)
    return keys[is_new], (sums / np.diff(begin, append=len(keys))).astype(np.float32)


def _is_new(keys: np.ndarray) -> np.ndarray:
    is_new = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
    return is_new


def _read(path: Path, weighted: bool) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    with path.open("rb") as keys, (_weights(path) if weighted else path).open("rb") as weights:
        while len(found := np.fromfile(keys, np.int64, IN_MEMORY)):
            yield found, np.fromfile(weights, np.float32, IN_MEMORY) if weighted else None


def _extend(path: Path, keys: np.ndarray, weights: np.ndarray | None) -> None:
    with path.open("ab") as stream:
        stream.write(np.ascontiguousarray(keys).data)
    if weights is not None:
        with _weights(path).open("ab") as stream:
            stream.write(np.ascontiguousarray(weights).data)


def _truncate(path: Path, entries: int, weighted: bool) -> None:
    for file, size in ((path, 8), (_weights(path), 4))[: 1 + weighted]:
        with file.open("ab") as stream:
            stream.truncate(entries * size)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    _weights(path).unlink(missing_ok=True)


def _weights(path: Path) -> Path:
    return path.with_suffix(".weight")
