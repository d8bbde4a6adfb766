"""Which nodes or molecules are for training, validation and test: objects that can be saved, compared and cited.

A split is determined by the data set, the kind, the fraction and the seed alone. The random numbers are the raw output
of PCG64, which NumPy guarantees for ever, so a split is the same on every machine and in every version.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from lanczosnet.files import atomic_write
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.packed import PackedGraphs

PARTS = ("train", "val", "test")
VALIDATION, TEST = 500, 1000  # nodes, as in the public splits


class Splittable(Protocol):
    """What a split needs to know: PyG `Data` of one graph, or `PackedGraphs`."""

    name: str


@dataclass(frozen=True, eq=False)
class Split:
    """Sorted numbers of the training, validation and test nodes (or graphs) and what determined them."""

    dataset: str
    kind: str
    fraction: float | None
    seed: int | None
    train: Tensor
    val: Tensor
    test: Tensor

    @property
    def hash(self) -> str:
        """Sixteen hex digits that stand for the whole split in a result line."""
        return hashlib.sha256(self._canonical().encode()).hexdigest()[:16]

    def masks(self, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """The split as three boolean vectors over all `size` nodes."""
        masks = torch.zeros(len(PARTS), size, dtype=torch.bool)
        for mask, part in zip(masks, PARTS, strict=True):
            mask[getattr(self, part)] = True
        train, val, test = masks
        return train, val, test

    def save(self, path: str | Path) -> None:
        """Write the split as JSON."""
        with atomic_write(Path(path)) as temporary:
            temporary.write_text(self._canonical() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Split":
        """Read what `save` wrote."""
        try:
            fields = json.loads(Path(path).read_text(encoding="utf-8"))
            return cls(**fields | {part: torch.tensor(fields[part], dtype=torch.long) for part in PARTS})
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(
                f"not a saved split ({error})", file=path, remedy="Make the split again and save it"
            ) from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Split) and self._canonical() == other._canonical()

    def __hash__(self) -> int:
        return int(self.hash, 16)

    def __repr__(self) -> str:
        sizes = "/".join(str(len(getattr(self, part))) for part in PARTS)
        return f"Split({self.dataset}, {self.kind}, fraction={self.fraction}, seed={self.seed}, {sizes}, {self.hash})"

    def _canonical(self) -> str:
        fields = {"dataset": self.dataset, "kind": self.kind, "fraction": self.fraction, "seed": self.seed}
        return json.dumps(fields | {part: getattr(self, part).tolist() for part in PARTS}, sort_keys=True)


def split(data: Any, kind: str, *, fraction: float | None = None, seed: int = 0) -> Split:
    """Split one graph's nodes, or a set of graphs.

    | kind | training | validation and test |
    |---|---|---|
    | `public` | as published | as published |
    | `uniform` | fraction x all nodes, to the nearest number, drawn uniformly | 500 and 1,000 of the others |
    | `stratified` | ceil(fraction x class size) of every class | ceil(500 / classes) and ceil(1000 / classes) each |
    | `fraction-per-class` | ceil(fraction x class size) of every class | 500 and 1,000 of the others |
    | `20-per-class` (any number) | that many of every class | 500 and 1,000 of the others |
    | `random` | floor(fraction x all graphs), 80 % by default | half and half of the others |
    | `scaffold` | as `random`, but molecules with one Bemis-Murcko scaffold stay together, large groups first | |

    Where too few nodes are left for 500 and 1,000, a third and two thirds of them are taken. Nodes without a label
    are never drawn. The seed is ignored by `public` only.
    """
    if getattr(data, "name", None) is None:  # a PyG Data of somebody else
        data = copy(data)
        data.name = "graph"
    per_class = re.fullmatch(r"([1-9]\d*)-per-class", kind)
    name = "per-class" if per_class else kind
    if name not in KINDS:
        raise DataError(f"there is no split {kind!r}", remedy=f"For {data.name} use {_usable_kinds(data)}")
    _check_level(data, name, kind)
    make, needs_fraction, default = KINDS[name]
    fraction = default if fraction is None else fraction
    if needs_fraction and not (fraction is not None and 0 < fraction < 1):
        raise DataError(f"the split {kind!r} needs a fraction between 0 and 1, got {fraction}")
    if not needs_fraction and fraction is not None:
        raise DataError(f"the split {kind!r} takes no fraction")
    key = f"{data.name}/{kind}/{fraction}/{seed}"
    amount = int(per_class[1]) if per_class else Fraction(str(fraction)) if fraction is not None else None
    parts = make(data, amount, _Shuffle(key))
    _check(parts, data, name, kind)
    tensors = {part: torch.from_numpy(np.sort(chosen)) for part, chosen in zip(PARTS, parts, strict=True)}
    return Split(data.name, kind, fraction, None if kind == "public" else seed, **tensors)


Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


class _Shuffle:
    """Permutations that depend on a text only."""

    def __init__(self, key: str) -> None:
        self.bits = np.random.PCG64(int.from_bytes(hashlib.sha256(key.encode()).digest(), "big"))

    def __call__(self, items: np.ndarray) -> np.ndarray:
        return items[np.argsort(self.bits.random_raw(len(items)), kind="stable")]


def _public(data: Any, amount: Any, shuffle: _Shuffle) -> Parts:
    if not _has_public_split(data):
        raise DataError(f"{data.name} has no public split", remedy=f"Use {_usable_kinds(data)}")
    train, val, test = (data[f"{part}_mask"].nonzero().view(-1).numpy() for part in PARTS)
    return train, val, test


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


def _random(data: Any, fraction: Fraction, shuffle: _Shuffle) -> Parts:
    graphs = shuffle(np.arange(len(data)))
    return _fill(graphs, _sizes(len(data), fraction))


def _scaffold(data: Any, fraction: Fraction, shuffle: _Shuffle) -> Parts:
    """Whole scaffold groups, largest first, equal sizes in random order, fill training, then validation, then test."""
    scaffold = getattr(data, "scaffold", None)
    if scaffold is None:
        raise DataError(f"{data.name} has no scaffolds, which only molecules have", remedy=f"Use {_usable_kinds(data)}")
    ids, counts = np.unique(scaffold.cpu().numpy(), return_counts=True)
    order = shuffle(np.arange(len(ids)))
    order = order[np.argsort(-counts[order], kind="stable")]
    train, val, _ = _sizes(len(data), fraction)
    part_of_group, filled = np.full(len(ids), 2), [0, 0]
    for group in order:
        for part, room in enumerate((train, val)):
            if filled[part] + counts[group] <= room:
                part_of_group[group] = part
                filled[part] += counts[group]
                break
    part = part_of_group[np.searchsorted(ids, scaffold.cpu().numpy())]
    return np.flatnonzero(part == 0), np.flatnonzero(part == 1), np.flatnonzero(part == 2)


Maker = Callable[[Any, Any, _Shuffle], Parts]
# how to make it, whether it takes a fraction, the default fraction
KINDS: dict[str, tuple[Maker, bool, float | None]] = {
    "public": (_public, False, None),
    "uniform": (_uniform, True, None),
    "stratified": (_stratified, True, None),
    "fraction-per-class": (_fraction_per_class, True, None),
    "per-class": (_per_class, False, None),
    "random": (_random, True, 0.8),
    "scaffold": (_scaffold, True, 0.8),
}
OF_GRAPHS = ("random", "scaffold")  # all others are of the nodes of one graph
OF_CLASSES = ("stratified", "fraction-per-class", "per-class")


def _check_level(data: Any, name: str, kind: str) -> None:
    """A set of graphs has no nodes to draw, and the length of one graph is not its number of nodes."""
    is_set = isinstance(data, PackedGraphs)
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
        kinds = ["`random`"] + ["`scaffold`"] * ("scaffold" in data.about)
    else:
        kinds = ["`public`"] * _has_public_split(data) + ["`uniform`"]
        if _has_classes(data):
            kinds += ["`stratified`", "`fraction-per-class`", "`20-per-class` (any number)"]
    return " or ".join(filter(None, [", ".join(kinds[:-1]), kinds[-1]]))


def _has_public_split(data: Any) -> bool:
    return "train_mask" in data and "val_mask" in data


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


def _sizes(total: int, fraction: Fraction) -> tuple[int, int, int]:
    train = math.floor(fraction * total)
    val = (total - train) // 2
    return train, val, total - train - val


def _fill(items: np.ndarray, sizes: tuple[int, int, int]) -> Parts:
    train, val, _ = sizes
    return items[:train], items[train : train + val], items[train + val :]


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
    available, least = _available(data), _least(data, name)
    if available < least:
        items = "graphs" if isinstance(data, PackedGraphs) else "nodes with a label"
        return f"It needs at least {least} {items}, and there are {available}"
    if name == "scaffold":
        return "Use the split `random`: too many molecules share one scaffold"
    if name == "per-class":
        return f"Use a smaller number than {kind.removesuffix('-per-class')}"
    if name == "stratified":
        return "Use a smaller fraction, or the split `fraction-per-class`"
    return f"Use a {'larger' if empty_part == 'train' else 'smaller'} fraction"


def _available(data: Any) -> int:
    return len(data) if isinstance(data, PackedGraphs) else len(_labelled(data))


def _least(data: Any, name: str) -> int:
    """How few items can be split: one to train on (of every class), and as many as `_sizes` or `_divide` need."""
    if name in OF_GRAPHS:
        return 3
    return 3 + (len(_by_class(data)) if name in OF_CLASSES else 1)
