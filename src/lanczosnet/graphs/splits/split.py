"""Which nodes or molecules are for training, validation and test: objects that can be saved, compared and cited.

A split is determined by the data set, the kind, the fraction and the seed alone. The random numbers are the raw output
of PCG64, which NumPy guarantees for ever, so a split is the same on every machine and in every version.
"""

import hashlib
import math
import re
from collections.abc import Callable
from copy import copy
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.packed import PackedGraphs
from lanczosnet.graphs.splits.kinds import (
    MASKS,
    Parts,
    check_folds,
    check_shares,
    fold_parts,
    num_public_splits,
    public_parts,
    share_parts,
)
from lanczosnet.graphs.splits.of_graphs import (
    SCAFFOLDS,
    balanced_scaffold_parts,
    random_parts,
    scaffold_parts,
    stratified_parts,
)
from lanczosnet.graphs.splits.record import PARTS, Split

VALIDATION, TEST = 500, 1000  # nodes, as in the public splits


def split(
    data: Any,
    kind: str,
    *,
    fraction: float | None = None,
    seed: int = 0,
    mask: int | None = None,
    folds: int | None = None,
    fold: int = 0,
) -> Split:
    """Split one graph's nodes, or a set of graphs.

    | kind | training | validation and test |
    |---|---|---|
    | `public` | as published; number `mask` of several | as published |
    | `uniform` | fraction x all nodes, to the nearest number, drawn uniformly | 500 and 1,000 of the others |
    | `stratified` | ceil(fraction x class size) of every class | ceil(500 / classes) and ceil(1000 / classes) each |
    | `fraction-per-class` | ceil(fraction x class size) of every class | 500 and 1,000 of the others |
    | `20-per-class` (any number) | that many of every class | 500 and 1,000 of the others |
    | `random` | floor(fraction x all graphs), 80 % by default | half and half of the others |
    | `stratified` of graphs | as `random` within every class of their one target | |
    | `scaffold` | as `random`, but molecules with one Bemis-Murcko scaffold stay together, large groups first | |
    | `scaffold-balanced` | the same, but the seed orders all groups of at most half a part | |
    | `k-fold` with `folds=5`, or `5-fold` | all folds but two | the fold after `fold`; number `fold` |
    | `48/32/20` (any percents) | 48 % of all items | 32 % and 20 % |

    Where too few nodes are left for 500 and 1,000, a third and two thirds of them are taken. Nodes without a label
    are never drawn. Folds have equal shares of every class of nodes. The seed is ignored by `public` only.
    """
    if getattr(data, "name", None) is None:  # a PyG Data of somebody else
        data = copy(data)
        data.name = "graph"
    if kind == "k-fold":
        kind = f"{check_folds(folds, fold)}-fold"
    name = next((name for name, pattern in FAMILIES.items() if re.fullmatch(pattern, kind)), kind)
    if name not in KINDS or kind in FAMILIES:
        raise DataError(f"there is no split {kind!r}", remedy=f"For {data.name} use {_usable_kinds(data)}")
    _check_level(data, name, kind)
    kinds = GRAPH_KINDS if isinstance(data, PackedGraphs) and name in GRAPH_KINDS else KINDS
    make, needs_fraction, default = kinds[name]
    fraction = default if fraction is None else fraction
    _check_options(name, kind, needs_fraction, fraction, mask, folds is not None or fold != 0)
    key = f"{data.name}/{kind}/{fraction}/{seed}"
    parts = make(data, _amount(name, kind, fraction, mask, fold), _Shuffle(key))
    _check(parts, data, name, kind)
    tensors = {part: torch.from_numpy(np.sort(chosen)) for part, chosen in zip(PARTS, parts, strict=True)}
    number = {"public": mask, "k-fold": fold}.get(name)
    return Split(data.name, kind, fraction, None if kind == "public" else seed, **tensors, number=number)


def public_splits(data: Any) -> list[Split]:
    """All public splits, in their order."""
    count = 0 if isinstance(data, PackedGraphs) else num_public_splits(data)
    return [split(data, "public", mask=mask) for mask in range(count)] if count > 1 else [split(data, "public")]


def _check_options(
    name: str, kind: str, needs_fraction: bool, fraction: float | None, mask: int | None, has_folds: bool
) -> None:
    if needs_fraction and not (fraction is not None and 0 < fraction < 1):
        raise DataError(f"the split {kind!r} needs a fraction between 0 and 1, got {fraction}")
    if not needs_fraction and fraction is not None:
        raise DataError(f"the split {kind!r} takes no fraction")
    if mask is not None and name != "public":
        raise DataError(f"the split {kind!r} takes no mask", remedy="Use the split `public`")
    if has_folds and name != "k-fold":
        raise DataError(f"the split {kind!r} takes no folds", remedy="Use the split `k-fold`")


