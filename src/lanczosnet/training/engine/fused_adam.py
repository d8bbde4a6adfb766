"""Adam with fused steps: the parameters of a run, and the optimizer's state, are views of one vector each.

A step is one operation for all small parameters, whose gradients are joined before, and one for each large parameter,
whose gradient is read in place. Model and optimizer still save, load and compare their state by parameter.
"""

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor, nn

from lanczosnet.training.engine.adam import Rule, Vectors, adam

ALIGNMENT = 64  # numbers: the products that GPUs do fastest need matrices that begin at a multiple of so many
LARGE = 2**20  # numbers: copying such a gradient (8 MB to read and write) takes a GPU longer than one more operation


class VectorLayout:
    """Where tensors stand in one vector. Between them are zeros."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.shapes = [tensor.shape for tensor in tensors]
        self.zeros = tensors[0].new_zeros(ALIGNMENT)

    @torch.no_grad()
    def joined(self, tensors: Sequence[Tensor]) -> Tensor:
        """A new vector of their values."""
        parts = []
        for tensor in tensors:
            parts += [tensor.reshape(-1), self.zeros[: _gap(tensor.numel())]]
        return torch.cat(parts)

    def views(self, vector: Tensor) -> list[Tensor]:
        sizes = [shape.numel() for shape in self.shapes]
        pieces = vector.split([size + _gap(size) for size in sizes])
        return [piece[: shape.numel()].view(shape) for piece, shape in zip(pieces, self.shapes, strict=True)]


def _gap(size: int) -> int:
    return -size % ALIGNMENT


def _is_large(tensor: Tensor) -> bool:
    return tensor.numel() >= LARGE


class FlatParameters:
    """Parameters as views of one vector, until they are released."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = parameters
        self.layout = VectorLayout(parameters)
        self.vector = self.layout.joined(parameters)
        for parameter, view in zip(parameters, self.layout.views(self.vector), strict=True):
            parameter.data = view

    @torch.no_grad()
    def gradients(self) -> list[tuple[int, Tensor]]:
        """One for each large parameter and one for small neighbours, and where in the vector it begins.

        Zero where a parameter has none.
        """
        found, begin = [], 0
        for is_large, neighbours in groupby(self.parameters, _is_large):
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in neighbours]
            for gradient in grads if is_large else [self.layout.joined(grads)]:
                found.append((begin, gradient.reshape(-1)))
                begin += gradient.numel() + _gap(gradient.numel())
        return found

    def release(self) -> None:
        """Every parameter owns its memory again."""
        for parameter in self.parameters:
            parameter.data = parameter.data.clone()


class FusedAdam:
    """The steps of a `torch.optim.Adam` or `AdamW`, whose state it keeps up to date.

    A parameter without gradient counts as one whose gradient is zero; PyTorch leaves it alone, without decay.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        (group,) = optimizer.param_groups
        parameters = sorted(_trained(optimizer), key=_is_large)  # the small ones as neighbours
        states = [optimizer.state.get(parameter, {}) for parameter in parameters]
        self.parameters = FlatParameters(parameters)
        means, squares = (self._joined_states(states, key) for key in ("exp_avg", "exp_avg_sq"))
        self.vectors = Vectors(self.parameters.vector, means, squares)
        device = self.parameters.vector.device
        steps = [state["step"].to(device) for state in states if state]
        self.counts = torch.zeros(len(parameters), device=device)  # all the same, but the optimizer has one for each
        if steps:
            self.counts += torch.stack(steps).max()
        group["lr"] = torch.as_tensor(group["lr"], dtype=torch.float32, device=device)
        self._show_state()

    def step(self, max_norm: float = 0.0) -> None:
        """Change the parameters by their gradients, which are made no longer than `max_norm` before unless it is 0."""
        (group,) = self.optimizer.param_groups
        self.counts += 1
        is_decoupled = isinstance(self.optimizer, torch.optim.AdamW)
        beta1, beta2 = group["betas"]
        rule = Rule(beta1, beta2, group["eps"], group["weight_decay"], is_decoupled, max_norm)
        found = self.parameters.gradients()
        pieces = [(self.vectors.part(begin, gradient.numel()), gradient) for begin, gradient in found]
        adam(pieces, group["lr"], self.counts[0], rule)

    def release(self) -> None:
        """Parameters and optimizer own their memory again."""
        self.parameters.release()
        for parameter in self.parameters.parameters:
            state = self.optimizer.state[parameter]
            self.optimizer.state[parameter] = {key: tensor.clone() for key, tensor in state.items()}

    def _joined_states(self, states: Sequence[dict[str, Tensor]], key: str) -> Tensor:
        """Zero where a parameter has none yet."""
        parameters = self.parameters.parameters
        pairs = zip(states, parameters, strict=True)
        return self.parameters.layout.joined([state.get(key, torch.zeros_like(p)) for state, p in pairs])

    def _show_state(self) -> None:
        """The optimizer's state of every parameter is a view of what is here."""
        views = self.parameters.layout.views
        states = zip(self.counts, views(self.vectors.means), views(self.vectors.squares), strict=True)
        for parameter, (count, mean, square) in zip(self.parameters.parameters, states, strict=True):
            self.optimizer.state[parameter] = {"step": count, "exp_avg": mean, "exp_avg_sq": square}


def can_fuse(optimizer: torch.optim.Optimizer) -> bool:
    """Adam or AdamW with the same numbers for all parameters, which are float32 and on one device."""
    if not isinstance(optimizer, torch.optim.Adam) or len(optimizer.param_groups) > 1:
        return False
    (group,) = optimizer.param_groups
    kinds = {(parameter.dtype, parameter.device) for parameter in _trained(optimizer)}
    return len(kinds) == 1 and kinds.pop()[0] == torch.float32 and not group["amsgrad"] and not group["maximize"]


def _trained(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
