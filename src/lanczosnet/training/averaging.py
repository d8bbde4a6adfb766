"""A moving average of a model's weights."""

import torch
from torch import Tensor, nn


class WeightAverage:
    """average <- average + share * (weights - average) after every step; young averages forget faster."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.count = 0
        self.weights = {name: weight.detach().clone() for name, weight in model.state_dict().items()}

    def next_share(self) -> float:
        """Of the weights after the next step."""
        self.count += 1
        return 1.0 - min(self.decay, (1 + self.count) / (10 + self.count))

    @torch.no_grad()
    def update(self, model: nn.Module, share: float | Tensor) -> None:
        current = model.state_dict()
        averaged = [name for name, weight in self.weights.items() if weight.is_floating_point()]
        old, new = [self.weights[name] for name in averaged], [current[name] for name in averaged]
        change = torch._foreach_mul(torch._foreach_sub(new, old), share)
        torch._foreach_add_(old, change)
        for name in self.weights.keys() - set(averaged):
            self.weights[name].copy_(current[name])


def snapshot(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in weights.items()}