# Kinds with numbers in their names.
FAMILIES = {"per-class": r"[1-9]\d*-per-class", "k-fold": r"[1-9]\d*-fold", "shares": r"\d+/\d+/\d+"}


def _amount(name: str, kind: str, fraction: float | None, mask: int | None, fold: int) -> Any:
    """What the function of a kind needs to know."""
    if name == "public":
        return mask
    if name == "per-class":
        return int(kind.removesuffix("-per-class"))
    if name == "k-fold":
        return check_folds(int(kind.removesuffix("-fold")), fold), fold
    return check_shares(kind) if name == "shares" else Fraction(str(fraction))


class _Shuffle:
    """Permutations that depend on a text only."""

    def __init__(self, key: str) -> None:
        self.bits = np.random.PCG64(int.from_bytes(hashlib.sha256(key.encode()).digest(), "big"))

    def __call__(self, items: np.ndarray) -> np.ndarray:
        return items[np.argsort(self.bits.random_raw(len(items)), kind="stable")]


def _public(data: Any, mask: int | None, shuffle: _Shuffle) -> Parts:
    if not num_public_splits(data):
        raise DataError(f"{data.name} has no public split", remedy=f"Use {_usable_kinds(data)}")
    return public_parts(data, mask)


def _k_fold(data: Any, amount: tuple[int, int], shuffle: _Shuffle) -> Parts:
    of_nodes = not isinstance(data, PackedGraphs) and _has_classes(data) and data.y.dim() == 1
    return fold_parts(shuffle(_items(data)), data.y.numpy() if of_nodes else None, *amount)


def _shares(data: Any, shares: tuple[int, int, int], shuffle: _Shuffle) -> Parts:
    return share_parts(shuffle(_items(data)), shares)


def _uniform(data: Any, fraction: Fraction, shuffle: _Shuffle) -> Parts:
    nodes = shuffle(_labelled(data))
    train = max(1, math.floor(fraction * data.num_nodes + Fraction(1, 2)))  # halves up
    return _divide(nodes[:train], nodes[train:])


def _fraction_per_class(data: Any, fraction: Fraction, shuffle: _Shuffle) -> Parts:
    train, rest = _share_of_classes(data, fraction, shuffle)
    return _divide(train, shuffle(np.concatenate(rest)))


