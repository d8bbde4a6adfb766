"""Tables of any size, read block by block: CSV, also compressed, Parquet files and folders of them, and NumPy arrays.

A block says how far it reaches, so that reading goes on from there after a kill. Rows are counted from 0 here, and in
messages as a spreadsheet counts them.
"""

import csv
import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np

from lanczosnet._extras import require
from lanczosnet.graphs.conversion.arrays import ArrayFile
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.columns import check_separator
from lanczosnet.graphs.formats.parquet_files import parquet_errors

if TYPE_CHECKING:
    import pyarrow as pa

BYTES, ROWS = 2**24, 2**20  # of a block
KINDS = {"integer": "int64", "number": "float64", "text": "string"}


class Block(NamedTuple):
    """Some rows of some columns."""

    columns: dict[str, "pa.Array"]
    first_row: int
    position: list[int]  # where the next block begins
    share: float  # of the table, up to its end


class TableReader(Protocol):
    path: Path
    names: list[str]

    def blocks(self, kinds: Mapping[str, str], position: list[int] | None) -> Iterator[Block]:
        """The columns that `kinds` names, as "integer", "number" or "text", from a position on."""

    def num_rows(self) -> int: ...

    def row_in_file(self, row: int) -> int:
        """As a spreadsheet counts."""


def open_table(path: Path, *, header: bool = True) -> TableReader:
    require("pyarrow", to="to read large tables")
    if not path.exists():
        raise DataError("there is no such file", file=path, remedy="Check the path")
    if path.is_dir() or path.suffix == ".parquet":
        return ParquetTable(path)
    if path.suffix == ".csv" or path.suffixes[-2:] == [".csv", ".gz"]:
        return CsvTable(path, header)
    if path.suffix == ".npy":
        return ArrayTable(path)
    raise DataError("a table ends in .csv, .csv.gz, .parquet or .npy", file=path, remedy="Convert it to one of these")


class CsvTable:
    """Lines of cells between commas. A line break inside quotes is not understood."""

    def __init__(self, path: Path, header: bool) -> None:
        self.path, self.has_header = path, header
        with self._open() as stream:
            first = self._decoded(stream.readline()).lstrip("\ufeff")
        cells = next(csv.reader([first]), [])
        check_separator(path, cells)
        if not cells:
            raise DataError("the file is empty", file=path)
        self.names = cells if header else [f"column{i}" for i in range(len(cells))]

    def row_in_file(self, row: int) -> int:
        return row + 1 + self.has_header

    def num_rows(self) -> int:
        return sum(text.count(b"\n") for text, _ in self._texts(0))

    def blocks(self, kinds: Mapping[str, str], position: list[int] | None) -> Iterator[Block]:
        row, begin = position or [0, 0]
        size = max(self.path.stat().st_size, 1) * (5 if self.path.suffix == ".gz" else 1)  # digits shrink to a fifth
        for text, end in self._texts(begin):
            table = self._parsed(text, row, kinds)
            rows = text.count(b"\n")
            if table.num_rows != rows:
                raise self._malformed(text, row, kinds, "a line is blank")
            columns = {name: table.column(name).combine_chunks() for name in kinds}
            yield Block(columns, row, [row + rows, end], min(end / size, 1.0))
            row += rows

    def _texts(self, begin: int) -> Iterator[tuple[bytes, int]]:
        """Whole lines from a byte on, and where the next begin; every line ends in a line break."""
        with self._open() as stream:
            if begin == 0 and self.has_header:
                begin = len(stream.readline())
            stream.seek(begin)
            rest = b""
            while content := stream.read(BYTES):
                whole, found, rest = (rest + content).rpartition(b"\n")
                if found:
                    begin += len(whole) + 1
                    yield whole + b"\n", begin
            if rest.strip():
                yield rest + b"\n", begin + len(rest)

    def _parsed(self, text: bytes, row: int, kinds: Mapping[str, str]) -> "pa.Table":
        import pyarrow as pa
        from pyarrow import csv as reader

        types = {name: getattr(pa, KINDS[kind])() for name, kind in kinds.items()}
        try:
            return reader.read_csv(
                pa.BufferReader(text),
                read_options=reader.ReadOptions(column_names=self.names, block_size=len(text) + 1),
                parse_options=reader.ParseOptions(ignore_empty_lines=True),
                convert_options=reader.ConvertOptions(
                    column_types=types, include_columns=list(kinds), strings_can_be_null=True
                ),
            )
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise self._malformed(text, row, kinds, str(error)) from error

    def _malformed(self, text: bytes, row: int, kinds: Mapping[str, str], reason: str) -> DataError:
        """The error for the first line that cannot be read."""
        for place, line in enumerate(text.splitlines()):
            problem = self._problem(next(csv.reader([self._decoded(line)]), []), kinds)
            if problem:
                return DataError(problem, file=self.path, row=self.row_in_file(row + place), remedy="Correct the line")
        return DataError(f"the lines cannot be read ({reason})", file=self.path, row=self.row_in_file(row))

    def _problem(self, cells: list[str], kinds: Mapping[str, str]) -> str:
        if len(cells) != len(self.names):
            return f"{len(cells)} cells under {len(self.names)} columns" if cells else "the line is blank"
        for name, cell in zip(self.names, cells, strict=True):
            if name in kinds and not _is_of_kind(cell, kinds[name]):
                return f"{name} is {cell!r}, which is not {'an integer' if kinds[name] == 'integer' else 'a number'}"
        return ""

    def _open(self) -> IO[bytes]:
        return cast("IO[bytes]", gzip.open(self.path)) if self.path.suffix == ".gz" else self.path.open("rb")

    def _decoded(self, line: bytes) -> str:
        return line.decode("utf-8", errors="replace")


