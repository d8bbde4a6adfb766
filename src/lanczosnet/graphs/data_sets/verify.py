"""Whether the files of a data set are here and good."""

from pathlib import Path
from typing import NamedTuple

from lanczosnet.graphs.catalogue import entry, is_known
from lanczosnet.graphs.data_sets.sources import SourceFile
from lanczosnet.graphs.formats.graph_folder import open_graph

NOT_NEEDED = "not needed"


class FileState(NamedTuple):
    """A file, `ok`, `not needed` or what is wrong with it, and where it lies."""

    file: str
    state: str
    place: str


def verify(name: str, data_dir: str | Path | None = None) -> list[FileState]:
    """Check the published files of a data set, and QM8's cache if there is one; or the arrays of a graph folder."""
    if not is_known(name) and Path(name).is_dir():
        folder = open_graph(name)
        found = folder.problems().items()
        return [FileState(f"{array}.npy", state, str(folder.path / f"{array}.npy")) for array, state in found]
    states = [_source_state(file, data_dir) for file in entry(name).files]
    return _with_cache(states, _cache_state(data_dir)) if name.lower() == "qm8" else states


def _with_cache(states: list[FileState], cache: list[FileState]) -> list[FileState]:
    """A good cache stands for the file that it was made from."""
    is_good = any(state.state == "ok" for state in cache)
    return [
        state._replace(state=NOT_NEEDED) if is_good and state.state == "missing" else state for state in states
    ] + cache


def _source_state(file: SourceFile, data_dir: str | Path | None) -> FileState:
    good, found = file.good(data_dir), file.found(data_dir)
    if good:
        return FileState(file.name, "ok", str(good))
    return FileState(file.name, file.fault, str(found[0])) if found else FileState(file.name, "missing", "")


def _cache_state(data_dir: str | Path | None) -> list[FileState]:
    from lanczosnet.graphs.data_sets.qm8 import cache_path, cache_state

    path = cache_path(data_dir)
    return [FileState(path.name, cache_state(path), str(path))] if path else []
