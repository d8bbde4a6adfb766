"""Tensors from files against those of a network: names, shapes, types, and whether all are numbers."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from lanczosnet.training.errors import TrainingError


def check_weights(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], path: Path, part: str = "") -> None:
    """An error that names the file and the first tensor that does not fit; half and double precision fit."""
    for key in sorted(wanted.keys() | found.keys()):
        here, there = (tuple(held[key].shape) if key in held else None for held in (wanted, found))
        if here != there:
            raise TrainingError(f"{path} does not fit its architecture: {part}{key} is {there}, but should be {here}")
        if found[key].is_floating_point() != wanted[key].is_floating_point():
            raise TrainingError(
                f"{path} does not fit its architecture: {part}{key} is of type {found[key].dtype}, but should be "
                f"{wanted[key].dtype}"
            )
        check_finite(found[key], path, part + key)


def check_finite(tensor: Tensor, path: Path, name: str) -> None:
    if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
        raise TrainingError(f"{path}: {name} has a value that is NaN or infinite. Copy the file again, or train again")
