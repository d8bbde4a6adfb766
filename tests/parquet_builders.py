"""Parquet files that are damaged where only their content shows it."""

from pathlib import Path
from typing import Any


def with_bad_text(path: Path, columns: dict[str, list[Any]]) -> Path:
    """A table whose first text begins with a byte that UTF-8 does not have."""
    import pyarrow as pa
    from pyarrow import parquet

    arrays = {name: pa.array(values) for name, values in columns.items()}
    for name, array in arrays.items():
        if pa.types.is_string(array.type):
            sizes, content = array.buffers()[1:]
            damaged = pa.py_buffer(b"\xff" + content.to_pybytes()[1:])
            arrays[name] = pa.Array.from_buffers(array.type, len(array), [None, sizes, damaged])
    parquet.write_table(pa.table(arrays), path)
    return path
