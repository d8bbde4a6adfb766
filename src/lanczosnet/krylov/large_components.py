"""Ritz pairs of components that are large enough to be summed up on their own."""

from collections.abc import Iterator

import torch
from torch import Tensor

from lanczosnet.affinity import SparseOperator
from lanczosnet.affinity.components import subgraph
from lanczosnet.affinity.sparse_operator import index_type
from lanczosnet.backends.segments import row_pointers
from lanczosnet.krylov.iteration import Breakdown, unit
from lanczosnet.krylov.lanczos import check_symmetric, in_full_precision
from lanczosnet.krylov.ritz import RitzPairs
from lanczosnet.krylov.setup import prepare
from lanczosnet.krylov.side_by_side import Components, ranges_of, side_by_side
from lanczosnet.krylov.space import FEW_PAIRS, SMALL_GRAPH, KrylovSpace

LARGE_COMPONENT = 2**10  # nodes, whose steps take longer than it takes to start them
MOST_SURPLUS = 64  # vectors of a search beyond the pairs that are wanted


def large_components(size: Tensor, num_nodes: int, num_pairs: int) -> Tensor:
    """Which components, of so many nodes each, are summed up on their own: the only place that chooses.

    A small graph's components take fewer operations with segment sums.
    """
    if num_nodes <= SMALL_GRAPH and num_pairs <= FEW_PAIRS:
        return torch.zeros_like(size, dtype=torch.bool)
    return size >= LARGE_COMPONENT


def large_ritz_pairs(
    operator: SparseOperator,
    start: Tensor,
    segment: Tensor,
    size: Tensor,
    large: Tensor,
    num_pairs: int,
    search_steps: int,
) -> RitzPairs:
    """The leading pairs of the components `large` `[component]`; those of the others are zero."""
    check_symmetric(operator)
    pairs = FoundPairs(operator, segment, size, num_pairs)
    capacity = min(search_steps, num_pairs + min(max(num_pairs, 20), MOST_SURPLUS))
    with in_full_precision(operator, start):
        if search_steps <= min(capacity, FEW_PAIRS):
            for ranges in ranges_of(operator, start, Components(segment, size, large), num_pairs):
                pairs.write_all(ranges.label, ranges.node, *side_by_side(ranges, num_pairs, search_steps))
            return pairs.result()
        is_large = torch.zeros_like(size, dtype=torch.bool).index_fill(0, large, True)
        for label, node, S, first in parts(operator, start, segment, size, is_large):
            space = krylov_space(S, first, num_pairs, capacity)
            pairs.write(label, node, *searched(space, num_pairs, search_steps))
    return pairs.result()


Part = tuple[int, Tensor | None, SparseOperator, Tensor]


def parts(operator: SparseOperator, start: Tensor, segment: Tensor, size: Tensor, is_large: Tensor) -> Iterator[Part]:
    """The label, the nodes, the operator and the start vector of every large component, the largest first.

    One that is most of the graph is not cut out: its start vector is zero elsewhere, and the other rows cost little.
    """
    operator = operator.without_segments()
    order = first = segment[:0]
    for label in size.masked_fill(~is_large, -1).argsort(descending=True, stable=True)[: int(is_large.sum())].tolist():
        if 2 * int(size[label]) > len(segment):
            yield label, None, operator, torch.where(segment == label, start, 0.0)
            continue
        if not len(order):
            order = segment.to(index_type(len(size))).argsort(stable=True)
            first = row_pointers(size)
        node = order[first[label] : first[label + 1]]
        yield label, node, subgraph(operator, node), start[node]


def krylov_space(operator: SparseOperator, start: Tensor, num_steps: int, capacity: int) -> KrylovSpace:
    """Of one component, in the type that so many steps need."""
    setup = prepare(operator, start, num_steps, None, None, validate=False)
    breakdown = setup.breakdown
    if bool(setup.inner.total((start == 0).sum())):  # the largest entry may be another component's
        generator = torch.Generator(start.device).manual_seed(0)
        probe = torch.randn(len(start), generator=generator, device=start.device, dtype=setup.start.dtype)
        probe = unit(torch.where(setup.start != 0, probe, 0.0), setup.inner)
        breakdown = Breakdown(setup.inner.norm(setup.product(probe)), breakdown.tolerance)
    return KrylovSpace(setup.product, setup.start, setup.inner, breakdown, capacity)


def searched(space: KrylovSpace, num_pairs: int, search_steps: int) -> tuple[Tensor, Tensor]:
    """The leading Ritz pairs `[step]` and `[step, node]` of so many steps; a full space restarts from its best."""
    remaining = search_steps
    while True:
        before = space.size
        space.extend(min(space.capacity, before + remaining))
        remaining -= space.size - before
        values = space.compress(num_pairs)
        if remaining == 0 or space.is_exhausted:
            return values, space.basis()


class FoundPairs:
    """Ritz pairs of all components, zero until they are written."""

    def __init__(self, operator: SparseOperator, segment: Tensor, size: Tensor, num_pairs: int) -> None:
        self.values = operator.new_zeros(len(size), num_pairs)
        self.vectors: Tensor | None = None  # [step, node]
        self.rank = torch.zeros_like(size)
        self.segment = segment

    def write(self, label: int, node: Tensor | None, values: Tensor, vectors: Tensor) -> None:
        """Those of one component: on some nodes `[step, node]`, or on all, and zero outside the component."""
        rank, num_pairs = len(values), self.values.shape[1]
        self.values[label, :rank] = values.to(self.values.dtype)
        self.rank[label] = rank
        if self.vectors is None and node is None and rank == num_pairs:
            self.vectors = vectors.to(self.values.dtype)
            return
        if self.vectors is None:
            self.vectors = self._empty()
        vectors = vectors.to(self.values.dtype)
        if node is None:
            self.vectors[:rank] = vectors
        else:
            self.vectors[:rank].index_copy_(1, node, vectors)

    def write_all(self, label: Tensor, node: Tensor | None, values: Tensor, vectors: Tensor, rank: Tensor) -> None:
        """Those of several components `[component, step]` and their nodes `[step, node]`, likewise."""
        self.values.index_copy_(0, label, values.to(self.values.dtype))
        self.rank.index_copy_(0, label, rank)
        vectors = vectors.to(self.values.dtype)
        if node is None:  # the first to be written
            self.vectors = vectors
            return
        if self.vectors is None:
            self.vectors = self._empty()
        self.vectors.index_copy_(1, node, vectors)

    def result(self) -> RitzPairs:
        vectors = self._empty() if self.vectors is None else self.vectors
        return RitzPairs(self.values, vectors.mT, self.rank, self.segment)

    def _empty(self) -> Tensor:
        return self.values.new_zeros(self.values.shape[1], len(self.segment))
