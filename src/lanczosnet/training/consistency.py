"""What several views of the same nodes say about each other: a loss that needs no labels.

As in GRAND (Feng et al., NeurIPS 2020): the views' mean answer is sharpened, and every view is drawn to it. With a
threshold on how sure the mean is, this is self-training on confident nodes.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lanczosnet.training.errors import TrainingError
from lanczosnet.training.recipes import Recipe
from lanczosnet.training.tasks import Classification, Task


def disagreement(task: Task, views: Sequence[Tensor], recipe: Recipe) -> Tensor:
    """The mean squared distance of the views to their sharpened mean, over all confident items, labelled or not."""
    if not isinstance(task, Classification):
        raise TrainingError("consistency is for classes: set consistency=0 for regression")
    parts = zip(*(task.probabilities(view.float()) for view in views), strict=True)
    distances = [_distance(torch.stack(answers), recipe) for answers in parts]
    return sum(distances[1:], start=distances[0]) / len(distances)


def _distance(answers: Tensor, recipe: Recipe) -> Tensor:
    """`[view, item, class]` -> one number."""
    mean = answers.detach().mean(0)
    target = sharpened(mean, recipe.temperature)
    counts = (mean.amax(1) > recipe.confidence).to(mean.dtype)
    per_item = (answers - target).square().sum(2).mean(0)
    return (per_item * counts).sum() / counts.sum().clamp(min=1.0)


def sharpened(probabilities: Tensor, temperature: float) -> Tensor:
    """p^(1/T), normalised, without overflow; the likeliest class alone at T = 0."""
    if temperature == 0.0:
        return torch.nn.functional.one_hot(probabilities.argmax(1), probabilities.shape[1]).to(probabilities.dtype)
    return torch.softmax(probabilities.clamp(min=1e-12).log() / temperature, dim=1)
