"""Start vectors of the Lanczos iteration, one per graph, zero on padding.

Never sqrt(degree): it is an eigenvector of S, and the iteration ends at once.
"""

import torch
from torch import Tensor

from lanczosnet.affinity import Operator


def ones(operator: Operator) -> Tensor:
    """All ones: deterministic, and relabelling the nodes relabels the result. The default."""
    vector = torch.ones(operator.shape[:-1], dtype=operator.dtype, device=operator.device)
    return _on_nodes(vector, operator)


def mean_feature(operator: Operator, features: Tensor) -> Tensor:
    """Each node's mean feature, `[..., node, channel]` -> `[..., node]`: close to where the features diffuse to."""
    if features.shape[:-1] != operator.shape[:-1]:
        raise ValueError(
            f"features must have shape {[*operator.shape[:-1], 'channel']}, but have {tuple(features.shape)}"
        )
    return _on_nodes(features.to(operator.dtype).mean(-1), operator)


def random(operator: Operator, generator: torch.Generator) -> Tensor:
    """Independent normal entries, the paper's choice; drawn on the generator's device, so that a seed is a seed."""
    vector = torch.randn(operator.shape[:-1], dtype=torch.float64, generator=generator, device=generator.device)
    return _on_nodes(vector.to(operator.device, operator.dtype), operator)


def _on_nodes(vector: Tensor, operator: Operator) -> Tensor:
    return vector if operator.mask is None else vector * operator.mask
