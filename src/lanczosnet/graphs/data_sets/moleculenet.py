"""MoleculeNet and Peptides-func by name, with their customary targets, metric and split."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lanczosnet.files.json_text import parsed_json
from lanczosnet.graphs.data_sets.download import available
from lanczosnet.graphs.data_sets.molecule_sets import MOLECULE_FILES, MOLECULE_SETS, MoleculeSet
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.molecules.loading import molecules
from lanczosnet.graphs.molecules.table import read_table
from lanczosnet.graphs.packed import PackedGraphs


def moleculenet(name: str, *, data_dir: str | Path | None = None, **options: Any) -> PackedGraphs:
    """The molecules of a published set; the options are those of `molecules`."""
    known = MOLECULE_SETS[name]
    path = available(MOLECULE_FILES[name], name, data_dir)
    taken: dict[str, Any] = {
        "smiles": known.smiles,
        "targets": _targets(known, path),
        "task": known.task,
        "skip_invalid": True,
    }
    graphs = molecules(path, data_dir=data_dir, **taken | options)
    about: dict[str, Any] = {"metric": known.metric, "default_split": known.split} if "task" not in options else {}
    if known.split == "column":
        about["parts"] = _official_parts(path, graphs.rows.tolist())
    return replace(graphs, name=name, about=graphs.about | about)


def _targets(known: MoleculeSet, path: Path) -> list[str]:
    return list(known.targets) or [name for name in read_table(path).header if name != known.smiles]


def _official_parts(path: Path, rows: Sequence[int]) -> tuple[str, ...]:
    """The part of every molecule, by the lists of positions (from 0) in `split.json` beside the table."""
    file = path.with_name("split.json")
    try:
        lists = parsed_json(file.read_text(encoding="utf-8"))
        part_of = {int(item): part for part in ("train", "val", "test") for item in lists[part]}
    except (OSError, ValueError, TypeError, KeyError) as error:
        remedy = "Place the official split there: JSON with lists train, val and test of row numbers from 0"
        raise DataError(f"there is no split that can be read ({error})", file=file, remedy=remedy) from error
    return tuple(part_of.get(row - 2, "") for row in rows)
