"""Which columns of a table hold the molecules and the targets: detected if unambiguous, else an error asks for them."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from lanczosnet._extras import MissingExtraError
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.molecules.table import MoleculeTable, format_of, read_head

MISSING = {"", "nan", "na", "n/a", "none", "null", "?"}
TRIED = 20  # cells that decide whether a column holds SMILES
FEW = 20  # different words that may be classes
ID_NAMES = {"id", "idx", "index", "#", "cid", "sid", "cas"}
COUNTED = 20  # whole numbers that rise from row to row count the rows, if there are so many

Kind = Literal["empty", "index", "rising", "0/1", "numbers", "words", "text"]


class UnclearColumnsError(DataError):
    """Several columns may be meant; `candidates` are their names."""

    def __init__(self, problem: str, table: MoleculeTable, candidates: Sequence[str]) -> None:
        super().__init__(problem, file=table.path)
        self.candidates = list(candidates)


@dataclass(frozen=True)
class Look:
    """What a column looks like."""

    name: str
    kind: Kind
    about: str


def smiles_column(table: MoleculeTable, name: str | None) -> str:
    """The column of SMILES: the one that is named, or called so, or holds such texts."""
    if name is not None:
        return name
    for called in (_is_smiles, _has_smiles):
        found = list(dict.fromkeys(column for column in table.header if called(column)))
        if len(found) == 1:
            return found[0]
        if found:
            several = f"several columns may hold SMILES: {', '.join(found)}. Name one: smiles='...'"
            raise UnclearColumnsError(several, table, found)
    found = [column for column in dict.fromkeys(table.header) if _holds_smiles(table.column(column, "smiles"))]
    if len(found) == 1:
        return found[0]
    raise DataError(
        "there is no column of SMILES",
        file=table.path,
        remedy=f"The columns are {', '.join(table.header)}; name one: smiles='...'",
    )


def _plain(name: str) -> str:
    return re.sub(r"[\s_\-.]+", "", name.lower())


def _is_smiles(name: str) -> bool:
    return _plain(name) == "smiles"


def _has_smiles(name: str) -> bool:
    return "smiles" in _plain(name) or _plain(name) == "smi"


def is_called_smiles(names: Collection[str]) -> bool:
    """Whether a table with these columns holds molecules."""
    return any(_has_smiles(name) for name in names)


def holds_molecules(path: Path) -> bool:
    """Whether a file is of molecules alone, or a table with a column called SMILES or full of them."""
    if format_of(path) in (".smi", ".smiles", ".sdf"):
        return True
    head = read_head(path, TRIED)
    if head is None or is_called_smiles(head.header):
        return head is not None
    try:
        return any(_holds_smiles(head.column(name, "smiles")) for name in head.header)
    except (DataError, MissingExtraError):  # columns of one name, or no RDKit
        return False


def _holds_smiles(cells: Sequence[str]) -> bool:
    """Texts that RDKit reads, of which at least half are not plain words."""
    from lanczosnet.graphs.molecules.smiles import rdkit

    known = [cell.strip() for cell in cells if cell.strip()][:TRIED]
    if not known or sum(bool(re.search(r"[()=#\[\]]|[a-zA-Z]\d", cell)) for cell in known) * 2 < len(known):
        return False
    chem = rdkit()
    return all(chem.MolFromSmiles(cell, sanitize=False) is not None for cell in known)


def named(table: MoleculeTable, names: Sequence[str]) -> list[str]:
    """Columns by their names; a name that no column has is read as several with commas between them."""
    found = []
    for name in names:
        found += [name] if name in table.header else [part.strip() for part in name.split(",")]
    return found


def look(table: MoleculeTable, name: str) -> Look:
    """What a column looks like, as its kind and in words."""
    cells = [cell.strip() for cell in table.column(name, "targets")]
    known = [cell for cell in cells if cell.lower() not in MISSING]
    numbers = [number for cell in known if (number := _number(table, cell)) is not None]
    words = sorted(set(known))
    missing = f", {len(cells) - len(known)} missing" if len(known) < len(cells) else ""
    if not known:
        return Look(name, "empty", "empty")
    if _is_index_name(name):
        return Look(name, "index", f"an index, {known[0]} to {known[-1]}")
    if len(numbers) == len(cells) >= COUNTED and _counts(numbers):
        return Look(name, "rising", f"whole numbers that rise from row to row, {known[0]} to {known[-1]}")
    if len(numbers) == len(known) and set(numbers) == {0.0, 1.0}:
        return Look(name, "0/1", f"0 and 1, {numbers.count(1.0)} of {len(numbers)} are 1{missing}")
    if 2 * len(numbers) >= len(known):
        return Look(name, "numbers", f"numbers, {min(numbers):.4g} to {max(numbers):.4g}{missing}")
    if len(words) <= min(FEW, len(known) // 2):
        return Look(name, "words", f"{len(words)} words: {', '.join(words[:3])}{', ...' if len(words) > 3 else ''}")
    return Look(name, "text", f"text, such as {known[0][:30]!r}")


def _number(table: MoleculeTable, cell: str) -> float | None:
    try:
        return table.number(cell)
    except ValueError:
        return None


def _counts(numbers: Sequence[float]) -> bool:
    return all(b > a and b.is_integer() for a, b in pairwise(numbers))


def _is_index_name(name: str) -> bool:
    words = re.split(r"[\s_\-]+", name.strip().lower())
    return not name.strip() or name.startswith("Unnamed:") or words[-1] in ID_NAMES


def choose_targets(table: MoleculeTable, taken: Collection[str]) -> tuple[list[str], list[Look]]:
    """The columns that are to be learnt, where this is clear, and those that are left out."""
    looks = [look(table, name) for name in dict.fromkeys(table.header) if name not in taken]
    for kinds in (("0/1", "numbers"), ("rising",), ("words",), ("text",)):
        found = [candidate for candidate in looks if candidate.kind in kinds]
        if found and (len(found) == 1 or all(candidate.kind == "0/1" for candidate in found)):
            return [candidate.name for candidate in found], [other for other in looks if other not in found]
        if found:
            raise _unclear(table, looks, found)
    remedy = "Add one beside the SMILES, or name it: targets=[...]"
    raise DataError(f"there is no target column{_listed(looks)}", file=table.path, remedy=remedy)


def _unclear(table: MoleculeTable, looks: Sequence[Look], found: Sequence[Look]) -> UnclearColumnsError:
    return UnclearColumnsError(
        f"it is not clear which of {len(found)} columns are targets. Name them: targets=[...]{_listed(looks)}",
        table,
        [candidate.name for candidate in found],
    )


def _listed(looks: Sequence[Look]) -> str:
    """A line for every column."""
    if not looks:
        return ""
    width = max(len(each.name) for each in looks)
    return ":\n" + "".join(f"  {each.name:<{width}}  {each.about}\n" for each in looks).rstrip()


def task_of_columns(table: MoleculeTable, names: Sequence[str]) -> str:
    """Classes where all columns are 0 and 1 or words; numbers else."""
    kinds = {name: look(table, name).kind for name in names}
    classes = [name for name, kind in kinds.items() if kind in ("0/1", "words")]
    if classes and len(classes) < len(names):
        others = ", ".join(name for name in names if name not in classes)
        raise DataError(
            f"some targets are classes ({', '.join(classes)}), others numbers ({others})",
            file=table.path,
            remedy="Train them apart with targets=[...], or pass task='regression'",
        )
    return "classification" if classes else "regression"


@dataclass(frozen=True)
class Choice:
    """The columns that are used, and what is said about it."""

    smiles: str
    targets: list[str]
    task: str
    parts: list[str]  # of the split column, if there is one
    descriptors: list[str]
    notes: list[str]


def choose(
    table: MoleculeTable,
    *,
    smiles: str | None,
    targets: Sequence[str] | None,
    task: str | None,
    ignore: Sequence[str] = (),
    id: str | None = None,  # noqa: A002 - the user's word for it
    split_column: str | None = None,
    descriptor_columns: Sequence[str] = (),
) -> Choice:
    """What the options say, and what is clear where they say nothing."""
    smiles = smiles_column(table, smiles)
    descriptors = list(dict.fromkeys(named(table, descriptor_columns)))
    for name in descriptors:
        table.column(name, "descriptor_columns")
    others = [*named(table, ignore), *filter(None, [id, split_column]), *descriptors]
    for name in (smiles, *others):
        table.column(name, "smiles" if name == smiles else "ignore")
    parts = [] if split_column is None else table.column(split_column, "split_column")
    notes = []
    if targets is None:
        names, left_out = choose_targets(table, {smiles, *others})
        notes += _said(names, left_out)
    else:
        names = named(table, targets)
        for name in names:
            table.column(name, "targets")
    found = task or task_of_columns(table, names)
    if found == "classification" and task is None:
        notes.append(f"{', '.join(names)}: treated as classes; for numbers pass task='regression'")
    _check_apart(table, descriptors, [smiles, *names])
    return Choice(smiles, names, found, parts, descriptors, notes)


def _check_apart(table: MoleculeTable, descriptors: Sequence[str], others: Sequence[str]) -> None:
    """Targets must not be inputs."""
    for name in descriptors:
        if name in others:
            raise DataError(
                f"the descriptor column {name!r} is the column of SMILES or a target",
                file=table.path,
                remedy="Leave it out of the descriptor columns",
            )


def _said(names: Sequence[str], left_out: Sequence[Look]) -> list[str]:
    others = [f"{each.name or 'the nameless column'} ({each.about})" for each in left_out]
    return [f"target: {', '.join(names)}" + (f"; left out: {'; '.join(others)}" if others else "")]
