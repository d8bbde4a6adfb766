"""Features, labels and masks of the nodes, row by row."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lanczosnet.graphs.conversion.arrays import ArrayFile, ArrayWriter
from lanczosnet.graphs.conversion.journal import Journal
from lanczosnet.graphs.conversion.tables import Block, TableReader
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.columns import LARGEST, WORDS

MOST_CLASSES = 2**16
FLOATS = 2**22  # numbers of a block of features
PARTS = ("train", "val", "test")

Advance = Callable[[float], None]


@dataclass
class NodeTable:
    """A table with a row for each node; they are numbered by their rows, unless a column has ids."""

    table: TableReader
    features: Sequence[str]
    label: str | None
    split: str | None
    task: str
    id: str | None = None
    classes: list[str] = field(default_factory=list)

    def arrays(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Types and shapes of rows of what is written."""
        found: dict[str, tuple[Any, tuple[int, ...]]] = {}
        if self.features:
            found["features"] = (np.float32, (len(self.features),))
        if self.label is not None:
            found["labels"] = (np.int64 if self.task == "classification" else np.float32, ())
            found["labelled"] = (bool, ())
        if self.split is not None:
            found |= {f"{part}_mask": (bool, ()) for part in PARTS}
        return found

    def find_classes(self, advance: Advance) -> None:
        """The values of the label, in order: whole numbers, other numbers, or texts."""
        if self.label is None or self.task != "classification":
            return
        values: set[str] = set()
        for block in self.table.blocks({self.label: "text"}, None):
            values |= set(block.columns[self.label].unique().to_pylist()) - {None, "", "nan", "NaN"}
            advance(block.share)
            if len(values) > MOST_CLASSES:
                raise DataError(
                    f"{self.label} has more than {MOST_CLASSES:,} values",
                    file=self.table.path,
                    remedy="If it is a number, pass task=regression",
                )
        if not values:
            raise DataError(f"no row has a label in {self.label!r}", file=self.table.path)
        self.classes = _in_order(values)

    def write(self, out: Path, journal: Journal, advance: Advance) -> None:
        step = f"nodes of {self.table.path}"
        noted = journal.get(step) or {"position": None, "rows": 0}
        if noted == "done":
            return
        kinds = dict.fromkeys(self.features, "number")
        if self.label is not None:
            kinds[self.label] = "text" if self.task == "classification" else "number"
        if self.split is not None:
            kinds[self.split] = "text"
        with ExitStack() as stack:
            writers = {
                name: stack.enter_context(ArrayWriter(out / f"{name}.npy", dtype, shape, noted["rows"]))
                for name, (dtype, shape) in self.arrays().items()
            }
            for block in self.table.blocks(kinds, noted["position"]):
                for name, rows in self._rows(block):
                    writers[name].append(rows)
                advance(block.share)
                if journal.is_due:
                    rows_done = {writer.flush() for writer in writers.values()}
                    journal.note(step, {"position": block.position, "rows": rows_done.pop()})
        journal.note(step, "done")

    def _rows(self, block: Block) -> Iterator[tuple[str, np.ndarray]]:
        if self.features:
            columns = [self._numbers(block, name, missing=False) for name in self.features]
            yield "features", np.stack(columns, 1)
        if self.label is not None:
            labels = self._labels(block, self.label)
            yield "labels", labels
            yield "labelled", labels >= 0 if self.task == "classification" else ~np.isnan(labels)
        if self.split is not None:
            parts = self._parts(block, self.split)
            yield from ((f"{part}_mask", parts == place) for place, part in enumerate(PARTS))

    def _numbers(self, block: Block, name: str, *, missing: bool) -> np.ndarray:
        numbers: np.ndarray = block.columns[name].to_numpy(zero_copy_only=False).astype(np.float64)
        wrong = ~(np.abs(numbers) <= LARGEST)
        if missing:
            wrong &= ~np.isnan(numbers)
        if wrong.any():
            place = int(wrong.argmax())
            row = self.table.row_in_file(block.first_row + place)
            raise DataError(
                f"{name} is {block.columns[name][place].as_py()}, which is not a finite number of float32",
                file=self.table.path,
                row=row,
                remedy="Correct it, or name the columns to use",
            )
        return numbers.astype(np.float32)

    def _labels(self, block: Block, name: str) -> np.ndarray:
        if self.task != "classification":
            return self._numbers(block, name, missing=True)
        return _codes(block.columns[name], self.classes)

    def _parts(self, block: Block, name: str) -> np.ndarray:
        """The place of every node's part among `PARTS`, or -1."""
        import pyarrow.compute as compute

        words = compute.utf8_lower(compute.utf8_trim_whitespace(block.columns[name].fill_null("")))
        code = _codes(words, ["", *WORDS])
        if (code < 0).any():
            place = int((code < 0).argmax())
            row = self.table.row_in_file(block.first_row + place)
            found = f"{name} is {words[place].as_py()!r}"
            raise DataError(found, file=self.table.path, row=row, remedy="Use train, val, test, or nothing")
        return np.array([-1, *(PARTS.index(part) for part in WORDS.values())])[code]


