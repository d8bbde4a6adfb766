"""The user's own PyG `Data` objects, from a list, a file or a folder."""

import re
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import BaseData, DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from lanczosnet.graphs.edges import with_usable_edges
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.archives import check_decompressed
from lanczosnet.graphs.formats.object_laws import LawError, lawful
from lanczosnet.graphs.packed import PackedGraphs, pack
from lanczosnet.schemas.limits import LimitError

# What a Data object is made of; PyG admits some of it to torch.load itself, but not all.
ADMITTED = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]


def data_objects(source: str | Path | Data | Sequence[Data]) -> Data | PackedGraphs:
    """Packed graphs from `Data` objects: a list, a `.pt` file that holds one or a list, or a folder of such files.

    One `Data` that is no list, with a `y` for each of its nodes, is one graph. Its edges become undirected and its
    weights positive (`with_usable_edges`); all else comes as it is.

    Files are read in the order of their names, numbers by value, and with `weights_only`: a file that would run code is
    refused.
    """
    if isinstance(source, BaseData) and not isinstance(source, Data):
        source = [source]  # of another kind than is known, which is an error
    if isinstance(source, Data):
        return _one_or_packed(_checked([source], "the graph"), "graph")
    if not isinstance(source, str | Path):
        return pack(_checked(list(source), "the list"))
    path = Path(source)
    files = sorted(path.glob("*.pt"), key=_natural) if path.is_dir() else [path]
    if not files:
        raise DataError("the folder holds no .pt files", file=path, remedy="Save each graph with torch.save(data, ...)")
    contents = [_read(file) for file in files]
    if isinstance(contents[0], Data) and not path.is_dir():  # a folder is a set of graphs, however many
        return _one_or_packed(_checked(contents, str(files[0])), path.stem)
    listed = [content if isinstance(content, list | tuple) else [content] for content in contents]
    checked = [_checked(content, str(file)) for content, file in zip(listed, files, strict=True)]
    try:
        return pack([data for content in checked for data in content], name=path.stem)
    except DataError as error:  # of graphs that each are right
        raise DataError(str(error), file=path) from error


def _one_or_packed(graphs: list[Data], name: str) -> Data | PackedGraphs:
    """One graph is a task on its nodes if these have targets, and a set of one graph if not."""
    (data,) = graphs
    if data.y is None or data.y.dim() == 0 or len(data.y) != data.num_nodes or data.num_nodes == 1:
        return pack(graphs, name=name)
    data = with_usable_edges(data)
    data.name = data.get("name") or name
    return data


def _read(file: Path) -> Any:
    # On leaving, the context forgets what it was given, which must not be what PyG itself had admitted before.
    _check_archive(file)
    missing = [kind for kind in ADMITTED if kind not in torch.serialization.get_safe_globals()]
    try:
        with (
            torch.serialization.safe_globals(missing),
            torch.sparse.check_sparse_tensor_invariants(),  # which new versions do by themselves, and say so
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings("ignore", "Validating sparse tensor invariants", UserWarning)
            content = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch has many ways to refuse a file
        refused = re.search(r"GLOBAL (\S+)", str(error))
        reason = f"it references {refused[1]}" if refused else type(error).__name__
        raise DataError(
            f"the file cannot be read safely ({reason})",
            file=file,
            remedy="It must hold a PyG Data object, or a list of them, and nothing else; save it again with torch.save",
        ) from error
    return content


def _check_archive(file: Path) -> None:
    """What torch would decompress."""
    if not zipfile.is_zipfile(file):
        return  # torch says what it is
    try:
        with zipfile.ZipFile(file) as archive:
            check_decompressed(sum(member.file_size for member in archive.infolist()), file)
    except (zipfile.BadZipFile, OSError, NotImplementedError) as error:
        raise DataError(f"the file cannot be read ({error})", file=file, remedy="Save it again") from error


def _checked(content: Sequence[Any], where: str) -> list[Data]:
    checked = []
    for i, data in enumerate(content):
        if not isinstance(data, Data):
            kinds = ": make it one with to_homogeneous()" if isinstance(data, HeteroData) else ""
            raise DataError(f"item {i} is a {type(data).__name__}, not a PyG Data object{kinds}", file=where)
        try:
            checked.append(lawful(data))
        except LimitError as error:
            raise LimitError(f"{where}: graph {i}: {error}") from error
        except LawError as error:
            raise DataError(f"graph {i}: {error}", file=where) from error
    return checked


def _natural(path: Path) -> list[Any]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", path.stem)]
