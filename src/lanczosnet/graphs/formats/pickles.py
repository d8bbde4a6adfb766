"""Read the pickles of NumPy arrays, SciPy matrices and dictionaries without letting them run anything.

A pickle is a program. Here it can name only the six things below, and the NumPy and SciPy names do not lead to NumPy
and SciPy but to inert recipes that merely keep what they are given. The arrays are made afterwards, from raw bytes
whose type and length were checked, so that object arrays or forged type descriptions have no way in.
"""

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from lanczosnet.graphs.errors import DataError


class _Recipe:
    """Keeps the arguments and the state that a pickle gives."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def make(self) -> Any:
        raise NotImplementedError


class _Dtype(_Recipe):
    def make(self) -> np.dtype:
        code, order = self.arguments[0], self.state[1]
        if code[:1] not in "biuf" or not code[1:].isdigit() or order not in "<>|=":
            raise ValueError(f"array type {code!r} is not a plain number")
        return np.dtype(code).newbyteorder(order)


class _Array(_Recipe):
    def make(self) -> np.ndarray:
        _, shape, dtype, column_major, raw = self.state
        content = raw.encode("latin1") if isinstance(raw, str) else raw
        flat = np.frombuffer(content, dtype=_made(dtype, _Dtype))
        return flat.reshape(shape, order="F" if column_major else "C").copy()


class _Csr(_Recipe):
    def make(self) -> scipy.sparse.csr_matrix:
        parts = tuple(_made(self.state[key], _Array) for key in ("data", "indices", "indptr"))
        matrix = scipy.sparse.csr_matrix(parts, shape=self.state["_shape"])
        matrix.check_format(full_check=True)
        return matrix


def _made(recipe: Any, kind: type[Any]) -> Any:
    if not isinstance(recipe, kind):
        raise TypeError(f"expected {kind.__name__[1:].lower()}, got {type(recipe).__name__}")
    return recipe.make()


_ADMITTED: dict[tuple[str, str], type[Any]] = {
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Array,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("scipy.sparse.csr", "csr_matrix"): _Csr,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise DataError(f"the pickle references {module}.{name}, which is not admitted") from None


def read_pickle(path: Path) -> Any:
    """The array, sparse matrix or dictionary in a Python-2 pickle."""
    try:
        with path.open("rb") as stream:
            content = _Unpickler(stream, encoding="latin1").load()
        return content.make() if isinstance(content, _Recipe) else content
    except DataError as error:
        raise DataError(f"{error}; nothing was run", file=path, remedy="Do not trust this file") from None
    except Exception as error:  # a damaged pickle fails in any way at all
        raise DataError(
            f"not a readable pickle ({type(error).__name__}: {error})",
            file=path,
            remedy="The file is truncated or damaged; fetch it again",
        ) from error
