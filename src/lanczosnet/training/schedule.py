"""The numbers of a recipe that change from step to step, and the seeds of epochs."""

import math
from typing import NamedTuple

import numpy as np
from torch import Tensor

from lanczosnet.training.recipes import Recipe


class StepHyperparameters(NamedTuple):
    """The numbers of a recipe that change from step to step."""

    learning_rate: float | Tensor
    averaging_share: float | Tensor  # of the new weights in their average
    consistency: float | Tensor = 0.0  # weight of the views' disagreement


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """A linear rise, then constant or half a cosine down to zero; `step` counts from 0."""
    step, num_steps = _of_attempt(recipe, step, steps_per_epoch)
    warmup = round(recipe.warmup_epochs * steps_per_epoch)
    if step < warmup:
        return recipe.learning_rate * (step + 1) / warmup
    if recipe.decay == "none":
        return recipe.learning_rate
    share = (step - warmup) / max(1, num_steps - warmup)
    return recipe.learning_rate * 0.5 * (1.0 + math.cos(math.pi * min(1.0, share)))


def consistency_weight(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """A linear rise, then constant; `step` counts from 0."""
    step, _ = _of_attempt(recipe, step, steps_per_epoch)
    warmup = round(recipe.consistency_warmup_epochs * steps_per_epoch)
    return recipe.consistency * (min(1.0, (step + 1) / warmup) if warmup else 1.0)


def _of_attempt(recipe: Recipe, step: int, steps_per_epoch: int) -> tuple[int, int]:
    """The number of the step since the last restart, and how many steps there are until the end or the next one."""
    all_steps, per_attempt = recipe.epochs * steps_per_epoch, recipe.restart_epochs * steps_per_epoch
    if not per_attempt:
        return step, all_steps
    begin = step - step % per_attempt
    return step - begin, min(per_attempt, all_steps - begin)


def mixed_seed(*numbers: int) -> int:
    """One seed from several, by NumPy's seed sequence, which is the same everywhere."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
