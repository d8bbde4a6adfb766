"""Molecules from a table with a SMILES column: featurised once, in parallel, then read from a cache."""

import hashlib
import json
import os
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lanczosnet._extras import require
from lanczosnet.files import lock, sha256_of
from lanczosnet.graphs.cache import read_cache, read_if, write_cache
from lanczosnet.graphs.directory import writable_directory
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.columns import names_listed
from lanczosnet.graphs.molecules.arrays import (
    Arrays,
    Skipped,
    concatenated,
    joined,
    packed_molecules,
    recorded_featurizer,
)
from lanczosnet.graphs.molecules.columns import choose
from lanczosnet.graphs.molecules.descriptor_columns import missing_noted, read_columns
from lanczosnet.graphs.molecules.descriptors import check_kinds
from lanczosnet.graphs.molecules.featurizer import FEATURIZERS, PAPER, Featurizer, featurizer_from
from lanczosnet.graphs.molecules.smiles import Molecule, read_smiles
from lanczosnet.graphs.molecules.table import MoleculeTable, read_table
from lanczosnet.graphs.molecules.targets import read_targets
from lanczosnet.graphs.packed import PackedGraphs
from lanczosnet.graphs.progress import progress_bar
from lanczosnet.processes import called_for, interrupts_ignored, num_cores
from lanczosnet.schemas.packed_molecules import OriginRecord, origin_record

CHUNK = 512  # molecules that a worker process gets at once
TASKS = ("regression", "classification")
MOST_INVALID = 0.05  # of all rows, which are left out without being asked
LISTED = 10  # rows that are named in a message
READING = 4  # raise it when the same CSV gives other targets or rows: old caches of users' files are then left aside


def molecules(
    path: str | Path,
    *,
    smiles: str | None = None,
    targets: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
    id: str | None = None,  # noqa: A002 - the user's word for it
    task: str | None = None,
    skip_invalid: bool | None = None,
    featurizer: str | Mapping[str, Any] = "molecule",
    explicit_hydrogens: bool | None = None,
    largest_fragment: bool = False,
    split_column: str | None = None,
    descriptor_columns: str | Sequence[str] = (),
    descriptors: str | Sequence[str] | None = None,
    data_dir: str | Path | None = None,
    workers: int | None = None,
) -> PackedGraphs:
    """Molecular graphs and targets from a table: CSV, a list of SMILES (.smi), SDF or Parquet, gzipped or not.

    Every graph has `x` (what `featurizer` sees of an atom), `edge_attr` (edge types, a bond may have several), `y` and
    `y_mask` (`[1, target]`; NaN and False where missing). The column `smiles` is found by its name or content.
    `targets` (one name or several) are found where there is one column of numbers, or where all are 0 and 1; columns in
    `ignore`, the `id`, indices and texts are left out. Targets of 0 and 1 are classes unless `task` says "regression".
    Classes may be words: they are numbered in sorted order and named in `classes`. `split_column` has the part of every
    molecule (train, val or test), kept as `parts`.

    Rows that RDKit cannot read are left out and listed in `skipped`. More than 5 % of them are an error, unless
    `skip_invalid` is True; if it is False, a single one is. `rows` says which row of the file each molecule came from,
    and `notes` what was found and left out.

    The featurizer "molecule" describes atoms and leaves hydrogens implicit unless `explicit_hydrogens`; "paper" is the
    published input of QM8: atomic numbers, explicit hydrogens, and `edge_weight`, the sum of six edge types.
    `largest_fragment` leaves out the rest of a salt.

    `descriptor_columns` are columns of numbers that describe a molecule as a whole; an empty cell is unknown.
    `descriptors` are computed by RDKit: "properties" (twelve, the default of "molecule"), "morgan" (the fingerprint),
    "rdkit" (208), several or "none". Graphs then have `descriptors`, `[1, descriptor]`, NaN where unknown.
    """
    path = Path(path)
    chosen = _featurizer(featurizer, explicit_hydrogens, largest_fragment, descriptors)
    options: dict[str, Any] = {
        "smiles": smiles,
        "targets": None if targets is None else names_listed(targets),
        "ignore": names_listed(ignore),
        "id": id,
        "task": task,
        "skip_invalid": skip_invalid,
    }
    options |= {"split_column": split_column} if split_column is not None else {}
    options |= {"descriptor_columns": names_listed(descriptor_columns)} if descriptor_columns else {}
    if task not in (None, *TASKS):
        raise DataError(f"there is no task {task!r}; known are {' and '.join(TASKS)}")
    if not path.is_file():
        raise DataError("there is no such file", file=path, remedy="Check the path")
    place = hashlib.sha256(
        json.dumps([READING, str(path.resolve()), options, chosen.described()]).encode()
    ).hexdigest()[:12]
    cache = writable_directory(data_dir) / "molecules" / f"{path.stem}-{place}.safetensors"
    return cached_molecules(path, cache, sha256_of(path), options, chosen, name=path.stem, workers=workers)


