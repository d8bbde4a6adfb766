"""Columns of numbers in the user's table that describe a molecule as a whole."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.columns import LARGEST_FEATURE
from lanczosnet.graphs.molecules.columns import MISSING
from lanczosnet.graphs.molecules.table import MoleculeTable
from lanczosnet.schemas.record import shown

REMEDY = "Correct it, leave it empty if it is unknown, or leave the column out of the descriptor columns"


def read_columns(table: MoleculeTable, names: Sequence[str]) -> np.ndarray:
    """`[molecule, column]`, NaN where missing."""
    values = np.empty((len(table.rows), len(names)), dtype=np.float32)
    for place, name in enumerate(names):
        for i, (row, cell) in enumerate(zip(table.rows, table.column(name, "descriptor_columns"), strict=True)):
            try:
                values[i, place] = number_in(cell, name, table.number)
            except ValueError as error:
                raise DataError(str(error), file=table.path, row=row, remedy=REMEDY) from error
    return values


def number_in(cell: str, name: str, number: Callable[[str], float] = float) -> float:
    """NaN where the cell is empty; a ValueError where it holds something else than a number."""
    if cell.strip().lower() in MISSING:
        return math.nan
    try:
        value = number(cell)
    except ValueError:
        value = math.inf
    if not abs(value) <= LARGEST_FEATURE:
        kind = "too large" if math.isfinite(value) else "not a number"
        raise ValueError(f"the descriptor {name:.60} is {shown(cell)}, which is {kind}")
    return value


def missing_noted(values: np.ndarray, names: Sequence[str]) -> list[str]:
    """What is said of missing values."""
    counts = np.isnan(values).sum(0).tolist()
    missing = [f"{name} ({count:,} of {len(values):,})" for name, count in zip(names, counts, strict=True) if count]
    if not missing:
        return []
    return [f"missing descriptors: {', '.join(missing)}; the mean of the training part is used instead"]
