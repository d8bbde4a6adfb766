"""A moving average of a model's weights."""

import torch
from torch import Tensor, nn


class WeightAverage:
    """average <- decay * average + (1 - decay) * weights after every step; young averages forget faster."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.count = 0
        self.weights = {name: weight.detach().clone() for name, weight in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        self.count += 1
        share = 1.0 - min(self.decay, (1 + self.count) / (10 + self.count))
        current = model.state_dict()
        averaged = [name for name, weight in self.weights.items() if weight.is_floating_point()]
        torch._foreach_lerp_([self.weights[n] for n in averaged], [current[n] for n in averaged], share)
        for name in self.weights.keys() - set(averaged):
            self.weights[name].copy_(current[name])


def snapshot(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in weights.items()}