def _featurizer(
    name: str | Mapping[str, Any],
    explicit_hydrogens: bool | None,
    largest_fragment: bool,
    descriptors: str | Sequence[str] | None,
) -> Featurizer:
    """One by name with its options, or what a model has recorded."""
    if not isinstance(name, str):
        return featurizer_from(name)
    if name not in FEATURIZERS:
        raise DataError(f"there is no featurizer {name!r}; known are {' and '.join(FEATURIZERS)}")
    known = FEATURIZERS[name]
    explicit = known.explicit_hydrogens if explicit_hydrogens is None else explicit_hydrogens
    named = known.descriptors if descriptors is None else names_listed(descriptors)
    kinds = check_kinds([kind.strip() for text in named for kind in text.split(",")])
    return replace(known, explicit_hydrogens=explicit, largest_fragment=largest_fragment, descriptors=kinds)


def cached_molecules(
    path: Path,
    cache: Path,
    checksum: str,
    options: dict[str, Any],
    featurizer: Featurizer = PAPER,
    *,
    name: str,
    workers: int | None = None,
) -> PackedGraphs:
    """The molecules of a CSV, from its cache if that is whole and fresh; else the cache is made first."""
    origin: dict[str, Any] = {"source": checksum, "options": options}
    if featurizer != PAPER:  # which files of earlier versions do not name
        origin["featurizer"] = featurizer.described()

    def is_fresh(made_from: OriginRecord) -> bool:
        is_same = (made_from.source, made_from.options) == (checksum, options)
        return is_same and recorded_featurizer(made_from.featurizer) == featurizer

    content = read_if(cache, is_fresh)
    if content is None:
        with lock(cache):  # whoever comes second finds the cache made
            content = read_if(cache, is_fresh)
            if content is None:
                arrays, about = featurize(path, **options, featurizer=featurizer, workers=workers)
                content = arrays, origin_record(origin | about, path)
                write_cache(cache, arrays, origin | about)
    return packed_molecules(*content, name=name)


def read_packed_molecules(path: str | Path) -> PackedGraphs:
    """The molecules in a cache file, which needs neither the CSV nor RDKit."""
    return packed_molecules(*read_cache(Path(path)), name=Path(path).stem)


