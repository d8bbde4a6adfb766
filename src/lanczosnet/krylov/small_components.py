"""Ritz pairs of many components side by side: small ones exactly, the others by one Lanczos iteration for all."""

from typing import NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import SparseOperator, dense_blocks, padding_of
from lanczosnet.affinity.components import subgraph
from lanczosnet.krylov.lanczos import lanczos
from lanczosnet.krylov.ritz import RitzPairs, eigh_of_leading, leading, ritz


def small_ritz_pairs(
    operator: SparseOperator, start: Tensor, segment: Tensor, groups: list[Tensor], num_pairs: int, search_steps: int
) -> RitzPairs:
    """The pairs of all components: exact ones for each group `[segment]` of them, which is one batch of matrices."""
    is_exact = torch.stack(groups).any(0)
    size = torch.bincount(segment, minlength=len(is_exact))
    if bool(is_exact.all()):
        zeros = operator.values.new_zeros
        others = RitzPairs(zeros(len(size), num_pairs), zeros(len(start), num_pairs), size)
    else:  # a zero start vector leaves the exact components out of the iteration
        others = leading(ritz(lanczos(operator, start * ~is_exact[segment], search_steps, segment=segment)), num_pairs)
    write_exact_pairs(others, operator, segment, size, groups)
    return RitzPairs(others.values, others.vectors, torch.where(is_exact, size, others.rank), segment)


def write_exact_pairs(
    pairs: RitzPairs, operator: SparseOperator, segment: Tensor, size: Tensor, groups: list[Tensor]
) -> None:
    """Those of the components of each group, in the place of zeros."""
    for group in groups:
        padding = padding_of(segment, len(size), keep=group)
        eigenvalues, eigenvectors = eigh_of_leading(dense_blocks(operator, padding).dense().double(), size[group])
        pairs.values[group, : padding.width] = eigenvalues.to(pairs.values.dtype)
        exact = padding.unpad(eigenvectors.to(pairs.vectors.dtype))
        pairs.vectors[:, : padding.width] += exact  # both are zero on the other's nodes


class Rest(NamedTuple):
    """The components that are not large, as a separate graph."""

    node: Tensor  # [node], of the whole graph
    component: Tensor  # [segment], of the whole graph
    operator: SparseOperator
    start: Tensor
    segment: Tensor
    size: Tensor

    def pairs(self, num_pairs: int, exact_up_to: int, search_steps: int) -> RitzPairs:
        groups = [group & (self.size <= exact_up_to) for group in of_similar_size(self.size)]
        groups = [group for group in groups if bool(group.any())] or [torch.zeros_like(self.size, dtype=torch.bool)]
        return small_ritz_pairs(self.operator, self.start, self.segment, groups, num_pairs, search_steps)

    def write(self, found: RitzPairs, pairs: RitzPairs) -> None:
        """Its pairs into those of the whole graph."""
        pairs.values[self.component], pairs.rank[self.component] = found.values, found.rank
        pairs.vectors[self.node] = found.vectors


def rest_of(operator: SparseOperator, start: Tensor, segment: Tensor, is_large: Tensor) -> Rest | None:
    """What is not large; None where that is nothing."""
    is_rest = ~is_large
    if not bool(is_rest.any()):
        return None
    node = is_rest[segment].nonzero().squeeze(1)
    own = (is_rest.cumsum(0) - 1)[segment[node]]
    component = is_rest.nonzero().squeeze(1)
    return Rest(
        node, component, subgraph(operator, node), start[node], own, torch.bincount(own, minlength=len(component))
    )


def of_similar_size(size: Tensor) -> list[Tensor]:
    """Which components have one node, two, up to four, up to eight and so on, so that there is little padding."""
    power = (size - 0.5).log2().ceil()
    return [power == each for each in power.unique()]
