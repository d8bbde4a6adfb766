"""The user's tables as they stand in their files: CSV, Parquet and npz, checked before memory is taken."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lanczosnet._extras import MissingExtraError, require
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.archives import npz_names, read_npz
from lanczosnet.graphs.formats.columns import LARGEST_FEATURE, check_header, check_separator, csv_rows
from lanczosnet.graphs.formats.parquet_files import read_parquet
from lanczosnet.schemas.limits import LimitError, check_limit

if TYPE_CHECKING:
    import pandas as pd

FORMATS = (".csv", ".parquet", ".npz")


def read_table(path: Path) -> "pd.DataFrame":
    require("pandas", to="to read tables")
    import pandas as pd

    readers: dict[str, Any] = {".csv": read_csv, ".parquet": read_parquet, ".npz": _read_npz}
    if path.suffix not in readers:
        raise DataError(f"a table ends in {', '.join(FORMATS)}", file=path, remedy="Convert it to one of these")
    if not path.is_file():
        raise DataError("there is no such file", file=path, remedy="Check the path")
    with _readable(path):
        table: pd.DataFrame = readers[path.suffix](path)
    if table.empty:
        raise DataError("there is no usable row", file=path, remedy="A table needs a header and one row per item")
    return table


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Errors that name the file, whatever its reader says of it."""
    try:
        yield
    except (LimitError, MissingExtraError):
        raise
    except DataError as error:
        if str(path) in str(error):
            raise
        raise DataError(str(error), file=path, remedy="The file is damaged or of another format") from error
    except Exception as error:  # every reader has its own ways to fail on a damaged file
        raise DataError(
            f"the table cannot be read ({error})", file=path, remedy="The file is truncated or of another format"
        ) from error


def read_csv(path: Path, **options: Any) -> "pd.DataFrame":
    import pandas as pd

    _check_first_rows(path)
    return pd.read_csv(path, low_memory=False, **options)  # in one piece, so that a column has one type


def _check_first_rows(path: Path) -> None:
    _, header = next(csv_rows(path), (1, [""]))
    check_separator(path, header)
    check_header(path, header)
    for row, record in islice(csv_rows(path), 1, 2):
        if len(record) > len(header):  # pandas would take the first column for names of rows
            raise DataError(
                f"{len(record)} cells under {len(header)} columns",
                file=path,
                row=row,
                remedy="The first line must name every column",
            )


def _read_npz(path: Path) -> "pd.DataFrame":
    """`x`, `y` and `id` as columns; pickled objects inside are refused."""
    import pandas as pd

    names = npz_names(path)
    if "x" not in names:
        raise DataError(f"there is no array x, only {', '.join(sorted(names))}", file=path, remedy="Save it as x")
    arrays = read_npz(path, sorted({"x", "y", "id"} & names), texts=("y", "id"))
    x = arrays["x"]
    if not x.size:
        raise DataError(f"x has the shape {x.shape}, and no values", file=path, remedy="Save one row per node")
    x = x.reshape(len(x), -1)
    check_limit("COLUMNS", x.shape[1], f"{path}: columns of x")
    columns = {f"x{i}": column for i, column in enumerate(x.T)}
    for key in sorted(arrays.keys() - {"x"}):
        if arrays[key].shape not in ((len(x),), (len(x), 1)):
            raise DataError(
                f"x has {len(x)} rows, {key} has {' x '.join(map(str, arrays[key].shape))}",
                file=path,
                remedy="Make them equal",
            )
        columns[key] = arrays[key].reshape(-1)
    return pd.DataFrame(columns)


def brings_edges(path: Path) -> bool:
    return path.suffix == ".npz" and "edge_index" in npz_names(path)


def npz_edges(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """`[2, edge]`, ids of nodes, and the weights if there are any."""
    with _readable(path):
        names = {"edge_index", "edge_weight"} & npz_names(path)
        arrays = read_npz(path, sorted(names), texts=("edge_index",))
    ends, weights = arrays.get("edge_index"), arrays.get("edge_weight")
    if ends is None or ends.ndim != 2 or len(ends) != 2 or ends.dtype.kind == "b":
        raise DataError("there is no array edge_index of shape [2, edges]", file=path, remedy="Save one")
    if weights is None:
        return ends, None
    if weights.shape != ends.shape[1:] or not bool((np.abs(weights.astype(float)) <= LARGEST_FEATURE).all()):
        raise DataError("edge_weight is not one finite number for each edge", file=path, remedy="Correct it")
    return ends, weights.astype(np.float32)
