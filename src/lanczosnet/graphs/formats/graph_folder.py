"""A folder with one large graph: NumPy arrays that are memory-mapped, and a manifest.

| file | type | shape | |
|---|---|---|---|
| `row_pointer.npy` | int64 | `[node + 1]` | where the neighbours of each node begin |
| `column.npy` | int32, or int64 past 2^31 nodes | `[entry]` | the neighbours, rising in every row, both directions |
| `edge_weight.npy` | float32 | `[entry]` | where edges have weights |
| `features.npy` | float32 | `[node, feature]` | |
| `labels.npy` | int64 or float32 | `[node]` or `[node, target]` | classes (-1 is unknown) or numbers (NaN is unknown) |
| `labelled.npy` | bool | `[node]` | where some labels are unknown |
| `train_mask.npy`, `val_mask.npy`, `test_mask.npy` | bool | `[node]` | where the data have a split |
| `manifest.json` | | | facts of the graph; file, shape, dtype and SHA-256 of every array |

The matrix is symmetric, and has neither self-loops nor repeated entries. The manifest is written last, so a folder
without one is not finished. Nothing here imports torch.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lanczosnet.files import atomic_write, sha256_of, user_path
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.npy_file import mapped_array
from lanczosnet.schemas.graph_arrays import ARRAYS, OF_ENTRIES, REMEDY

if TYPE_CHECKING:
    from lanczosnet.schemas.graph_manifest import StoredArray

MANIFEST = "manifest.json"


class GraphRows(NamedTuple):
    """Some rows of a graph, one after another, memory-mapped except for the pointers."""

    first: int  # node
    row_pointer: np.ndarray  # [row + 1], from 0
    column: np.ndarray  # [entry], numbers of nodes in the whole graph
    edge_weight: np.ndarray | None
    arrays: dict[str, np.ndarray]  # the rows of features, labels and masks


@dataclass(frozen=True)
class GraphFolder:
    """An open folder. Arrays are read where they are used."""

    path: Path
    num_nodes: int
    num_entries: int
    about: dict[str, Any]  # name, task, targets, classes, names of features
    arrays: dict[str, np.ndarray] = field(repr=False)
    checksums: dict[str, str] = field(repr=False)

    def rows(self, first: int, end: int) -> GraphRows:
        """The rows from `first` up to `end`, of which only these are read."""
        pointer = np.asarray(self.arrays["row_pointer"][first : end + 1])
        entries = slice(int(pointer[0]), int(pointer[-1]))
        weight = self.arrays.get("edge_weight")
        per_node = {key: value[first:end] for key, value in self.arrays.items() if key not in OF_ENTRIES}
        return GraphRows(
            first,
            pointer - pointer[0],
            self.arrays["column"][entries],
            None if weight is None else weight[entries],
            per_node,
        )

    def problems(self) -> dict[str, str]:
        """For every array "ok", or that its checksum is wrong. Reads all files."""
        states = {}
        for name, expected in self.checksums.items():
            is_good = sha256_of(self.path / f"{name}.npy") == expected
            states[name] = "ok" if is_good else "wrong checksum"
        return states

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that stand for the graph, from the checksums of its arrays."""
        text = json.dumps({name: self.checksums[name] for name in OF_ENTRIES if name in self.checksums})
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_graph_folder(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def open_graph(path: str | Path) -> GraphFolder:
    """Open a folder in milliseconds: sizes and types are checked here, checksums by `GraphFolder.problems`."""
    from lanczosnet.schemas.graph_manifest import read_manifest

    path = user_path(path)
    if not is_graph_folder(path):
        raise DataError(
            f"there is no {MANIFEST}", file=path, remedy="Make such a folder with `lanczosnet data convert`"
        )
    manifest = read_manifest(path / MANIFEST)
    arrays = {name: _mapped(path, name, entry) for name, entry in manifest.arrays.items()}
    pointer = arrays["row_pointer"]
    if int(pointer[0]) != 0 or int(pointer[-1]) != manifest.num_entries:
        raise DataError("the row pointers do not fit the columns", file=path / "row_pointer.npy", remedy=REMEDY)
    checksums = {name: entry.sha256 for name, entry in manifest.arrays.items()}
    about = manifest.about.document()
    return GraphFolder(path, manifest.num_nodes, manifest.num_entries, about, arrays, checksums)


def write_graph(path: str | Path, arrays: Mapping[str, np.ndarray], about: dict[str, Any]) -> None:
    """Write a folder from arrays that fit into memory; `lanczosnet data convert` writes larger ones."""
    path = Path(path)
    (path / MANIFEST).unlink(missing_ok=True)  # unfinished, from here on
    for name, array in arrays.items():
        with atomic_write(path / f"{name}.npy") as temporary, temporary.open("wb") as stream:
            np.save(stream, array, allow_pickle=False)
    write_manifest(path, {name: sha256_of(path / f"{name}.npy") for name in arrays}, about)


def write_manifest(path: Path, arrays: Mapping[str, str], about: dict[str, Any]) -> None:
    """The manifest of the arrays that lie in a folder, of which `arrays` gives the checksums. Written last."""
    from lanczosnet.schemas.graph_manifest import FORMAT, KIND
    from lanczosnet.schemas.record import signed

    described = {}
    for name in arrays:
        array = np.load(path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        described[name] = {"shape": list(array.shape), "dtype": array.dtype.name, "sha256": arrays[name]}
    manifest = {
        "kind": KIND,
        "format": FORMAT,
        "num_nodes": described["row_pointer"]["shape"][0] - 1,
        "num_entries": described["column"]["shape"][0],
        "about": about,
        "arrays": described,
    }
    with atomic_write(path / MANIFEST) as temporary:
        temporary.write_text(json.dumps(signed(manifest), indent=2) + "\n", encoding="utf-8")


def _mapped(path: Path, name: str, entry: "StoredArray") -> np.ndarray:
    """Copy-on-write, so that tensors may share the memory and nothing reaches the disk."""
    file = path / f"{name}.npy"
    array = mapped_array(file, "c", REMEDY)
    is_right = array.shape == entry.shape and str(array.dtype) == entry.dtype  # which tells swapped bytes, as `>i8`
    if not is_right or array.dtype.kind not in ARRAYS[name][0]:
        found = f"{array.dtype} {list(array.shape)}"
        raise DataError(
            f"the array is {found}, but the manifest says {entry.dtype} {list(entry.shape)}",
            file=file,
            remedy=REMEDY,
        )
    return array
