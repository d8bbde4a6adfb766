"""A step of Adam on vectors that hold all weights; the host never waits for it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lanczosnet.backends import operation

TINY = 1e-6  # what PyTorch adds to a norm before it divides by it


@dataclass(frozen=True)
class Rule:
    """The numbers of Adam that stay the same from step to step."""

    beta1: float
    beta2: float
    eps: float
    decay: float
    is_decoupled: bool  # the decay of AdamW, in place of a penalty on the weights
    max_norm: float = 0.0  # of the gradient; 0 leaves it as it is


@dataclass(frozen=True)
class Vectors:
    """What a step changes, all `[weight]`."""

    weights: Tensor
    means: Tensor  # of gradients
    squares: Tensor  # mean squares of gradients

    def part(self, begin: int, size: int) -> "Vectors":
        """The same memory."""
        return Vectors(*(vector[begin : begin + size] for vector in (self.weights, self.means, self.squares)))


Pieces = Sequence[tuple[Vectors, Tensor]]  # of all weights, each with its gradient [weight]


def adam(pieces: Pieces, rate: Tensor, count: Tensor, rule: Rule) -> None:
    """Change the vectors by step number `count`, which counts from 1; the numbers are tensors without axes."""
    norm = _norm([gradient for _, gradient in pieces]) if rule.max_norm else None
    for vectors, gradient in pieces:
        adam_step(gradient, vectors, rate, count, norm, rule)


def _norm(gradients: Sequence[Tensor]) -> Tensor:
    """Of all of them as one vector."""
    norms = [torch.linalg.vector_norm(gradient) for gradient in gradients]
    return norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack(norms))


@operation
@torch.no_grad()
def adam_step(gradient: Tensor, vectors: Vectors, rate: Tensor, count: Tensor, norm: Tensor | None, rule: Rule) -> None:
    if norm is not None:
        gradient = gradient * (rule.max_norm / (norm + TINY)).clamp(max=1.0)
    if rule.is_decoupled:
        vectors.weights.mul_(1.0 - rate * rule.decay)
    else:
        gradient = gradient + rule.decay * vectors.weights
    vectors.means.lerp_(gradient, 1.0 - rule.beta1)
    vectors.squares.mul_(rule.beta2).addcmul_(gradient, gradient, value=1.0 - rule.beta2)
    first, second = (1.0 - beta ** count.double() for beta in (rule.beta1, rule.beta2))
    scale = vectors.squares.sqrt() / second.sqrt() + rule.eps
    vectors.weights.sub_(rate / first * vectors.means / scale)
