"""Tensors from files against those of a network: names, shapes, types, and whether all are numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from lanczosnet.schemas.checkpoint_record import REMEDY
from lanczosnet.training.errors import TrainingError

FLOATS = {torch.float16, torch.bfloat16, torch.float32, torch.float64}  # stand for one another
MOMENTS = ("exp_avg", "exp_avg_sq")  # that Adam keeps of every parameter, beside the number of its steps


def check_weights(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], path: Path, part: str = "") -> None:
    """An error that names the file and the first tensor that does not fit; half and double precision fit."""
    for key in sorted(wanted.keys() | found.keys()):
        here, there = (tuple(held[key].shape) if key in held else None for held in (wanted, found))
        if here != there:
            raise TrainingError(f"{path} does not fit its architecture: {part}{key} is {there}, but should be {here}")
        _check_type(found[key], wanted[key].dtype, path, part + key)
        if found[key].is_floating_point() and not bool(found[key].isfinite().all()):
            raise TrainingError(
                f"{path}: {part}{key} has a value that is NaN or infinite. Copy the file again, or train again"
            )


def check_moments(
    found: Mapping[str, Tensor], parameters: Sequence[Tensor], most_steps: int, path: Path, part: str = ""
) -> None:
    """The same of an optimizer's tensors, which are named `number/kind`; moments may be infinite.

    A parameter may have none yet. It takes no step without a gradient, so it may have fewer than the run.
    """
    for key, tensor in found.items():
        number, _, kind = key.partition("/")
        known = number.isdecimal() and int(number) < len(parameters) and kind in ("step", *MOMENTS)
        shape = tuple(parameters[int(number)].shape) if known and kind in MOMENTS else ()
        if not known or tuple(tensor.shape) != shape:
            raise TrainingError(f"{path} does not fit its optimizer: {part}{key} is {tuple(tensor.shape)}")
        _check_type(tensor, torch.float32, path, part + key)
        if kind == "step":
            _check_steps(float(tensor), most_steps, path, part + key)
        elif bool(tensor.isnan().any()) or (kind == "exp_avg_sq" and bool((tensor < 0).any())):
            raise TrainingError(f"{path}: {part}{key} has a value that it cannot have, NaN or negative. {REMEDY}")
    for number in {key.partition("/")[0] for key in found}:
        missing = [kind for kind in ("step", *MOMENTS) if f"{number}/{kind}" not in found]
        if missing:
            raise TrainingError(f"{path} does not fit its optimizer: {part}{number}/{missing[0]} is missing")


def _check_steps(steps: float, most: int, path: Path, name: str) -> None:
    if not (0 <= steps <= most and steps.is_integer()):
        raise TrainingError(f"{path}: {name} is {steps:g}, but should be a whole number from 0 to {most}. {REMEDY}")


def _check_type(tensor: Tensor, wanted: torch.dtype, path: Path, name: str) -> None:
    if tensor.dtype != wanted and not {tensor.dtype, wanted} <= FLOATS:
        raise TrainingError(f"{path} does not fit: {name} is of type {tensor.dtype}, but should be {wanted}")
