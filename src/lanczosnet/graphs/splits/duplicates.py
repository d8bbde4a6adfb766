"""Molecules that stand in a table more than once, and what of them leaks from training into the other parts."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from lanczosnet.graphs.packed import PackedGraphs
from lanczosnet.graphs.splits.record import Split


class Duplicates(NamedTuple):
    """How many rows repeat a molecule, and how many of a part are molecules of the training part."""

    rows: int
    val: int
    test: int


def duplicates(data: Any, split: Split) -> Duplicates | None:
    """By canonical SMILES; None where these are not known."""
    identity = data.about.get("identity") if isinstance(data, PackedGraphs) else None
    if identity is None:
        return None
    trained = identity[split.train]
    val, test = (int(torch.isin(identity[part], trained).sum()) for part in (split.val, split.test))
    return Duplicates(len(identity) - len(identity.unique()), val, test)


def duplicates_noted(data: Any, split: Split) -> list[str]:
    """What is said of them, if there are any."""
    found = duplicates(data, split)
    if found is None or not found.rows:
        return []
    rows = "1 row repeats" if found.rows == 1 else f"{found.rows:,} rows repeat"
    note = f"duplicates: {rows} a molecule of another row (by canonical SMILES)"
    parts = [(found.val, split.val, "validation"), (found.test, split.test, "test")]
    leaks = [_share(count, part, name) for count, part, name in parts if count]
    if not leaks:
        return [f"{note}; none of them leaks from the training part of this split"]
    return [f"{note}; {' and '.join(leaks)} molecules of this split are in the training part, too"]


def _share(count: int, part: Tensor, name: str) -> str:
    return f"{count:,} of {len(part):,} {name}"
