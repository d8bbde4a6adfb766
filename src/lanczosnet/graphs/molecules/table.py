"""Tables of molecules as people have them: CSV with any separator, lists of SMILES, SDF and Parquet, gzipped or not."""

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from lanczosnet._extras import MissingExtraError
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.columns import no_such_column, stream_rows
from lanczosnet.graphs.formats.parquet_files import read_parquet
from lanczosnet.schemas.limits import LimitError, check_limit, limit
from lanczosnet.schemas.record import shown

SEPARATORS = (",", ";", "\t", "|")
HEAD = 1_000_000  # bytes of a file that are looked at
SMILES, NAME = "smiles", "name"  # the columns of files that have no header


@dataclass(frozen=True)
class MoleculeTable:
    """The cells of a table, as text."""

    path: Path
    header: list[str]
    rows: list[int]  # where each record stands in the file
    records: list[list[str]]
    decimal_comma: bool = False  # as spreadsheets write numbers where semicolons separate cells

    def column(self, name: str, option: str) -> list[str]:
        if name not in self._positions:
            raise no_such_column(self.path, name, self.header, option)
        first, *others = self._positions[name]
        for other in others:
            self._check_equal(name, first, other)
        return [record[first] for record in self.records]

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        """Where the columns of each name stand."""
        positions: dict[str, list[int]] = {}
        for position, name in enumerate(self.header):
            positions.setdefault(name, []).append(position)
        return positions

    def number(self, cell: str) -> float:
        """A ValueError where it is none."""
        return float(cell.replace(",", ".") if self.decimal_comma else cell)

    def _check_equal(self, name: str, first: int, other: int) -> None:
        """Columns of one name must hold the same, as the four that MoleculeNet's QM8 repeats do."""
        for row, record in zip(self.rows, self.records, strict=True):
            if record[first] != record[other]:
                raise DataError(
                    f"two columns are named {shown(name)} and differ: {record[first]!r:.60} and {record[other]!r:.60}",
                    file=self.path,
                    row=row,
                    remedy="Rename one of them",
                )


