"""What all readers of the user's CSV files share: rows as a spreadsheet counts them, and columns by their names."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from lanczosnet.graphs.errors import DataError
from lanczosnet.schemas.limits import LimitError, check_limit, limit, too_many
from lanczosnet.schemas.record import shown

LARGEST = float(np.finfo(np.float32).max)  # what is larger would become infinite, as all numbers are kept in float32
LARGEST_FEATURE = 1e16  # sums of squares must stay numbers, or one row makes all others NaN
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs"}
# How the parts of a split are called in files.
WORDS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
OPTIONS_WITH_SEVERAL = ("targets", "features", "descriptor_columns")


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The records of a CSV with their rows; blank lines hold no record, but are counted."""
    with path.open(newline="", encoding="utf-8-sig") as stream:
        yield from stream_rows(stream, name=str(path))


def stream_rows(
    stream: Iterable[str], separator: str = ",", *, name: str = "the input"
) -> Iterator[tuple[int, list[str]]]:
    """The same of text that is open already, such as standard input."""
    csv.field_size_limit(int(limit("CELL")))
    row = 0
    try:
        for row, record in enumerate(csv.reader(stream, delimiter=separator), start=1):
            if not _is_blank(record):
                yield row, record
    except csv.Error as error:
        if "field limit" not in str(error):
            raise
        raise LimitError(too_many("CELL", None, f"{name}: a cell after row {row}")) from error


def check_header(path: str | Path, header: Sequence[str]) -> None:
    """Not too many columns, and no two of one name."""
    check_limit("COLUMNS", len(header), f"{path}: columns")
    count = Counter(header)
    for name in header:
        if count[name] > 1:
            raise DataError(f"two columns are named {shown(name)}", file=path, row=1, remedy="Rename one of them")


def row_of(path: Path, position: int) -> int:
    """The row of the record at a position, counted from 0 without the header."""
    if path.suffix != ".csv":
        return position + 2  # as if it were a spreadsheet with a header
    return next(row for row, _ in islice(csv_rows(path), position + 1, None))


def check_separator(path: Path, header: Sequence[str]) -> None:
    for separator, plural in OTHER_SEPARATORS.items():
        if len(header) == 1 and separator in header[0]:
            raise DataError(
                f"the columns are separated by {plural}", file=path, remedy="Save the file with commas between them"
            )


def names_listed(names: str | int | Sequence[str]) -> list[str]:
    """A single name is one column, not a sequence of letters; the command line reads the name 2020 as a number."""
    return [str(names)] if isinstance(names, str | int) else list(names)


def no_such_column(path: Path, name: str, known: Sequence[str], option: str) -> DataError:
    """The error for a column that is not there; `option` is what the user names it with."""
    similar = next((column for column in known if str(column).lower() == str(name).lower()), None)
    if similar is None:
        advice = "; name one of them"
    elif option in OPTIONS_WITH_SEVERAL:
        advice = f": pass {option}={[similar]!r}, capitals count"
    else:
        advice = f": pass {option}={similar!r} (on the command line `--data-set {option}={similar}`), capitals count"
    columns = ", ".join(map(str, known))
    return DataError(f"there is no column {name!r}", file=path, remedy=f"The columns are {columns}{advice}")


def _is_blank(record: list[str]) -> bool:
    """As pandas sees it: a line with nothing but spaces is blank, one with an empty cell in quotes is not."""
    return not record or (len(record) == 1 and record[0].isspace())