class ParquetTable:
    """A Parquet file, or all of a folder in the order of their names."""

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        self.path = path
        self.files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not self.files:
            raise DataError("there is no Parquet file in this folder", file=path)
        self.sizes, names = [], []
        for file in self.files:
            with parquet_errors(file):
                found = parquet.ParquetFile(file)
                self.sizes.append(found.metadata.num_rows)
                names.append(list(found.schema_arrow.names))
            if names[-1] != names[0]:
                raise DataError(f"the columns are {names[-1]}, and of {self.files[0]} {names[0]}", file=file)
        self.names = names[0]

    def num_rows(self) -> int:
        return sum(self.sizes)

    def row_in_file(self, row: int) -> int:
        return row + 2  # as if it were a spreadsheet with a header

    def blocks(self, kinds: Mapping[str, str], position: list[int] | None) -> Iterator[Block]:
        import pyarrow as pa

        row, total = 0, max(self.num_rows(), 1)
        begin = position[0] if position else 0
        for file, size in zip(self.files, self.sizes, strict=True):
            if row + size <= begin:
                row += size
                continue
            for batch in self._batches(file, list(kinds), row, begin):
                end = row + batch.num_rows
                if end > begin:
                    batch = batch.slice(max(begin - row, 0))
                    first = end - batch.num_rows
                    columns = {name: self._converted(batch, name, kind, first, pa) for name, kind in kinds.items()}
                    yield Block(columns, first, [end], end / total)
                row = end

    def _batches(self, file: Path, names: list[str], row: int, begin: int) -> Iterator["pa.RecordBatch"]:
        """With empty ones in place of the row groups before `begin`, which are not read."""
        import pyarrow as pa
        from pyarrow import parquet

        with parquet_errors(file), parquet.ParquetFile(file, memory_map=False, pre_buffer=False) as found:
            for group in range(found.num_row_groups):
                size = found.metadata.row_group(group).num_rows
                if row + size <= begin:
                    yield pa.record_batch({"skipped": pa.nulls(size)})
                else:
                    for batch in found.iter_batches(ROWS, [group], columns=names, use_threads=False):
                        batch.validate(full=True)
                        yield batch
                row += size

    def _converted(self, batch: "pa.RecordBatch", name: str, kind: str, first: int, pa: Any) -> "pa.Array":
        column = batch.column(name)
        wanted = getattr(pa, KINDS[kind])()
        try:
            return column.cast(wanted)
        except pa.ArrowException as error:
            raise DataError(
                f"{name} is no column of {kind}s ({error})", file=self.path, row=self.row_in_file(first)
            ) from error


class ArrayTable:
    """A NumPy array `[row, column]`, or `[2, edge]`, whose columns are called source and target."""

    def __init__(self, path: Path) -> None:
        self.path, self.array = path, ArrayFile(path)
        shape = self.array.shape
        self.is_wide = len(shape) == 2 and shape[0] == 2
        if len(shape) != 2 or not (self.is_wide or shape[1] in (2, 3)):
            raise DataError(
                f"the array has the shape {list(shape)}", file=path, remedy="Edges are [2, edge] or [edge, 2]"
            )
        self.names = ["source", "target", "weight"][: 2 if self.is_wide else shape[1]]

    def num_rows(self) -> int:
        return int(self.array.shape[1 if self.is_wide else 0])

    def row_in_file(self, row: int) -> int:
        return row

    def blocks(self, kinds: Mapping[str, str], position: list[int] | None) -> Iterator[Block]:
        import pyarrow as pa

        total = self.num_rows()
        for begin in range(position[0] if position else 0, total, ROWS):
            rows, end = slice(begin, begin + ROWS), min(begin + ROWS, total)
            part = self.array.part(slice(None), rows).T if self.is_wide else self.array.part(rows)
            places = {name: part[:, self.names.index(name)] for name in kinds}
            columns = {name: pa.array(self._typed(part, kinds[name])) for name, part in places.items()}
            yield Block(columns, begin, [end], end / total)

    def _typed(self, part: np.ndarray, kind: str) -> np.ndarray:
        found = part.astype(KINDS[kind])
        if kind == "integer" and not np.array_equal(found, part):
            raise DataError(f"the array holds {part.dtype.name}, not whole numbers", file=self.path)
        return found


def _is_of_kind(cell: str, kind: str) -> bool:
    if kind == "text" or (not cell and kind == "number"):
        return True
    try:
        int(cell) if kind == "integer" else float(cell)
    except ValueError:
        return False
    return True
