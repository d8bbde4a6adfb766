"""Large components iterated side by side, each of which is a range of nodes.

The matrix of all of them is multiplied at once, and every step takes as many operations as that of one component.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import SparseOperator
from lanczosnet.affinity.components import subgraph
from lanczosnet.affinity.sparse_operator import index_type
from lanczosnet.krylov.adjoint import lanczos_iteration
from lanczosnet.krylov.inner_product import InnerProduct, RangeInnerProduct, WholeInnerProduct
from lanczosnet.krylov.iteration import Breakdown, breakdown_tolerance, unit
from lanczosnet.krylov.ritz import eigh_of_leading, leading_steps, tridiagonal
from lanczosnet.krylov.setup import working_type

NODES_AT_A_TIME = 2**17  # that a rotation holds twice


class Ranges(NamedTuple):
    """Components as ranges of an operator's nodes, which may hold others' nodes: the start vector is zero there."""

    label: Tensor  # [component], in the order of their ranges
    sizes: list[int]  # of the ranges, which are all nodes of the operator
    node: Tensor | None  # of the operator, in the whole graph; None where it is the whole graph
    operator: SparseOperator
    start: Tensor
    dtype: torch.dtype  # of the iteration
    is_whole: bool = False  # whether there is one component and nothing else


class Components(NamedTuple):
    """All components of a graph, and those that are large."""

    segment: Tensor  # [node]
    size: Tensor  # [component]
    large: Tensor  # their labels

    def number(self, chosen: list[int]) -> Tensor:
        """The place of every node's component among those chosen, -1 for others, `[node]`."""
        label = self.labels(chosen)
        number = torch.full_like(self.size, -1)
        return number.index_copy_(0, label, torch.arange(len(label), device=label.device)).index_select(0, self.segment)

    def labels(self, chosen: list[int]) -> Tensor:
        return self.large if len(chosen) == len(self.large) else self.large[chosen]


def ranges_of(operator: SparseOperator, start: Tensor, components: Components, num_pairs: int) -> Iterator[Ranges]:
    """The large components in as few operators as can be; a graph that is not cut comes first.

    Components that are most of the graph, and do not lie among each other, are ranges of it. The others are cut out
    together. Those that are iterated in float64, as all small ones, stay apart from those that are not.
    """
    operator, num_nodes = operator.without_segments(), len(components.segment)
    if len(components.size) == 1:
        dtype = working_type(num_nodes, num_pairs, operator.dtype)
        yield Ranges(components.large, [num_nodes], None, operator, start, dtype, is_whole=True)
        return
    sizes = components.size.index_select(0, components.large).tolist()
    by_type: dict[torch.dtype, list[int]] = {}
    for index, size in enumerate(sizes):
        by_type.setdefault(working_type(size, num_pairs, operator.dtype), []).append(index)
    for dtype, chosen in sorted(by_type.items(), key=lambda group: -sum(sizes[index] for index in group[1])):
        number = components.number(chosen)
        if 2 * sum(sizes[index] for index in chosen) > num_nodes:
            kept, widths = _in_place(number, chosen, sizes)
            if kept:
                others = [index for index in chosen if index not in kept]
                own = components.number(kept) if others else number
                first = torch.where(own >= 0, start, 0.0)
                yield Ranges(components.labels(kept), widths, None, operator, first, dtype)
                chosen, number = others, components.number(others) if others else number
        if chosen:
            node = _nodes(number, len(chosen))
            widths = [sizes[index] for index in chosen]
            yield Ranges(components.labels(chosen), widths, node, subgraph(operator, node), start[node], dtype)


def _in_place(number: Tensor, chosen: list[int], sizes: list[int]) -> tuple[list[int], list[int]]:
    """Which of those chosen, and numbered on every node, are not cut out, and the sizes of their ranges."""
    widths = [len(number)] if len(chosen) == 1 else _widths(number, len(chosen))
    if widths:
        return chosen, widths
    largest = max(chosen, key=sizes.__getitem__)
    return ([largest], [len(number)]) if 2 * sizes[largest] > len(number) else ([], [])


