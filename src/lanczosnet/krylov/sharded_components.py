"""Ritz pairs of the components of a graph whose rows are shared out."""

import torch
from torch import Tensor

from lanczosnet.affinity.components import subgraph
from lanczosnet.affinity.sharded_operator import ShardedOperator
from lanczosnet.krylov.components import component_ritz_pairs
from lanczosnet.krylov.lanczos import in_full_precision, lanczos
from lanczosnet.krylov.large_components import MOST_SURPLUS, krylov_space, searched
from lanczosnet.krylov.ritz import RitzPairs, leading, ritz
from lanczosnet.krylov.space import FEW_PAIRS


def sharded_ritz_pairs(
    operator: ShardedOperator,
    num_pairs: int,
    components: tuple[Tensor, int],
    num_shared: int,
    *,
    exact_up_to: int | None = None,
    search_steps: int | None = None,
) -> RitzPairs:
    """What `component_ritz_pairs` finds from a start vector of ones, with the vectors of this process' nodes.

    Args:
        operator: S.
        num_pairs: K, per component.
        components: the component of every node of this process, and how many there are. The first `num_shared` of them
            lie in several processes, which number these alike.
        num_shared: how many.
        exact_up_to, search_steps: as in `component_ritz_pairs`.
    """
    segment, count = components
    steps = num_pairs if search_steps is None else search_steps
    values = operator.new_zeros(count, num_pairs)
    found = RitzPairs(values, values.new_zeros(operator.num_nodes, num_pairs), segment.new_zeros(count), segment)
    with torch.no_grad(), in_full_precision(operator, None):
        size = operator.processes.total(torch.bincount(segment, minlength=count)[:num_shared])
        giant = int(size.argmax()) if num_shared and 2 * int(size.max()) > operator.num_all_nodes else None
        if giant is not None:
            _write(found, segment == giant, giant, _of_one(operator, (segment == giant), num_pairs, steps))
        if num_shared > (giant is not None):
            _write_side_by_side(found, operator, num_shared, giant, num_pairs, steps)
        rest = (segment >= num_shared).nonzero().squeeze(1)
        if len(rest):
            own = component_ritz_pairs(
                subgraph(operator.inside, rest),
                num_pairs,
                exact_up_to=exact_up_to,
                search_steps=search_steps,
                components=(segment[rest] - num_shared, count - num_shared),
            )
            found.values[num_shared:], found.rank[num_shared:] = own.values, own.rank
            found.vectors[rest] = own.vectors
    return found


def _of_one(operator: ShardedOperator, is_inside: Tensor, num_pairs: int, steps: int) -> RitzPairs:
    """Of the component that is most of the graph: the start vector is zero elsewhere."""
    start = is_inside.to(operator.dtype)
    if steps <= FEW_PAIRS:
        return leading(ritz(lanczos(operator, start, steps)), num_pairs)
    capacity = min(steps, num_pairs + min(max(num_pairs, 20), MOST_SURPLUS))
    values, vectors = searched(krylov_space(operator, start, num_pairs, capacity), num_pairs, steps)  # type: ignore[arg-type]
    return RitzPairs(values, vectors.mT, torch.tensor(len(values)))


def _write(found: RitzPairs, is_inside: Tensor, label: int, pairs: RitzPairs) -> None:
    width = pairs.values.shape[-1]
    found.values[label, :width] = pairs.values.to(found.values.dtype)
    found.rank[label] = pairs.rank
    found.vectors[:, :width] += torch.where(is_inside.unsqueeze(1), pairs.vectors.to(found.vectors.dtype), 0.0)


def _write_side_by_side(
    found: RitzPairs, operator: ShardedOperator, num_shared: int, giant: int | None, num_pairs: int, steps: int
) -> None:
    """The other shared components, all in one iteration."""
    assert found.segment is not None
    is_here = (found.segment < num_shared) & (found.segment != (-1 if giant is None else giant))
    segment = torch.where(is_here, found.segment, 0)  # elsewhere the start vector is zero, wherever it counts
    options = {"segment": segment, "num_segments": num_shared, "validate": False}
    pairs = leading(ritz(lanczos(operator, is_here.to(operator.dtype), steps, **options)), num_pairs)  # type: ignore[arg-type]
    wanted = torch.arange(num_shared, device=segment.device) != (-1 if giant is None else giant)
    found.values[:num_shared][wanted] = pairs.values[wanted]
    found.rank[:num_shared][wanted] = pairs.rank[wanted]
    found.vectors.add_(torch.where(is_here.unsqueeze(1), pairs.vectors, 0.0))
