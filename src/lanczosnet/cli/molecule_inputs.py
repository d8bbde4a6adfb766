"""Molecules on a command line: their rows, whatever file they come in, and their column of SMILES."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def is_molecule_file(name: str) -> bool:
    """Whether the name is that of a table that molecules may come in."""
    from lanczosnet.graphs.molecules.table import READERS, format_of

    return format_of(Path(name)) in READERS


def needs_own_reader(path: Path) -> bool:
    """Whether it is anything but a CSV with commas."""
    from lanczosnet.graphs.molecules.table import read_head

    if path.suffix != ".csv":
        return True
    head = read_head(path, 1)
    return head is not None and head.decimal_comma


def rows_of(path: Path) -> list[Row]:
    """The rows of any table of molecules, as texts."""
    from lanczosnet.graphs.formats.columns import check_header
    from lanczosnet.graphs.molecules.table import read_table

    table = read_table(path)
    check_header(str(path), table.header)
    return [dict(zip(table.header, record, strict=True)) for record in table.records]


def smiles_of(rows: Sequence[Row], name: str, column: str | None, trained_on: str | None = None) -> list[str]:
    """The SMILES of these rows."""
    found = smiles_column_of(rows, name, column, trained_on)
    return [row[found] or "" for row in rows]


def smiles_column_of(rows: Sequence[Row], name: str, column: str | None, trained_on: str | None = None) -> str:
    """The column that is named, or called as in training, or found in these rows."""
    from lanczosnet.graphs.molecules.columns import smiles_column
    from lanczosnet.graphs.molecules.table import MoleculeTable

    header = list(rows[0])
    if column is not None and column not in header:
        known = ", ".join(header)
        raise ValueError(f"{name} has no column {column!r}: name one of {known} with --smiles-column")
    if column is None and trained_on in header:
        column = trained_on
    table = MoleculeTable(Path(name), header, list(range(2, len(rows) + 2)), [list(row.values()) for row in rows])
    return smiles_column(table, column)


def descriptors_of(rows: Sequence[Row], name: str, columns: Sequence[str]) -> dict[str, list[str]] | None:
    """The cells of the model's descriptor columns."""
    if not columns:
        return None
    if missing := [column for column in columns if column not in rows[0]]:
        raise ValueError(f"{name} has no column {missing[0]!r}: the model needs the descriptors {', '.join(columns)}")
    return {column: [row[column] or "" for row in rows] for column in columns}
