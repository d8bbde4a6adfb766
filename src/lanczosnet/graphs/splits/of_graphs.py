"""Parts of a set of graphs: at random, by class, by scaffold.

Numbers of graphs are shuffled by the caller's function, which alone is random.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.splits.kinds import Parts

Shuffle = Callable[[np.ndarray], np.ndarray]
SCAFFOLDS = ("scaffold", "scaffold-balanced")


def random_parts(data: Any, fraction: Fraction, shuffle: Shuffle) -> Parts:
    graphs = shuffle(np.arange(len(data)))
    return _fill(graphs, _sizes(len(data), fraction))


def stratified_parts(data: Any, fraction: Fraction, shuffle: Shuffle) -> Parts:
    """The shares of `random` within every class."""
    classes = [shuffle(graphs) for graphs in _by_class(data)]
    parts = zip(*(_fill(graphs, _sizes(len(graphs), fraction)) for graphs in classes), strict=True)
    train, val, test = map(np.concatenate, parts)
    return train, val, test


def _by_class(data: Any) -> list[np.ndarray]:
    """By their one target; graphs without a known class count as one class."""
    y = data.graph.get("y")
    if data.about.get("task") != "classification" or y is None or y[0].numel() != 1:
        raise DataError(
            f"{data.name} cannot be stratified: it has not one target of classes", remedy="Use the split `random`"
        )
    labels = y.view(-1).cpu().nan_to_num(-1).numpy()
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def scaffold_parts(data: Any, fraction: Fraction, shuffle: Shuffle) -> Parts:
    """Whole scaffold groups, largest first, equal sizes in random order, fill training, then validation, then test."""
    groups, counts = _scaffold_groups(data)
    order = shuffle(np.arange(len(counts)))
    order = order[np.argsort(-counts[order], kind="stable")]
    return _fill_groups(groups, counts, order, _sizes(len(data), fraction))


def balanced_scaffold_parts(data: Any, fraction: Fraction, shuffle: Shuffle) -> Parts:
    """As chemprop's: groups of more than half the validation or test part come first, where there is room for them.

    All others come in random order, so that every part has common scaffolds and rare ones, and every seed others.
    """
    groups, counts = _scaffold_groups(data)
    sizes = _sizes(len(data), fraction)
    order = shuffle(np.arange(len(counts)))
    is_big = counts[order] * 2 > min(sizes[1:])
    return _fill_groups(groups, counts, np.concatenate([order[is_big], order[~is_big]]), sizes)


def _scaffold_groups(data: Any) -> tuple[np.ndarray, np.ndarray]:
    """The number of every molecule's group, and the sizes of the groups."""
    scaffold = getattr(data, "scaffold", None)
    if scaffold is None:
        raise DataError(f"{data.name} has no scaffolds, which only molecules have", remedy="Use `random`")
    _, groups, counts = np.unique(scaffold.cpu().numpy(), return_inverse=True, return_counts=True)
    return groups, counts


def _fill_groups(groups: np.ndarray, counts: np.ndarray, order: np.ndarray, sizes: tuple[int, int, int]) -> Parts:
    """Each group, in this order, goes to the first part that has room for it; what fits nowhere is for the test."""
    part_of_group, filled = np.full(len(counts), 2), [0, 0]
    for group in order:
        for part, room in enumerate(sizes[:2]):
            if filled[part] + counts[group] <= room:
                part_of_group[group] = part
                filled[part] += counts[group]
                break
    part = part_of_group[groups]
    return np.flatnonzero(part == 0), np.flatnonzero(part == 1), np.flatnonzero(part == 2)


def _sizes(total: int, fraction: Fraction) -> tuple[int, int, int]:
    train = math.floor(fraction * total)
    val = (total - train) // 2
    return train, val, total - train - val


def _fill(items: np.ndarray, sizes: tuple[int, int, int]) -> Parts:
    train, val, _ = sizes
    return items[:train], items[train : train + val], items[train + val :]
