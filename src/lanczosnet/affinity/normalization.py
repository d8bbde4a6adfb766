"""From the adjacency A to the operators of section 2: S, the three Laplacians, the random walk, diffusion kernels.

A node without edges has a zero row in S and P (and so a one on the diagonal of the normalised Laplacians, as in PyG).
"""

from typing import Literal, TypeVar

import torch
from torch import Tensor

from lanczosnet.affinity.operator import Operator

OperatorT = TypeVar("OperatorT", bound=Operator)


def normalized(adjacency: OperatorT, *, self_loops: bool = True, validate: bool = True) -> OperatorT:
    """S = D^-1/2 A D^-1/2 with A + I for A where self-loops are added; eigenvalues in [-1, 1]."""
    _require_symmetric(adjacency, "S")
    if self_loops:
        adjacency = adjacency.plus_diagonal(torch.ones_like(adjacency.degree()))
    degree = _degree(adjacency, validate)
    if validate and adjacency.has_values and bool((adjacency.values < 0).any()):
        raise ValueError(
            f"the weight {float(adjacency.values.min()):.4g} is negative: S would have eigenvalues beyond 1, whose "
            "powers grow without bound. Use non-negative weights, for example their absolute values"
        )
    scale = _inverse_power(degree, 0.5)
    return adjacency.scaled(scale, scale)


def laplacian(
    adjacency: OperatorT,
    kind: Literal["combinatorial", "random_walk", "symmetric"] = "symmetric",
    *,
    validate: bool = True,
) -> OperatorT:
    """The Laplacians of section 2: (1) D - A, (2) I - D^-1 A, (3) I - D^-1/2 A D^-1/2."""
    if kind == "combinatorial":
        return (-adjacency).plus_diagonal(adjacency.degree())
    if kind == "random_walk":
        smooth = random_walk(adjacency, validate=validate)
    elif kind == "symmetric":
        smooth = normalized(adjacency, self_loops=False, validate=validate)
    else:
        raise ValueError(f"unknown Laplacian {kind!r}: choose 'combinatorial', 'random_walk' or 'symmetric'")
    return (-smooth).plus_diagonal(torch.ones_like(adjacency.degree()))


def random_walk(adjacency: OperatorT, *, validate: bool = True) -> OperatorT:
    """P = D^-1 A, the transition probabilities of one step (section 4)."""
    return adjacency.scaled(_inverse_power(_degree(adjacency, validate), 1.0), None)


def alpha_normalized(adjacency: OperatorT, alpha: float, *, validate: bool = True) -> OperatorT:
    """D^-alpha A D^-alpha, an adjacency again: feed it to `normalized` or `random_walk`.

    alpha = 0 leaves the sampling density in, 1/2 gives Fokker-Planck, 1 gives Laplace-Beltrami in the limit.
    """
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must lie in [0, 1], but is {alpha}")
    _require_symmetric(adjacency, "the alpha-normalised kernel")
    scale = _inverse_power(_degree(adjacency, validate), alpha)
    return adjacency.scaled(scale, scale)


def _require_symmetric(adjacency: Operator, what: str) -> None:
    if not adjacency.symmetric:
        raise ValueError(
            f"{what} needs a symmetric adjacency: build it without directed=True "
            "(torch_geometric.utils.to_undirected adds the reverse edges), or use random_walk"
        )


def _degree(adjacency: Operator, validate: bool) -> Tensor:
    degree = adjacency.degree()
    if validate and bool((degree < 0).any()):
        node = (degree < 0).nonzero()[0].tolist()
        raise ValueError(
            f"node {node[-1] if len(node) == 1 else node} has the negative degree {degree[tuple(node)].item():.4g}, "
            "which has no square root: use non-negative weights, for example their absolute values"
        )
    return degree


def _inverse_power(degree: Tensor, power: float) -> Tensor:
    """degree^-power, zero at degree zero, with a finite gradient there."""
    connected = degree > 0
    safe = torch.where(connected, degree, torch.ones_like(degree))
    return torch.where(connected, safe**-power, torch.zeros_like(degree))
