"""QM8: 21,786 small organic molecules and their excitation energies and oscillator strengths (MoleculeNet)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lanczosnet.files import sha256_of
from lanczosnet.graphs.cache import read_cache, read_if
from lanczosnet.graphs.data_sets import sources
from lanczosnet.graphs.data_sets.download import available
from lanczosnet.graphs.directory import search_path, writable_directory
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.molecules.arrays import packed_molecules
from lanczosnet.graphs.molecules.loading import cached_molecules
from lanczosnet.graphs.packed import PackedGraphs
from lanczosnet.schemas.packed_molecules import OriginRecord

TARGETS = tuple(f"{quantity}-{method}" for method in ("CC2", "PBE0", "CAM") for quantity in ("E1", "E2", "f1", "f2"))
# The published tables average over 16 tasks, in which the four PBE0 columns stand twice with identical values.
TASKS_16 = (*TARGETS[:8], *TARGETS[4:8], *TARGETS[8:])
UNITS = {"E": "Hartree", "f": "oscillator strength (dimensionless)"}

OPTIONS = {"smiles": "smiles", "targets": list(TARGETS), "task": "regression", "skip_invalid": False}
CACHE = "qm8/qm8.safetensors"


def qm8(*, data_dir: str | Path | None = None, tasks: int = 12, workers: int | None = None) -> PackedGraphs:
    """The QM8 molecules with their 12 distinct targets, or with the published 16 tasks.

    They come from the cache file if there is one, which needs neither the CSV nor RDKit; else it is made first.
    """
    if tasks not in (12, 16):
        raise DataError(f"QM8 has 12 distinct targets or the published 16 tasks, not {tasks}")
    graphs = _with_units(_from_cache(data_dir) or _from_csv(data_dir, workers))
    return graphs if tasks == 12 else select_targets(graphs, TASKS_16)


def select_targets(graphs: PackedGraphs, names: Sequence[str]) -> PackedGraphs:
    """The same graphs with these targets, in this order; names may repeat."""
    unknown = [name for name in names if name not in graphs.targets]
    if unknown:
        raise DataError(f"there is no target {unknown[0]!r}; known are {', '.join(graphs.targets)}")
    columns = [graphs.targets.index(name) for name in names]
    chosen = {key: tuple(graphs.about[key][i] for i in columns) for key in ("targets", "units") if graphs.about[key]}
    targets = {key: value[:, columns] for key, value in graphs.graph.items()}
    return replace(graphs, graph=targets, about=graphs.about | chosen)


def cache_path(data_dir: str | Path | None = None) -> Path | None:
    """The cache file, unchecked, or None."""
    return next((folder / CACHE for folder in search_path(data_dir) if (folder / CACHE).is_file()), None)


def _from_cache(data_dir: str | Path | None) -> PackedGraphs | None:
    for folder in search_path(data_dir):
        if content := read_if(folder / CACHE, _is_published):
            return packed_molecules(*content, name="qm8")
    return None


def _is_published(origin: OriginRecord) -> bool:
    return origin.source in sources.QM8.versions and origin.options == OPTIONS


def _from_csv(data_dir: str | Path | None, workers: int | None) -> PackedGraphs:
    path = available(sources.QM8, "qm8", data_dir)
    cache = writable_directory(data_dir) / CACHE
    return cached_molecules(path, cache, sha256_of(path), OPTIONS, name="qm8", workers=workers)


def _with_units(graphs: PackedGraphs) -> PackedGraphs:
    return replace(graphs, about=graphs.about | {"units": tuple(UNITS[name[0]] for name in graphs.targets)})


def cache_state(path: Path) -> str:
    """`ok`, or why the cache will not be used but made again."""
    try:
        _, origin = read_cache(path)
    except DataError as error:
        return str(error)
    return "ok" if _is_published(origin) else "made from another file"
