"""What is to be converted: the user's files, or a folder as the Open Graph Benchmark leaves it."""

import shutil
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lanczosnet.files import atomic_write
from lanczosnet.graphs.conversion.tables import open_table
from lanczosnet.graphs.errors import DataError

TASKS = ("classification", "regression")
OGB_PARTS = {"train": "train", "val": "valid", "test": "test"}


@dataclass
class Sources:
    """Files, and what their columns mean. Every path may be None but that of the edges."""

    edges: Path
    nodes: Path | None = None  # a table with features, label and split
    features: Path | None = None  # npy
    labels: Path | None = None  # npy, or one column without a header
    masks: dict[str, Path] = field(default_factory=dict)  # of the parts train, val and test
    num_nodes: int | None = None
    weight: str | None = None
    label: str | None = None
    split: str | None = None
    id: str | None = None
    columns: list[str] | None = None  # of features
    task: str = "classification"
    header: bool = True
    name: str = ""

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise DataError(f"there is no task {self.task!r}", remedy=f"Known are {', '.join(TASKS)}")
        if self.num_nodes is not None and self.num_nodes < 1:
            raise DataError(f"num_nodes must be at least 1, but is {self.num_nodes}")

    def identity(self) -> dict[str, Any]:
        """What a resumed conversion must have in common with the interrupted one."""
        files = [self.edges, self.nodes, self.features, self.labels, *self.masks.values()]
        facts = {key: value for key, value in vars(self).items() if not isinstance(value, Path | dict)}
        return facts | {"files": [_state(path) for path in files if path is not None]}


def ogb_sources(folder: Path, work: Path) -> Sources:
    """The raw files of an OGB node data set: CSV with gzip, or for large ones npz, which are unpacked first."""
    raw = folder / "raw" if (folder / "raw").is_dir() else folder
    files = _unpacked(raw, work) if (raw / "data.npz").is_file() else _compressed(raw)
    return Sources(**files, masks=_masks(raw.parent), header=False, name=folder.name)


def is_ogb_folder(path: Path) -> bool:
    folders = (path, path / "raw")
    return any((folder / name).is_file() for folder in folders for name in ("edge.csv.gz", "data.npz"))


def _compressed(raw: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"edges": raw / "edge.csv.gz"}
    for key, name in (("nodes", "node-feat.csv.gz"), ("labels", "node-label.csv.gz")):
        if (raw / name).is_file():
            found[key] = raw / name
    count = raw / "num-node-list.csv.gz"
    if count.is_file():
        block = next(open_table(count, header=False).blocks({"column0": "integer"}, None))
        found["num_nodes"] = int(block.columns["column0"][0].as_py())
    return found


def _unpacked(raw: Path, work: Path) -> dict[str, Any]:
    members = {"edge_index": "edges", "node_feat": "features"}
    found: dict[str, Any] = {key: unpacked(raw / "data.npz", name, work) for name, key in members.items()}
    for file in ("node-label.npz", "node_label.npz"):
        if (raw / file).is_file():
            found["labels"] = unpacked(raw / file, "node_label", work)
    return found


def unpacked(path: Path, member: str, work: Path) -> Path:
    """The array of an npz as a separate file."""
    target = work / f"{path.stem}-{member}.npy"
    if target.is_file():
        return target
    try:
        with (
            zipfile.ZipFile(path) as archive,
            archive.open(f"{member}.npy") as stream,
            atomic_write(target) as temporary,
            temporary.open("wb") as out,
        ):
            shutil.copyfileobj(stream, out, 2**22)
    except (KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"there is no array {member} ({error})", file=path, remedy="Download it again") from error
    return target


def _masks(folder: Path) -> dict[str, Path]:
    """Of the data set's own split, whose folder is named after how it was made."""
    for split in sorted((folder / "split").glob("*")):
        found = {part: split / f"{name}.csv.gz" for part, name in OGB_PARTS.items()}
        if all(path.is_file() for path in found.values()):
            return found
    return {}


def node_numbers(path: Path) -> np.ndarray:
    """Of the nodes of a mask, from one column without a header."""
    table = open_table(path, header=False)
    blocks = table.blocks({table.names[0]: "integer"}, None)
    return np.concatenate([np.zeros(0, np.int64), *(block.columns[table.names[0]].to_numpy() for block in blocks)])


def _state(path: Path) -> list[Any]:
    if not path.exists():
        raise DataError("there is no such file", file=path, remedy="Check the path")
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    return [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