def _widths(number: Tensor, count: int) -> list[int]:
    """The sizes of ranges with one component each, as they are numbered; none where one lies among another's nodes."""
    highest = _running_maximum(number)
    is_in_order = ((number < 0) | (number == highest)).all().view(1)
    begins = torch.searchsorted(highest, torch.arange(1, count, device=number.device))
    answer, *bounds = torch.cat([is_in_order.long(), begins]).tolist()
    bounds = [0, *bounds, len(number)]
    return [end - begin for begin, end in pairwise(bounds)] if answer else []


def _running_maximum(values: Tensor) -> Tensor:
    """`values.cummax(0)`, which a GPU computes row by row in parallel, but one long row with a single block."""
    width = 1024
    rows = torch.nn.functional.pad(values, (0, -len(values) % width), value=-1).view(-1, width).cummax(1).values
    before = rows[:-1, -1].cummax(0).values.unsqueeze(1)
    rows[1:] = torch.maximum(rows[1:], before)
    return rows.view(-1)[: len(values)]


def _nodes(number: Tensor, count: int) -> Tensor:
    """Those of numbered components, one component after the other."""
    node = (number >= 0).nonzero().squeeze(1)
    return node if count == 1 else node[number[node].to(index_type(count)).argsort(stable=True)]


def side_by_side(ranges: Ranges, num_pairs: int, num_steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """The leading pairs of so many Lanczos steps: values `[component, step]`, vectors `[step, node]`, and ranks."""
    inner = WholeInnerProduct() if len(ranges.sizes) == 1 else RangeInnerProduct(ranges.sizes)
    S, start = ranges.operator.to(ranges.dtype), unit(ranges.start.to(ranges.dtype), inner)
    scale = S.largest_entry() if ranges.is_whole else _scale(S, start, inner)
    breakdown = Breakdown(scale, breakdown_tolerance(ranges.dtype, ranges.operator.dtype))
    block, diagonal, off_diagonal, steps = lanczos_iteration(S, start, num_steps, inner, breakdown)
    values, rotation, rank = _small_pairs(diagonal, off_diagonal, steps, num_pairs)
    vectors = _rotated(block, rotation.to(block), ranges.sizes)
    return values.to(block), vectors, rank.to(block.device)


def _scale(S: SparseOperator, start: Tensor, inner: InnerProduct) -> Tensor:
    """A lower bound on the norm of every component: the largest entry may be another's."""
    generator = torch.Generator(start.device).manual_seed(0)
    probe = torch.randn(len(start), generator=generator, device=start.device, dtype=start.dtype)
    return inner.norm(S.product(unit(torch.where(start != 0, probe, 0.0), inner)))


def _small_pairs(
    diagonal: Tensor, off_diagonal: Tensor, steps: Tensor, num_pairs: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The leading pairs of T of every component, and their number, on the host: a device would take longer."""
    facts = torch.cat([diagonal, off_diagonal, steps.unsqueeze(-1).to(diagonal)], -1)
    facts = facts.view(-1, facts.shape[-1]).double().cpu()
    num_steps = diagonal.shape[-1]
    steps = facts[:, -1].long()
    values, rotation = eigh_of_leading(tridiagonal(facts[:, :num_steps], facts[:, num_steps:-1]), steps)
    if num_pairs < num_steps:
        chosen = leading_steps(values, steps, num_pairs)
        values = values.gather(1, chosen)
        rotation = rotation.gather(2, chosen.unsqueeze(1).expand(-1, num_steps, -1))
    return values, rotation, steps.clamp(max=num_pairs)


def _rotated(block: Tensor, rotation: Tensor, sizes: list[int]) -> Tensor:
    """V^T of the Lanczos vectors in a block, range by range and in their place; its memory is theirs."""
    num_steps, num_pairs = rotation.shape[1:]
    for own, turn in zip(block.split(sizes, 1), rotation.mT, strict=True):
        for part in own[:num_steps].split(NODES_AT_A_TIME, 1):
            part[:num_pairs] = turn @ part
    return block[:num_pairs] if len(block) <= num_pairs + 1 else block[:num_pairs].clone()
