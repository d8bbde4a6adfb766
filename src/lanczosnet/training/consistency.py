"""Consistency regularization: a loss on several views of the same nodes that needs no labels.

As in GRAND (Feng et al., NeurIPS 2020), the mean prediction of the views is sharpened, and every view is pulled towards
it. With a confidence threshold this is self-training. Alone it favours the classes that the network already prefers;
distribution alignment, as in ReMixMatch (Berthelot et al., ICLR 2020), gives the predictions the class shares of the
labels.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lanczosnet.training.errors import TrainingError
from lanczosnet.training.recipes import Recipe
from lanczosnet.training.tasks import Classification, Task


def disagreement(task: Task, views: Sequence[Tensor], y: Tensor, recipe: Recipe) -> Tensor:
    """The mean squared distance of the views to their sharpened mean, over all confident items, labelled or not.

    The mean is aligned first, with the shares of the classes in `y`, the training targets.
    """
    if not isinstance(task, Classification):
        raise TrainingError("consistency is for classes: set consistency=0 for regression")
    parts = zip(*(task.probabilities(view.float()) for view in views), strict=True)
    distances = [
        _distance(torch.stack(answers), shares, recipe) for answers, shares in zip(parts, task.shares(y), strict=True)
    ]
    return sum(distances[1:], start=distances[0]) / len(distances)


def _distance(answers: Tensor, shares: Tensor, recipe: Recipe) -> Tensor:
    """`[view, item, class]` -> one number."""
    mean = answers.detach().mean(0)
    if recipe.alignment:
        mean = aligned(mean, shares.to(mean.dtype), recipe.alignment)
    target = sharpened(mean, recipe.temperature)
    counts = (mean.amax(1) > recipe.confidence).to(mean.dtype)
    per_item = (answers - target).square().sum(2).mean(0)
    return (per_item * counts).sum() / counts.sum().clamp(min=1.0)


def aligned(probabilities: Tensor, shares: Tensor, strength: float) -> Tensor:
    """p * (shares / mean of p over all items)^strength, normalised.

    Items whose classes all have no share keep zeros, which no threshold calls sure.
    """
    raised = probabilities * (shares / probabilities.mean(0).clamp(min=1e-12)).pow(strength)
    return raised / raised.sum(1, keepdim=True).clamp(min=1e-12)


def sharpened(probabilities: Tensor, temperature: float) -> Tensor:
    """p^(1/T), normalised, without overflow; the likeliest class alone at T = 0."""
    if temperature == 0.0:
        return torch.nn.functional.one_hot(probabilities.argmax(1), probabilities.shape[1]).to(probabilities.dtype)
    return torch.softmax(probabilities.clamp(min=1e-12).log() / temperature, dim=1)
