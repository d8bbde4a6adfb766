"""The schema of `manifest.json` in a graph folder: sizes, facts, and the type, shape and SHA-256 of every array."""

from pathlib import Path
from typing import Annotated, Literal

from lanczosnet.schemas.graph_arrays import ARRAYS, REMEDY
from lanczosnet.schemas.record import (
    Count,
    FileError,
    Meta,
    Name,
    Positive,
    Record,
    Sha256,
    check_checksum,
    checked,
    field,
    parsed,
    up_to_date,
)

KIND, FORMAT = "lanczosnet graph folder", 1


class StoredArray(Record, frozen=True, kw_only=True):
    """An array, whose content is in a file of its own."""

    shape: Annotated[tuple[Count, ...], Meta(min_length=1, max_length=2)]
    dtype: Name
    sha256: Sha256


class GraphFacts(Record, frozen=True, kw_only=True):
    """What the arrays mean; a `Data` has the same under these names."""

    name: str | None = None
    task: Literal["classification", "regression"] | None = None
    targets: list[Name] | None = None
    units: list[str] | None = None
    classes: list[str | list[str]] | None = None  # of one target, or of each
    features: list[str] | None = None
    metric: Name | None = None

    def __post_init__(self) -> None:
        if len({type(one) for one in self.classes or ()}) > 1:
            raise ValueError("classes are either texts, or lists of texts")


class GraphManifest(Record, frozen=True, kw_only=True):
    """The whole file."""

    kind: Literal["lanczosnet graph folder"]
    format: Positive
    num_nodes: Positive
    num_entries: Count
    about: GraphFacts
    arrays: dict[str, StoredArray]
    checksum: Sha256 | None = field(default=None)  # earlier versions wrote none

    def __post_init__(self) -> None:
        missing, unknown = {"row_pointer", "column"} - self.arrays.keys(), self.arrays.keys() - ARRAYS.keys()
        if missing:
            raise ValueError(f"there is no array {', '.join(sorted(missing))}")
        if unknown:
            raise ValueError(f"there are unknown arrays: {', '.join(sorted(unknown))[:200]}")
        sizes = {"row_pointer": self.num_nodes + 1, "column": self.num_entries, "edge_weight": self.num_entries}
        for name, array in self.arrays.items():
            rows = sizes.get(name, self.num_nodes)
            if array.shape[0] != rows or len(array.shape) not in ARRAYS[name][1]:
                raise ValueError(f"{name} has the shape {list(array.shape)}, but there are {rows:,} rows")
        if self.about.features is not None and "features" in self.arrays:
            self._check_width("features", len(self.about.features))
        if self.about.targets is not None and "labels" in self.arrays:
            self._check_width("labels", len(self.about.targets))

    def _check_width(self, name: str, names: int) -> None:
        width = [*self.arrays[name].shape, 1][1]
        if width != names:
            raise ValueError(f"{name} has {width} columns, but {names} have a name")


def read_manifest(path: Path) -> GraphManifest:
    """The manifest in a file."""
    written = parsed(path.read_bytes(), path, REMEDY)
    if written.get("kind") != KIND:
        raise FileError(f"this is a {written.get('kind')!r:.60}, not a {KIND!r}", file=path)
    check_checksum(written, path, REMEDY)
    return checked(up_to_date(written, FORMAT, path, REMEDY), GraphManifest, path, REMEDY)
