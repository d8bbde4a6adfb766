"""Ritz pairs of many components side by side: small ones exactly, the others by one Lanczos iteration for all."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import SparseOperator, dense_blocks, padding_of
from lanczosnet.affinity.components import subgraph
from lanczosnet.krylov.lanczos import lanczos
from lanczosnet.krylov.ritz import RitzPairs, eigh_of_leading, leading, ritz
from lanczosnet.krylov.symmetric_eigen import sorted_eigen

Eigh = Callable[[Tensor], tuple[Tensor, Tensor]]
EIGH: Eigh = torch.linalg.eigh  # of small graphs, on every device: the tables' results keep their bits


def small_ritz_pairs(
    operator: SparseOperator, start: Tensor, segment: Tensor, groups: list[Tensor], num_pairs: int, search_steps: int
) -> RitzPairs:
    """The pairs of all components: exact ones for each group `[segment]` of them, which is one batch of matrices."""
    is_exact = torch.stack(groups).any(0)
    size = torch.bincount(segment, minlength=len(is_exact))
    if bool(is_exact.all()):
        zeros = operator.new_zeros
        others = RitzPairs(zeros(len(size), num_pairs), zeros(len(start), num_pairs), size)
    else:  # a zero start vector leaves the exact components out of the iteration
        others = leading(ritz(lanczos(operator, start * ~is_exact[segment], search_steps, segment=segment)), num_pairs)
    write_exact_pairs(others, operator, segment, size, groups)
    return RitzPairs(others.values, others.vectors, torch.where(is_exact, size, others.rank), segment)


def write_exact_pairs(
    pairs: RitzPairs, operator: SparseOperator, segment: Tensor, size: Tensor, groups: list[Tensor], eigh: Eigh = EIGH
) -> None:
    """Those of the components of each group, in the place of zeros."""
    for group in groups:
        padding = padding_of(segment, len(size), keep=group)
        assert padding.rows is not None
        assert padding.size is not None
        blocks = dense_blocks(operator, padding).dense().double()
        eigenvalues, eigenvectors = eigh_of_leading(blocks, padding.size, eigh)
        pairs.values[:, : padding.width][group.nonzero().squeeze(1)] = eigenvalues.to(pairs.values.dtype)
        rows = eigenvectors.to(pairs.vectors.dtype).flatten(0, 1).index_select(0, padding.rows)
        pairs.vectors[:, : padding.width][padding.node] = rows.add_(0.0)  # without negative zeros


def write_single_nodes(pairs: RitzPairs, operator: SparseOperator, segment: Tensor, size: Tensor) -> None:
    """Those of components of one node, its diagonal entry and one, in the place of zeros."""
    node = (size == 1).index_select(0, segment).nonzero().squeeze(1)
    label, entry = segment.index_select(0, node), operator.diagonal_position.index_select(0, node)
    pairs.values[:, 0].index_copy_(0, label, operator.values_at(node, entry))
    pairs.vectors[:, 0].index_fill_(0, node, 1.0)


class Rest(NamedTuple):
    """Some components as a separate graph."""

    node: Tensor  # [node], of the whole graph
    component: Tensor  # [segment], of the whole graph
    operator: SparseOperator
    start: Tensor
    segment: Tensor
    size: Tensor

    def pairs(self, num_pairs: int, exact_up_to: int, search_steps: int) -> RitzPairs:
        groups = of_similar_size(self.size, exact_up_to) or [torch.zeros_like(self.size, dtype=torch.bool)]
        return small_ritz_pairs(self.operator, self.start, self.segment, groups, num_pairs, search_steps)

    def write(self, found: RitzPairs, pairs: RitzPairs) -> None:
        """Its pairs into those of the whole graph."""
        pairs.values[self.component], pairs.rank[self.component] = found.values, found.rank
        pairs.vectors[self.node] = found.vectors


def rest_of(operator: SparseOperator, start: Tensor, segment: Tensor, is_rest: Tensor) -> Rest | None:
    """Those components that are marked; None where there are none."""
    component = is_rest.nonzero().squeeze(1)
    if not len(component):
        return None
    node = is_rest[segment].nonzero().squeeze(1)
    own = (is_rest.cumsum(0) - 1)[segment[node]]
    return Rest(
        node, component, subgraph(operator, node), start[node], own, torch.bincount(own, minlength=len(component))
    )


def write_rest(
    pairs: RitzPairs,
    operator: SparseOperator,
    start: Tensor,
    is_rest: Tensor,
    size: Tensor,
    exact_up_to: int,
    search_steps: int,
) -> None:
    """The pairs of the components that are marked, in the place of zeros."""
    segment = pairs.segment
    assert segment is not None
    is_exact = is_rest & (size <= exact_up_to)
    power = torch.where(is_exact, _power(size), torch.where(is_rest, ITERATED, NOTHING))
    powers = power.unique().tolist()  # all that the host waits for to know what there is
    if ALONE in powers:
        write_single_nodes(pairs, operator, segment, size)
    groups = [power == each for each in powers if ALONE < each < ITERATED]
    write_exact_pairs(pairs, operator, segment, size, groups, sorted_eigen)
    pairs.rank.copy_(torch.where(is_exact, size, pairs.rank))
    rest = rest_of(operator, start, segment, is_rest & ~is_exact) if powers[-1] == ITERATED else None
    if rest is not None:
        rest.write(rest.pairs(pairs.values.shape[1], 0, search_steps), pairs)


ALONE, ITERATED, NOTHING = -1.0, 64.0, -2.0  # among the powers of two


def _power(size: Tensor) -> Tensor:
    return (size - 0.5).log2().ceil()


def of_similar_size(size: Tensor, largest: int) -> list[Tensor]:
    """Which components, of at most so many nodes, have one node, two, up to four, up to eight and so on, so that there
    is little padding."""
    power = torch.where(size <= largest, _power(size), NOTHING)
    return [power == each for each in power.unique().tolist() if each > NOTHING]