def _codes(words: Any, known: Sequence[str]) -> np.ndarray:
    """The place of each word among those that are known, or -1."""
    import pyarrow as pa
    import pyarrow.compute as compute

    found = compute.index_in(words, value_set=pa.array(known, pa.string()), skip_nulls=True)
    return np.asarray(found.fill_null(-1)).astype(np.int64)


def write_array(name: str, path: Path, num_nodes: int, task: str, out: Path, journal: Journal, advance: Advance) -> int:
    """Features, labels or a mask from a NumPy array, and how many classes the labels have at least."""
    noted = journal.get(name) or {"rows": 0, "classes": 0}
    if noted.get("done"):
        return int(noted["classes"])
    array, rows, classes = ArrayFile(path), int(noted["rows"]), int(noted["classes"])
    if array.shape[:1] != (num_nodes,) or (name == "features") != (len(array.shape) == 2):
        wanted = [num_nodes, "feature"] if name == "features" else [num_nodes]
        raise DataError(f"{name} has the shape {list(array.shape)}, not {wanted}", file=path)
    width = int(np.prod(array.shape[1:], dtype=np.int64))
    with ArrayWriter(out / f"{name}.npy", _type_of(name, array, task), array.shape[1:], rows) as writer:
        for begin, block in array.blocks(rows, max(1, FLOATS // max(width, 1))):
            content = _checked(name, block, begin, path, task)
            writer.append(content)
            if name == "labels" and task == "classification":
                classes = max(classes, int(content.max(initial=-1)) + 1)
            advance(writer.rows / max(num_nodes, 1))
            if journal.is_due:
                journal.note(name, {"rows": writer.flush(), "classes": classes})
    journal.note(name, {"done": True, "classes": classes})
    return classes


def write_mask(part: str, numbers: np.ndarray, num_nodes: int, out: Path, path: Path) -> None:
    """A mask from the numbers of the nodes in it: one byte a node in memory."""
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < num_nodes:
        raise DataError(f"a node is not one of 0 to {num_nodes - 1:,}", file=path)
    mask = np.zeros(num_nodes, bool)
    mask[numbers] = True
    with ArrayWriter(out / f"{part}_mask.npy", bool) as writer:
        writer.append(mask)


def write_labelled(out: Path, task: str) -> None:
    """Which nodes have a label, where some have none."""
    labels, all_known = ArrayFile(out / "labels.npy"), True
    with ArrayWriter(out / "labelled.npy", bool) as writer:
        for _, block in labels.blocks(0, FLOATS):
            known = block >= 0 if task == "classification" else ~np.isnan(block)
            writer.append(known)
            all_known &= bool(known.all())
    if all_known:
        (out / "labelled.npy").unlink()


def _type_of(name: str, array: ArrayFile, task: str) -> Any:
    if name == "features":
        return np.float32
    if name == "labels":
        return np.int64 if task == "classification" else np.float32
    return bool


def _checked(name: str, block: np.ndarray, first: int, path: Path, task: str) -> np.ndarray:
    if name == "features" or (name == "labels" and task == "regression"):
        wrong = ~(np.abs(block.astype(np.float64)) <= LARGEST)
        wrong &= ~np.isnan(block) if name == "labels" else True
        if wrong.any():
            place = int(wrong.reshape(len(block), -1).any(1).argmax())
            raise DataError(f"{name} of node {first + place:,} are not finite numbers of float32", file=path)
        return block
    if name == "labels":
        known = np.where(np.isnan(block), -1, block) if block.dtype.kind == "f" else block
        found = known.astype(np.int64)
        if not np.array_equal(found, known):
            raise DataError("the labels are not whole numbers", file=path, remedy="Pass task=regression")
        return found
    if block.dtype != bool:
        raise DataError(f"a mask is of booleans, or of numbers of nodes, not of {block.dtype}", file=path)
    return block


def _in_order(values: set[str]) -> list[str]:
    for number in (int, float):
        try:
            return sorted(values, key=number)
        except ValueError:
            continue
    return sorted(values)
