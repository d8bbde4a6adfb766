"""One dictionary of names, and `load`, the door to all data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanczosnet.files import is_there, user_path
from lanczosnet.graphs.data_sets import sources
from lanczosnet.graphs.data_sets.molecule_sets import MOLECULE_FILES, MOLECULE_SETS
from lanczosnet.graphs.data_sets.node_sets import NODE_FILES, NODE_SETS
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.graph_folder import is_graph_folder
from lanczosnet.processes import is_out_of_memory

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from lanczosnet.graphs.packed import PackedGraphs


@dataclass(frozen=True)
class Entry:
    """A data set by name: what it is, the files it needs, and the function that loads it."""

    about: str
    loader: Callable[..., Any]
    files: tuple[sources.SourceFile, ...] = ()


def _data_set(module: str, function: str, *arguments: Any) -> Callable[..., Any]:
    return _late(f"data_sets.{module}", function, *arguments)


def _late(module: str, function: str, *arguments: Any) -> Callable[..., Any]:
    """A function whose module is imported when it is called, so that listing names costs nothing."""

    def call(*more: Any, **options: Any) -> Any:
        return getattr(import_module(f"lanczosnet.graphs.{module}"), function)(*arguments, *more, **options)

    return call


def _citation(name: str, about: str) -> Entry:
    return Entry(about, _data_set("citation", "citation", name), tuple(sources.planetoid(name).values()))


CATALOGUE: dict[str, Entry] = {
    "cora": _citation("cora", "citation network, 2,708 papers, 7 classes"),
    "citeseer": _citation("citeseer", "citation network, 3,327 papers, 6 classes"),
    "pubmed": _citation("pubmed", "citation network, 19,717 papers, 3 classes"),
    "qm8": Entry("21,786 molecules, 12 electronic properties", _data_set("qm8", "qm8"), (sources.QM8,)),
    "digits": Entry(
        "1,797 handwritten digits as a nearest-neighbour graph, 10 classes", _data_set("embedded", "digits")
    ),
    "karate": Entry("Zachary's karate club, 34 members, 4 communities", _data_set("embedded", "karate")),
    "path": Entry("nodes in a row, spectrum known", _data_set("synthetic", "path")),
    "ring": Entry("nodes in a circle, spectrum known", _data_set("synthetic", "ring")),
    "clique": Entry("a complete graph, spectrum known", _data_set("synthetic", "clique")),
    "block-model": Entry("a stochastic block model, expected spectrum known", _data_set("synthetic", "block_model")),
    "swiss-roll": Entry("points on a Swiss roll, spectrum of the manifold known", _data_set("synthetic", "swiss_roll")),
    **{
        name: Entry(known.about, _data_set("node_graphs", "node_graph", name), (NODE_FILES[name],))
        for name, known in NODE_SETS.items()
    },
}
CATALOGUE |= {
    name: Entry(molecule_set.about, _data_set("moleculenet", "moleculenet", name), (MOLECULE_FILES[name],))
    for name, molecule_set in MOLECULE_SETS.items()
}
NAMES = ", ".join(CATALOGUE)
MOLECULE_OPTIONS = {
    "smiles",
    "targets",
    "ignore",
    "skip_invalid",
    "featurizer",
    "explicit_hydrogens",
    "largest_fragment",
    "descriptor_columns",
    "descriptors",
}


def entry(name: str) -> Entry:
    """The entry of a name; a wrong name lists the right ones."""
    try:
        return CATALOGUE[name.lower()]
    except KeyError:
        raise DataError(f"there is no data set {name!r}", remedy=f"Known data sets: {NAMES}") from None


def load(
    source: "str | Path | Data | Sequence[Data]", *, data_dir: str | Path | None = None, **options: Any
) -> "Data | PackedGraphs":
    """Load a data set by name, or the user's own files by path, or PyG `Data` objects: one, or a list of them.

    One graph comes as PyG `Data`, many as `PackedGraphs`. `data_dir` is where published files and caches lie (else
    LANCZOSNET_DATA, else the user's cache folder). The options are those of the loader: `citation`, `qm8`, `digits`,
    ..., `molecules` for a CSV with a SMILES column, `node_table` for other tables, `data_objects` for `.pt` files and
    folders.
    """
    name = source if isinstance(source, str | Path) else "a list of graphs"
    try:
        return _loaded(source, data_dir, options)
    except (MemoryError, RuntimeError, DataError) as error:
        if not is_out_of_memory(error.__cause__ or error):
            raise
        remedy = "End other programs, use a machine with more memory, or a part of the data"
        raise DataError("out of memory while it was read", file=name, remedy=remedy) from error
    except TypeError as error:
        if "unexpected keyword argument" in str(error):
            raise DataError(f"{name} is loaded without such an option: {error}") from error
        if not options:
            raise
        given = ", ".join(f"{key}={value!r}" for key, value in options.items())
        raise DataError(f"{name} cannot be loaded with {given}: {error}") from error


def _loaded(
    source: "str | Path | Data | Sequence[Data]", data_dir: str | Path | None, options: dict[str, Any]
) -> "Data | PackedGraphs":
    if not isinstance(source, str | Path):
        return _late("formats.objects", "data_objects")(source, **options)
    if is_known(source):
        known = entry(str(source))
        where = {"data_dir": data_dir} if known.files else {}
        return known.loader(**where, **options)
    path = user_path(source)
    check_exists(source)
    if is_graph_folder(path):
        return _late("formats.stored_graph", "stored_graph")(path, **options)
    if path.is_dir() or path.suffix == ".pt":
        return _late("formats.objects", "data_objects")(path, **options)
    if path.suffix == ".safetensors":
        return _late("molecules.loading", "read_packed_molecules")(path, **options)
    if _holds_molecules(path, options):
        return _late("molecules.loading", "molecules")(path, data_dir=data_dir, **options)
    return _late("formats.tables", "node_table")(path, **options)


def is_known(source: str | Path) -> bool:
    """Whether it is the name of a data set, and else that of a file."""
    return str(source).lower() in CATALOGUE


def check_exists(source: str | Path) -> None:
    """A wrong name or path is an error that lists the names; costs nothing."""
    if not is_known(source) and not is_there(user_path(source)):
        raise DataError(f"there is neither a data set nor a file {str(source)!r}", remedy=f"Known data sets: {NAMES}")


def _holds_molecules(path: Path, options: dict[str, Any]) -> bool:
    """Whether the caller says so, or the file looks like it."""
    return bool(options.keys() & MOLECULE_OPTIONS) or _late("molecules.columns", "holds_molecules")(path)
