"""Molecules from any CSV with a SMILES column: featurised once, in parallel, then read from a cache."""

import csv
import hashlib
import json
import math
import os
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from lanczosnet._extras import require
from lanczosnet.files import lock, sha256_of
from lanczosnet.graphs.cache import read_cache, read_if, write_cache
from lanczosnet.graphs.columns import LARGEST, check_separator, csv_rows, names_listed, no_such_column
from lanczosnet.graphs.directory import writable_directory
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.featurizer import FEATURIZERS, PAPER, Featurizer, featurizer_from
from lanczosnet.graphs.molecule_arrays import Skipped, concatenated, joined, packed_molecules, recorded_featurizer
from lanczosnet.graphs.packed import PackedGraphs
from lanczosnet.graphs.progress import progress_bar
from lanczosnet.graphs.smiles import Molecule, read_smiles
from lanczosnet.processes import called_for, interrupts_ignored, num_cores
from lanczosnet.schemas.limits import check_limit
from lanczosnet.schemas.packed_molecules import OriginRecord, origin_record
from lanczosnet.schemas.record import shown

CHUNK = 512  # molecules that a worker process gets at once
TASKS = ("regression", "classification")
READING = 3  # raise it when the same CSV gives other targets or rows: old caches of users' files are then left aside
MISSING = {"", "nan", "na", "n/a", "none", "null", "?"}


def molecules(
    path: str | Path,
    *,
    smiles: str = "smiles",
    targets: str | Sequence[str] | None = None,
    task: str = "regression",
    skip_invalid: bool = False,
    featurizer: str | Mapping[str, Any] = "molecule",
    explicit_hydrogens: bool | None = None,
    largest_fragment: bool = False,
    split_column: str | None = None,
    data_dir: str | Path | None = None,
    workers: int | None = None,
) -> PackedGraphs:
    """Molecular graphs and targets from a CSV file.

    Every graph has `x` (what `featurizer` sees of an atom), `edge_attr` (edge types, a bond may have several), `y` and
    `y_mask` (`[1, target]`; NaN and False where missing). The featurizer "molecule" describes atoms and leaves
    hydrogens implicit unless `explicit_hydrogens`; "paper" is the published input of QM8: atomic numbers, explicit
    hydrogens, and `edge_weight`, the sum of six edge types. `largest_fragment` leaves out the rest of a salt.
    `targets` (one name or several) defaults to every column but the SMILES and the `split_column`, whose cells (train,
    val or test) are kept as `parts`. Classes may be words: they are numbered in
    sorted order and named in `classes`. Rows that RDKit cannot parse are an error, or are listed in `skipped` with
    `skip_invalid`; `rows` says which row of the file each molecule came from.
    """
    path = Path(path)
    names = None if targets is None else names_listed(targets)
    chosen = _featurizer(featurizer, explicit_hydrogens, largest_fragment)
    options: dict[str, Any] = {"smiles": smiles, "targets": names, "task": task, "skip_invalid": skip_invalid}
    options |= {"split_column": split_column} if split_column is not None else {}
    if task not in TASKS:
        raise DataError(f"there is no task {task!r}; known are {' and '.join(TASKS)}")
    if not path.is_file():
        raise DataError("there is no such file", file=path, remedy="Check the path")
    place = hashlib.sha256(
        json.dumps([READING, str(path.resolve()), options, chosen.described()]).encode()
    ).hexdigest()[:12]
    cache = writable_directory(data_dir) / "molecules" / f"{path.stem}-{place}.safetensors"
    return cached_molecules(path, cache, sha256_of(path), options, chosen, name=path.stem, workers=workers)


