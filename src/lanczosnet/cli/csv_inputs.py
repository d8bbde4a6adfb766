"""The rows of a CSV on a command line or on standard input, as texts."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def read_rows(name: str) -> Iterator[Row]:
    """One after another; `-` is standard input. A row with too few cells has empty ones."""
    from lanczosnet.graphs.formats.columns import csv_rows, stream_rows

    if name == "-" and sys.stdin is None:
        raise ValueError("standard input is closed: there is nothing to predict")
    numbered, called = (stream_rows(sys.stdin), "the input") if name == "-" else (csv_rows(Path(name)), name)
    try:
        yield from _records(numbered, called)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{name} is not a CSV text file ({error})") from error


def _records(numbered: Iterator[tuple[int, list[str]]], name: str) -> Iterator[Row]:
    from lanczosnet.graphs.formats.columns import check_header

    _, header = next(numbered, (1, []))
    header[:1] = [cell.removeprefix("\ufeff") for cell in header[:1]]  # which a pipe hands on
    check_header(name, header)
    is_empty = True
    for row, cells in numbered:
        if any(cells[len(header) :]):
            raise ValueError(f"row {row} of {name} has {len(cells)} cells, but the header {len(header)}")
        yield dict(zip(header, cells + [""] * (len(header) - len(cells)), strict=False))
        is_empty = False
    if is_empty:
        raise ValueError(f"{name} has no rows below its header: there is nothing to predict")