def format_of(path: Path) -> str:
    """The suffix that says what is inside, without `.gz`."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def read_table(path: Path) -> MoleculeTable:
    """The table in a file, by its suffix."""
    if format_of(path) not in READERS:
        raise DataError(f"a table of molecules ends in {', '.join(READERS)}", file=path, remedy="Convert it")
    if not path.is_file():
        raise DataError("there is no such file", file=path, remedy="Check the path")
    table = READERS[format_of(path)](path)
    if not table.records:
        raise DataError("the file has no rows", file=path, remedy="It needs a header and one row per molecule")
    return table


def read_head(path: Path, num_rows: int) -> MoleculeTable | None:
    """The first rows of a table; None where the file is none."""
    try:
        if format_of(path) == ".parquet":
            table = _parquet(path)
            return replace(table, rows=table.rows[:num_rows], records=table.records[:num_rows])
        return _first_rows(path, num_rows) if READERS.get(format_of(path)) is _delimited else None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error, DataError, MissingExtraError):
        return None


def _first_rows(path: Path, num_rows: int) -> MoleculeTable:
    with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as stream:
        text = _decoded(stream.read(HEAD), errors="ignore")
    separator = _separator(text.partition("\n")[0])
    found = list(islice(stream_rows(io.StringIO(text, newline=""), separator, name=str(path)), num_rows + 1))
    header = found[0][1] if found else []
    whole = [(row, record) for row, record in found[1:] if len(record) == len(header)]
    return MoleculeTable(path, header, *_columns(whole), decimal_comma=separator != ",")


def _delimited(path: Path) -> MoleculeTable:
    text = _text(path)
    separator = _separator(text.partition("\n")[0])
    try:
        (_, header), *found = list(stream_rows(io.StringIO(text, newline=""), separator, name=str(path))) or [(1, [])]
    except csv.Error as error:
        raise DataError(f"not a CSV text file ({error})", file=path, remedy="Save it as CSV in UTF-8") from error
    check_limit("COLUMNS", len(header), f"{path}: columns")
    for row, record in found:
        if len(record) != len(header):
            raise DataError(
                f"{len(record)} cells under {len(header)} columns",
                file=path,
                row=row,
                remedy="The file may be truncated, or a cell with a comma may lack its quotes",
            )
    return MoleculeTable(path, header, *_columns(found), decimal_comma=separator != ",")


def _separator(header: str) -> str:
    """What separates most names."""
    return max(SEPARATORS, key=header.count)


def _smiles_lines(path: Path) -> MoleculeTable:
    """A SMILES per line, and if wanted a name or other columns; a header only if its first word is `smiles`."""
    lines = [(row, line.split()) for row, line in enumerate(_text(path).splitlines(), start=1) if line.strip()]
    has_header = bool(lines) and lines[0][1][0].lower() == SMILES
    header = lines.pop(0)[1] if has_header else [SMILES, NAME]
    width = len(header)
    records = [[*cells[: width - 1], " ".join(cells[width - 1 :])] if width > 1 else cells[:1] for _, cells in lines]
    padded = [record + [""] * (width - len(record)) for record in records]
    return MoleculeTable(path, header, [row for row, _ in lines], padded)


def _sdf(path: Path) -> MoleculeTable:
    """A row per molecule: its SMILES, which is empty where it cannot be read, and its properties."""
    from lanczosnet.graphs.molecules.smiles import rdkit

    chem = rdkit()
    supplier = chem.ForwardSDMolSupplier(io.BytesIO(_bytes(path)))
    found = [_of_sdf(chem, molecule) for molecule in supplier]
    header = list(dict.fromkeys([SMILES, *(key for cells in found for key in cells)]))
    return MoleculeTable(
        path, header, list(range(1, len(found) + 1)), [[cells.get(key, "") for key in header] for cells in found]
    )


def _of_sdf(chem: Any, molecule: Any) -> dict[str, str]:
    if molecule is None:
        return {SMILES: ""}
    properties = {str(key): str(value) for key, value in molecule.GetPropsAsDict().items()}
    title = {NAME: molecule.GetProp("_Name")} if molecule.HasProp("_Name") and molecule.GetProp("_Name") else {}
    return title | properties | {SMILES: str(chem.MolToSmiles(molecule))}


def _parquet(path: Path) -> MoleculeTable:
    table = read_parquet(path, io.BytesIO(_bytes(path)))
    texts = table.astype(object).where(table.notna(), "").astype(str)
    records = [list(record) for record in texts.itertuples(index=False, name=None)]
    return MoleculeTable(path, [str(name) for name in table.columns], list(range(2, len(records) + 2)), records)


READERS: dict[str, Callable[[Path], MoleculeTable]] = {
    ".csv": _delimited,
    ".tsv": _delimited,
    ".txt": _delimited,
    ".smi": _smiles_lines,
    ".smiles": _smiles_lines,
    ".sdf": _sdf,
    ".parquet": _parquet,
}


def _text(path: Path) -> str:
    try:
        return _decoded(_bytes(path))
    except UnicodeDecodeError as error:
        raise DataError(f"not a CSV text file ({error})", file=path, remedy="Save it as CSV in UTF-8") from error


def _decoded(content: bytes, errors: str = "strict") -> str:
    """UTF-8 with or without a byte-order mark, or UTF-16 with one, as spreadsheets write it."""
    is_utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    return content.decode("utf-16" if is_utf16 else "utf-8-sig", errors)


def _bytes(path: Path) -> bytes:
    """The content, decompressed where it is gzipped."""
    if not path.name.lower().endswith(".gz"):
        return path.read_bytes()
    try:
        with gzip.open(path) as stream:
            content = stream.read(int(limit("BYTES")) + 1)
        check_limit("BYTES", len(content))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"it is torn or not gzipped ({error})", file=path, remedy="Compress it again") from error
    except LimitError as error:
        raise DataError(str(error), file=path) from error
    return content


def _columns(found: Sequence[tuple[int, list[str]]]) -> tuple[list[int], list[list[str]]]:
    return [row for row, _ in found], [record for _, record in found]