def _featurizer(name: str | Mapping[str, Any], explicit_hydrogens: bool | None, largest_fragment: bool) -> Featurizer:
    """One by name with its options, or what a model has recorded."""
    if not isinstance(name, str):
        return featurizer_from(name)
    if name not in FEATURIZERS:
        raise DataError(f"there is no featurizer {name!r}; known are {' and '.join(FEATURIZERS)}")
    known = FEATURIZERS[name]
    explicit = known.explicit_hydrogens if explicit_hydrogens is None else explicit_hydrogens
    return replace(known, explicit_hydrogens=explicit, largest_fragment=largest_fragment)


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
    path: Path,
    *,
    smiles: str,
    targets: list[str] | None,
    task: str,
    skip_invalid: bool,
    featurizer: Featurizer = PAPER,
    split_column: str | None = None,
    workers: int | None = None,
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of all molecules in a CSV, and what is to be known about them."""
    table = _read_csv(path)
    texts = table.column(smiles, "smiles")
    parts = None if split_column is None else table.column(split_column, "split_column")
    inputs = (smiles, split_column)
    names = [column for column in table.header if column not in inputs] if targets is None else targets
    if not names:
        raise DataError("there is no target column", file=path, remedy=f"Add one beside {smiles!r}")
    y, classes = _targets(table, names, task)
    results = read_in_parallel(texts, workers, featurizer)
    skipped = [Skipped(row, result) for row, result in zip(table.rows, results, strict=True) if isinstance(result, str)]
    if skipped and not skip_invalid:
        more = f" (and {len(skipped) - 1} more rows)" if len(skipped) > 1 else ""
        raise DataError(
            f"{skipped[0].reason}{more}",
            file=path,
            row=skipped[0].row,
            remedy="Correct the row, or leave such rows out with skip_invalid=True (on the command line with "
            "`--data-set skip_invalid=true`)",
        )
    kept = [i for i, result in enumerate(results) if not isinstance(result, str)]
    if not kept:
        raise DataError("there is no usable row", file=path, remedy="Every row needs a valid SMILES and its targets")
    found = [result for result in results if isinstance(result, Molecule)]
    arrays = concatenated(found) | {"y": y[kept], "rows": np.array(table.rows, dtype=np.int64)[kept]}
    arrays |= dict(zip(("smiles", "smiles_ptr"), joined([texts[i] for i in kept]), strict=True))
    about = {
        "targets": list(names),
        "task": task,
        "classes": classes,
        "unknown": featurizer.unknown(arrays["codes"]) if featurizer.atoms else {},
        "atom_types": np.unique(arrays["atoms"]).tolist(),
        "skipped": [[row.row, row.reason] for row in skipped],
        **({} if parts is None else {"parts": [parts[i] for i in kept]}),
    }
    return arrays, about


def read_in_parallel(
    smiles: Sequence[str], workers: int | None = None, featurizer: Featurizer = PAPER
) -> list[Molecule | str]:
    """`read_smiles` on several processes, in order, with a progress bar on a terminal."""
    require("joblib", to="to read molecules in parallel")
    from joblib import Parallel, delayed

    chunks = [smiles[i : i + CHUNK] for i in range(0, len(smiles), CHUNK)]
    workers = min(workers or num_cores(), len(chunks))
    parallel = Parallel(n_jobs=max(workers, 1), return_as="generator")
    results: list[Molecule | str] = []
    calls = [
        delayed(called_for)(os.getpid(), pickle.dumps(partial(read_smiles, chunk, featurizer))) for chunk in chunks
    ]
    with progress_bar("Reading molecules", len(smiles)) as advance:
        with interrupts_ignored():
            found = parallel(calls)
        for chunk in found:
            results += chunk
            advance(len(chunk))
    return results


@dataclass(frozen=True)
class _Table:
    """The cells of a CSV, as text."""

    path: Path
    header: list[str]
    rows: list[int]  # where each record stands in the file
    records: list[list[str]]

    def column(self, name: str, option: str) -> list[str]:
        if name not in self._positions:
            raise no_such_column(self.path, name, self.header, option)
        first, *others = self._positions[name]
        for other in others:
            self._check_equal(name, first, other)
        return [record[first] for record in self.records]

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        """Where the columns of each name stand."""
        positions: dict[str, list[int]] = {}
        for position, name in enumerate(self.header):
            positions.setdefault(name, []).append(position)
        return positions

    def _check_equal(self, name: str, first: int, other: int) -> None:
        """Columns of one name must hold the same, as the four that MoleculeNet's QM8 repeats do."""
        for row, record in zip(self.rows, self.records, strict=True):
            if record[first] != record[other]:
                raise DataError(
                    f"two columns are named {shown(name)} and differ: {record[first]!r:.60} and {record[other]!r:.60}",
                    file=self.path,
                    row=row,
                    remedy="Give each column a name of its own",
                )


def _read_csv(path: Path) -> _Table:
    try:
        (_, header), *found = list(csv_rows(path)) or [(1, [])]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"not a CSV text file ({error})", file=path, remedy="Save it as CSV in UTF-8") from error
    check_separator(path, header)
    check_limit("COLUMNS", len(header), f"{path}: columns")
    if not found:
        raise DataError("the file has no rows", file=path, remedy="It needs a header and one row per molecule")
    for row, record in found:
        if len(record) != len(header):
            raise DataError(
                f"{len(record)} cells under {len(header)} columns",
                file=path,
                row=row,
                remedy="The file may be truncated, or a cell with a comma may lack its quotes",
            )
    return _Table(path, header, [row for row, _ in found], [record for _, record in found])


def _targets(table: _Table, names: list[str], task: str) -> tuple[np.ndarray, list[list[str]]]:
    """Targets `[molecule, target]` with NaN where missing, and the names of each target's classes."""
    columns = [table.column(name, "targets") for name in names]
    if task == "regression":
        return np.stack([_numbers(table, name, cells) for name, cells in zip(names, columns, strict=True)], axis=1), []
    coded = [_classes(table.path, name, cells) for name, cells in zip(names, columns, strict=True)]
    return np.stack([codes for codes, _ in coded], axis=1), [classes for _, classes in coded]


def _numbers(table: _Table, name: str, cells: list[str]) -> np.ndarray:
    numbers = [_number(table.path, name, row, cell) for row, cell in zip(table.rows, cells, strict=True)]
    return np.array(numbers, dtype=np.float32)


def _number(path: Path, name: str, row: int, cell: str) -> float:
    if cell.strip().lower() in MISSING:
        return math.nan
    try:
        number = float(cell)
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        raise DataError(
            f"{name:.60} is {shown(cell)}, which is not a number",
            file=path,
            row=row,
            remedy="Correct it, leave it empty if it is unknown, name the target columns with targets=[...], "
            "or pass task='classification' if these are classes",
        )
    if abs(number) > LARGEST:
        raise DataError(
            f"{name:.60} is {shown(cell)}, which is too large",
            file=path,
            row=row,
            remedy=f"Numbers reach {LARGEST:.1e}: use another unit, or a logarithm",
        )
    return number


def _classes(path: Path, name: str, cells: list[str]) -> tuple[np.ndarray, list[str]]:
    known = [cell.strip() for cell in cells]
    classes = sorted({cell for cell in known if cell.lower() not in MISSING}, key=_class_order)
    check_limit("CLASSES", len(classes), f"{path}: classes of {shown(name)}")
    code = {name: i for i, name in enumerate(classes)}
    return np.array([code.get(cell, math.nan) for cell in known], dtype=np.float32), classes


def _class_order(name: str) -> tuple[int, float, str]:
    """Numbers by value, then words by letter."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