def _stratified(data: Any, fraction: Fraction, shuffle: _Shuffle) -> Parts:
    train, rest = _share_of_classes(data, fraction, shuffle)
    val, rest = _take(rest, [math.ceil(min(VALIDATION, len(np.concatenate(rest)) // 3) / len(rest))] * len(rest))
    test, _ = _take(rest, [math.ceil(TEST / len(rest))] * len(rest))
    return train, val, test


def _per_class(data: Any, amount: int, shuffle: _Shuffle) -> Parts:
    classes = [shuffle(nodes) for nodes in _by_class(data)]
    train, rest = _take(classes, [amount] * len(classes))
    return _divide(train, shuffle(np.concatenate(rest)))


Maker = Callable[[Any, Any, _Shuffle], Parts]
# how to make it, whether it takes a fraction, the default fraction
KINDS: dict[str, tuple[Maker, bool, float | None]] = {
    "public": (_public, False, None),
    "uniform": (_uniform, True, None),
    "stratified": (_stratified, True, None),
    "fraction-per-class": (_fraction_per_class, True, None),
    "per-class": (_per_class, False, None),
    "k-fold": (_k_fold, False, None),
    "shares": (_shares, False, None),
    "random": (random_parts, True, 0.8),
    "scaffold": (scaffold_parts, True, 0.8),
    "scaffold-balanced": (balanced_scaffold_parts, True, 0.8),
}
GRAPH_KINDS: dict[str, tuple[Maker, bool, float | None]] = {"stratified": (stratified_parts, True, 0.8)}
OF_GRAPHS = ("random", *SCAFFOLDS)
OF_BOTH = ("k-fold", "shares")  # all others are of the nodes of one graph
OF_CLASSES = ("stratified", "fraction-per-class", "per-class")


def _check_level(data: Any, name: str, kind: str) -> None:
    """A set of graphs has no nodes to draw, and the length of one graph is not its number of nodes."""
    is_set = isinstance(data, PackedGraphs)
    if name in OF_BOTH or (is_set and name in GRAPH_KINDS):
        return
    if is_set and name not in OF_GRAPHS:
        problem = f"the split {kind!r} is for the nodes of one graph, but {data.name} is a set of graphs"
    elif not is_set and name in OF_GRAPHS:
        problem = f"the split {kind!r} is for sets of graphs such as molecules, but {data.name} is one graph"
    else:
        return
    raise DataError(problem, remedy=f"Use {_usable_kinds(data)}")


def _usable_kinds(data: Any) -> str:
    """The kinds that this data can be split by, for messages."""
    if isinstance(data, PackedGraphs):
        kinds = ["`random`"] + [f"`{kind}`" for kind in SCAFFOLDS if "scaffold" in data.about]
    else:
        kinds = ["`public`"] * _has_public_split(data) + ["`uniform`"]
        if _has_classes(data):
            kinds += ["`stratified`", "`fraction-per-class`", "`20-per-class` (any number)"]
    return " or ".join(filter(None, [", ".join(kinds[:-1]), kinds[-1]]))


def _has_public_split(data: Any) -> bool:
    return all(key in data for key in MASKS)


def _has_classes(data: Any) -> bool:
    return data.y is not None and not data.y.is_floating_point()


def _labelled(data: Any) -> np.ndarray:
    return np.flatnonzero(data.labelled.numpy()) if "labelled" in data else np.arange(data.num_nodes)


def _by_class(data: Any) -> list[np.ndarray]:
    if not _has_classes(data):
        reason = "has no labels" if data.y is None else "has numbers, not classes, as labels"
        raise DataError(f"{data.name} {reason}", remedy=f"Use {_usable_kinds(data)}")
    nodes = _labelled(data)
    labels = data.y.numpy()[nodes]
    return [nodes[labels == label] for label in np.unique(labels)]


def _share_of_classes(data: Any, fraction: Fraction, shuffle: _Shuffle) -> tuple[np.ndarray, list[np.ndarray]]:
    classes = [shuffle(nodes) for nodes in _by_class(data)]
    return _take(classes, [math.ceil(fraction * len(nodes)) for nodes in classes])


def _take(classes: list[np.ndarray], amounts: list[int]) -> tuple[np.ndarray, list[np.ndarray]]:
    taken = [nodes[:amount] for nodes, amount in zip(classes, amounts, strict=True)]
    return np.concatenate(taken), [nodes[amount:] for nodes, amount in zip(classes, amounts, strict=True)]


def _divide(train: np.ndarray, rest: np.ndarray) -> Parts:
    enough = len(rest) >= VALIDATION + TEST
    val, test = (VALIDATION, TEST) if enough else (len(rest) // 3, len(rest) - len(rest) // 3)
    return train, rest[:val], rest[val : val + test]


def _check(parts: Parts, data: Any, name: str, kind: str) -> None:
    for part, chosen in zip(PARTS, parts, strict=True):
        if len(chosen) == 0:
            raise DataError(
                f"the split {kind!r} leaves no {part} items of {data.name}", remedy=_remedy(data, name, kind, part)
            )


def _remedy(data: Any, name: str, kind: str, empty_part: str) -> str:
    """What helps against an empty part: a smaller fraction only if there are items enough."""
    if name == "public":
        return "Correct its masks, or use another split"
    available, least = len(_items(data)), _least(data, name)
    if available < least:
        items = "graphs" if isinstance(data, PackedGraphs) else "nodes with a label"
        return f"It needs at least {least} {items}, and there are {available}"
    if name in SCAFFOLDS:
        return "Use the split `random`: too many molecules share one scaffold"
    if name == "per-class":
        return f"Use a smaller number than {kind.removesuffix('-per-class')}"
    if name in OF_BOTH:
        return "Use fewer folds" if name == "k-fold" else f"Use a larger share for {empty_part}"
    if name == "stratified" and not isinstance(data, PackedGraphs):
        return "Use a smaller fraction, or the split `fraction-per-class`"
    return f"Use a {'larger' if empty_part == 'train' else 'smaller'} fraction"


def _items(data: Any) -> np.ndarray:
    return np.arange(len(data)) if isinstance(data, PackedGraphs) else _labelled(data)


def _least(data: Any, name: str) -> int:
    """How few items can be split: one to train on (of every class), and as many as `_sizes` or `_divide` need."""
    if name in OF_GRAPHS + OF_BOTH or isinstance(data, PackedGraphs):
        return 3
    return 3 + (len(_by_class(data)) if name in OF_CLASSES else 1)