def featurize(
    path: Path, *, featurizer: Featurizer = PAPER, workers: int | None = None, **options: Any
) -> tuple[Arrays, dict[str, Any]]:
    """The arrays of all molecules in a table, and what is to be known about them; the options of `choose`."""
    skip_invalid = options.pop("skip_invalid")
    table = read_table(path)
    chosen = choose(table, **options)
    y, classes = read_targets(table, chosen.targets, chosen.task)
    columns = read_columns(table, chosen.descriptors)
    texts = table.column(chosen.smiles, "smiles")
    results = read_in_parallel(texts, workers, featurizer)
    skipped = [Skipped(row, result) for row, result in zip(table.rows, results, strict=True) if isinstance(result, str)]
    _check_skipped(table, skipped, skip_invalid)
    kept = [i for i, result in enumerate(results) if not isinstance(result, str)]
    found = [result for result in results if isinstance(result, Molecule)]
    arrays = concatenated(found) | {"y": y[kept], "rows": np.array(table.rows, dtype=np.int64)[kept]}
    arrays |= dict(zip(("smiles", "smiles_ptr"), joined([texts[i] for i in kept]), strict=True))
    arrays |= {"columns": columns[kept]} if chosen.descriptors else {}
    about = {
        "targets": list(chosen.targets),
        "task": chosen.task,
        "classes": classes,
        "unknown": featurizer.unknown(arrays["codes"], arrays["types"]) if featurizer.atoms else {},
        "atom_types": np.unique(arrays["atoms"]).tolist(),
        "skipped": [[row.row, row.reason] for row in skipped],
    }
    missing = missing_noted(columns[kept], chosen.descriptors)
    more = {
        "parts": [chosen.parts[i] for i in kept if chosen.parts],
        "descriptor_columns": chosen.descriptors,
        "notes": [*chosen.notes, *missing, *_notes(skipped)],
    }
    return arrays, about | {key: value for key, value in more.items() if value}


def _check_skipped(table: MoleculeTable, skipped: Sequence[Skipped], skip_invalid: bool | None) -> None:
    if len(skipped) == len(table.rows):
        reason = f" (row {skipped[0].row}: {skipped[0].reason})" if skipped else ""
        remedy = "Every row needs a valid SMILES and its targets"
        raise DataError(f"there is no usable row{reason}", file=table.path, remedy=remedy)
    allowed = {None: MOST_INVALID * len(table.rows), True: len(skipped), False: 0}[skip_invalid]
    if len(skipped) <= allowed:
        return
    more = f" (and {len(skipped) - 1} more rows)" if len(skipped) > 1 else ""
    share = "" if skip_invalid is False else f"; more than {MOST_INVALID:.0%} of all rows cannot be read"
    raise DataError(
        f"{skipped[0].reason}{more}{share}",
        file=table.path,
        row=skipped[0].row,
        remedy="Correct the rows, name the right column of SMILES, or leave such rows out with skip_invalid=True "
        "(on the command line with `--data-set skip_invalid=true`)",
    )


def _notes(skipped: Sequence[Skipped]) -> list[str]:
    """What is said of the rows that were left out."""
    if not skipped:
        return []
    listed = [f"  row {each.row}: {each.reason}" for each in skipped[:LISTED]]
    more = [f"  and {len(skipped) - LISTED} more"] if len(skipped) > LISTED else []
    count = "1 row was" if len(skipped) == 1 else f"{len(skipped)} rows were"
    return ["\n".join([f"{count} left out:", *listed, *more])]


def read_in_parallel(
    smiles: Sequence[str], workers: int | None = None, featurizer: Featurizer = PAPER, *, for_splits: bool = True
) -> list[Molecule | str]:
    """`read_smiles` on several processes, in order, with a progress bar on a terminal."""
    require("joblib", to="to read molecules in parallel")
    from joblib import Parallel, delayed

    chunks = [smiles[i : i + CHUNK] for i in range(0, len(smiles), CHUNK)]
    workers = min(workers or num_cores(), len(chunks))
    parallel = Parallel(n_jobs=max(workers, 1), return_as="generator")
    results: list[Molecule | str] = []
    read = partial(read_smiles, featurizer=featurizer, for_splits=for_splits)
    calls = [delayed(called_for)(os.getpid(), pickle.dumps(partial(read, chunk))) for chunk in chunks]
    with progress_bar("Reading molecules", len(smiles)) as advance:
        with interrupts_ignored():
            found = parallel(calls)
        for chunk in found:
            results += chunk
            advance(len(chunk))
    return results
