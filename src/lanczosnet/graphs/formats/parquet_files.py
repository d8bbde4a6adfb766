"""Parquet files, whose errors all become one message: those of pyarrow have no class in common."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from lanczosnet._extras import require
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.archives import check_decompressed
from lanczosnet.schemas.limits import LimitError, check_limit

if TYPE_CHECKING:
    import pandas as pd


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """What is read here is of this file; a damaged one fails in many ways."""
    try:
        yield
    except (DataError, LimitError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"the table cannot be read ({error})", file=path, remedy="Write the file again") from error


def read_parquet(path: Path, stream: IO[bytes] | None = None) -> "pd.DataFrame":
    """The table in a file, or in its decompressed content."""
    require("pyarrow", to="to read Parquet")
    require("pandas", to="to read Parquet")
    from pyarrow.parquet import ParquetFile

    with parquet_errors(path), ParquetFile(stream or path) as file:
        held = file.metadata
        check_limit("COLUMNS", held.num_columns, f"{path}: columns")
        check_decompressed(sum(held.row_group(i).total_byte_size for i in range(held.num_row_groups)), path)
        table = file.read()
        table.validate(full=True)  # or else texts that are no UTF-8 fail wherever they are used
        frame: pd.DataFrame = table.to_pandas()
        return frame
