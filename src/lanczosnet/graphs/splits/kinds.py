"""Parts of a split that need no random choice of sizes: public masks, folds, and shares such as 48/32/20.

Everything here works on NumPy arrays of item numbers, where an item is a node or a graph.
"""

from typing import Any

import numpy as np
from torch import Tensor

from lanczosnet.graphs.errors import DataError

Parts = tuple[np.ndarray, np.ndarray, np.ndarray]

MASKS = ("train_mask", "val_mask", "test_mask")


def num_public_splits(data: Any) -> int:
    """How many splits the masks `[node]` or `[node, split]` of a PyG `Data` hold; 0 without masks.

    A mask `[node]` beside masks `[node, split]` belongs to all of these splits.
    """
    if not all(key in data for key in MASKS):
        return 0
    counts = {_num_columns(data, key) for key in MASKS} - {1}
    if len(counts) > 1:
        shapes = ", ".join(f"{key} {tuple(data[key].shape)}" for key in MASKS)
        raise DataError(f"the masks of {data.name} have different numbers of splits: {shapes}")
    return max(counts, default=1)


def public_parts(data: Any, mask: int | None) -> Parts:
    """The nodes of the public split, or of number `mask` where there are several."""
    count = num_public_splits(data)
    if mask is None and count > 1:
        raise DataError(f"{data.name} has {count} public splits", remedy=f"Choose one: mask=0 to mask={count - 1}")
    if mask is not None and not 0 <= mask < count:
        raise DataError(f"{data.name} has no public split {mask}", remedy=f"The numbers are 0 to {count - 1}")
    train, val, test = (_column(data[key], mask or 0).nonzero().view(-1).cpu().numpy() for key in MASKS)
    return train, val, test


def _num_columns(data: Any, key: str) -> int:
    mask = data[key]
    if mask.dim() in (1, 2) and len(mask) == data.num_nodes and mask.numel():
        return mask.size(1) if mask.dim() == 2 else 1
    turned = mask.dim() == 2 and mask.size(1) == data.num_nodes
    raise DataError(
        f"{key} of {data.name} has the shape {tuple(mask.shape)}, but there are {data.num_nodes} nodes",
        remedy=f"Masks are [node] or [node, split]: use data.{key}.t()" if turned else "Masks are [node, split]",
    )


def _column(mask: Tensor, number: int) -> Tensor:
    return mask if mask.dim() == 1 else mask[:, number % mask.size(1)]  # a single column belongs to all splits


def fold_parts(items: np.ndarray, labels: np.ndarray | None, folds: int, fold: int) -> Parts:
    """Fold number `fold` of shuffled items for test, the next one for validation, the others for training.

    With labels, every fold has as many items of each class as any other, or one more or less.
    """
    if labels is not None:
        items = items[np.argsort(labels[items], kind="stable")]
    number = np.arange(len(items)) % folds
    is_test, is_val = number == fold, number == (fold + 1) % folds
    return items[~(is_test | is_val)], items[is_val], items[is_test]


def check_folds(folds: int | None, fold: int) -> int:
    """The number of folds, if it makes sense."""
    if folds is None or folds < 3:
        raise DataError(
            f"a k-fold split needs folds=3 or more, for training, validation and test; got folds={folds}",
            remedy="Pass for example folds=5, fold=0",
        )
    if not 0 <= fold < folds:
        raise DataError(f"there is no fold {fold}", remedy=f"The folds are 0 to {folds - 1}")
    return folds


def share_parts(items: np.ndarray, shares: tuple[int, int, int]) -> Parts:
    """The first items for training, the next for validation, the others for test. The shares are percents."""
    train, val = (len(items) * share // 100 for share in shares[:2])
    return items[:train], items[train : train + val], items[train + val :]


def check_shares(kind: str) -> tuple[int, int, int]:
    """The three numbers of a kind such as 48/32/20."""
    train, val, test = (int(share) for share in kind.split("/"))
    if train + val + test != 100 or 0 in (train, val, test):
        raise DataError(f"the shares of the split {kind!r} must be percents above 0 that add up to 100")
    return train, val, test
