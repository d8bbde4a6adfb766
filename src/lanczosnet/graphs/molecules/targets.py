"""Targets of molecules: numbers, or classes by their names."""

import math

import numpy as np

from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.columns import LARGEST
from lanczosnet.graphs.molecules.columns import MISSING
from lanczosnet.graphs.molecules.table import MoleculeTable
from lanczosnet.schemas.limits import check_limit
from lanczosnet.schemas.record import shown


def read_targets(table: MoleculeTable, names: list[str], task: str) -> tuple[np.ndarray, list[list[str]]]:
    """Targets `[molecule, target]` with NaN where missing, and the names of each target's classes."""
    columns = [table.column(name, "targets") for name in names]
    if task == "regression":
        return np.stack([_numbers(table, name, cells) for name, cells in zip(names, columns, strict=True)], axis=1), []
    coded = [_classes(table, name, cells) for name, cells in zip(names, columns, strict=True)]
    return np.stack([codes for codes, _ in coded], axis=1), [classes for _, classes in coded]


def _numbers(table: MoleculeTable, name: str, cells: list[str]) -> np.ndarray:
    numbers = [_number_of(table, name, row, cell) for row, cell in zip(table.rows, cells, strict=True)]
    return np.array(numbers, dtype=np.float32)


def _number_of(table: MoleculeTable, name: str, row: int, cell: str) -> float:
    if cell.strip().lower() in MISSING:
        return math.nan
    try:
        number = table.number(cell)
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        raise DataError(
            f"{name:.60} is {shown(cell)}, which is not a number",
            file=table.path,
            row=row,
            remedy="Correct it, leave it empty if it is unknown, name the target columns with targets=[...], "
            "or pass task='classification' if these are classes",
        )
    if abs(number) > LARGEST:
        raise DataError(
            f"{name:.60} is {shown(cell)}, which is too large",
            file=table.path,
            row=row,
            remedy=f"Numbers reach {LARGEST:.1e}: use another unit, or a logarithm",
        )
    return number


def _classes(table: MoleculeTable, name: str, cells: list[str]) -> tuple[np.ndarray, list[str]]:
    known = [cell.strip() for cell in cells]
    classes = sorted({cell for cell in known if cell.lower() not in MISSING}, key=_class_order)
    check_limit("CLASSES", len(classes), f"{table.path}: classes of {shown(name)}")
    code = {known: i for i, known in enumerate(classes)}
    return np.array([code.get(cell, math.nan) for cell in known], dtype=np.float32), classes


def _class_order(name: str) -> tuple[int, float, str]:
    """Numbers by value, then words by letter."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
