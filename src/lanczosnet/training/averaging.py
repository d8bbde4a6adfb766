"""Exponential moving average of a model's weights."""

import torch
from torch import Tensor, nn

from lanczosnet.training.engine.fused_adam import FlatParameters


class WeightAverage:
    """average <- average + share * (weights - average) after every step; young averages forget faster."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.count = 0
        self.weights = snapshot(model.state_dict())
        self.flat: FlatAverage | None = None

    @torch.no_grad()
    def restart(self, model: nn.Module) -> None:
        """From these weights, in the same memory."""
        self.count = 0
        for name, weight in model.state_dict().items():
            self.weights[name].copy_(weight)

    def next_share(self) -> float:
        """Of the weights after the next step."""
        self.count += 1
        return 1.0 - min(self.decay, (1 + self.count) / (10 + self.count))

    @torch.no_grad()
    def update(self, model: nn.Module, share: float | Tensor) -> None:
        current, others = model.state_dict(), set(self.weights)
        if self.flat is not None:
            self.flat.update(share)
            others -= self.flat.names
        averaged = [name for name in others if self.weights[name].is_floating_point()]
        if averaged:
            old, new = [self.weights[name] for name in averaged], [current[name] for name in averaged]
            torch._foreach_add_(old, torch._foreach_mul(torch._foreach_sub(new, old), share))
        for name in others - set(averaged):
            self.weights[name].copy_(current[name])

    def flatten(self, model: nn.Module, parameters: FlatParameters) -> None:
        """One operation updates the averages of these parameters from here on."""
        self.flat = FlatAverage(self.weights, model, parameters)

    def unflatten(self) -> None:
        """Every average owns its memory again."""
        self.weights, self.flat = snapshot(self.weights), None


class FlatAverage:
    """Averages as views of one vector, beside that of the parameters."""

    def __init__(self, weights: dict[str, Tensor], model: nn.Module, parameters: FlatParameters) -> None:
        places = {id(parameter): place for place, parameter in enumerate(parameters.parameters)}
        named = model.named_parameters(remove_duplicate=False)  # one parameter may have several names
        place_of = {name: places[id(parameter)] for name, parameter in named if id(parameter) in places}
        averages = {place: weights[name] for name, place in place_of.items()}
        self.names = place_of.keys()
        self.current = parameters.vector
        self.vector = parameters.layout.joined([averages[place] for place in range(len(places))])
        views = parameters.layout.views(self.vector)
        weights.update({name: views[place] for name, place in place_of.items()})

    def update(self, share: float | Tensor) -> None:
        self.vector.lerp_(self.current, share)


def snapshot(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in weights.items()}
