"""Ritz pairs per connected component: K of them for each, in the same node x K storage as K for the whole graph.

Eigenvalue 1 of S is repeated once per component, and one Krylov space sees each eigenvalue once. Taking components one
by one therefore approximates far more of S (Cora: 78 components, Citeseer: 438) and keeps gradients bounded.
"""

import torch
from torch import Tensor

from lanczosnet.affinity import SparseOperator, connected_components
from lanczosnet.krylov import start as start_vectors
from lanczosnet.krylov.large_components import large_components, large_ritz_pairs
from lanczosnet.krylov.ritz import RitzPairs, checked_search_steps
from lanczosnet.krylov.small_components import small_ritz_pairs, write_rest


def component_ritz_pairs(
    operator: SparseOperator,
    num_pairs: int = 20,
    start: Tensor | None = None,
    *,
    exact_up_to: int | None = None,
    search_steps: int | None = None,
    components: tuple[Tensor, int] | None = None,
) -> RitzPairs:
    """Up to `num_pairs` pairs per connected component: all of them, exactly, where it has no more nodes than that.

    Larger components get those of `num_pairs` Lanczos steps from `start` (ones where absent). Not differentiable.
    `exact_up_to` is another bound for the former, at most `num_pairs`; with 0 Lanczos is run on all components.
    With `search_steps`, this number of steps is run, and the `leading` pairs are kept.
    `components` are those of `connected_components`, where they are known.

    Large components (`large_components`) are iterated side by side, all in the same few operations. A long search goes
    through them one by one, and restarts whenever it holds twice `num_pairs` vectors, from the best of them.
    """
    if num_pairs < 1:
        raise ValueError(f"num_pairs must be at least 1, but is {num_pairs}")
    exact_up_to = num_pairs if exact_up_to is None else exact_up_to
    if not 0 <= exact_up_to <= num_pairs:
        raise ValueError(f"exact_up_to is {exact_up_to}, but there is room for 0 to {num_pairs} pairs of a component")
    search_steps = checked_search_steps(search_steps, num_pairs)
    with torch.no_grad():
        segment, count = connected_components(operator) if components is None else components
        size = sizes_of(segment, count)
        is_small = size <= exact_up_to
        if start is None:
            start = start_vectors.ones(operator)
        else:
            check_start(start, segment, ~is_small)
        large = (large_components(size, len(segment), num_pairs) & ~is_small).nonzero().squeeze(1)
        if not len(large):
            return small_ritz_pairs(operator, start, segment, [is_small], num_pairs, search_steps)
        pairs = large_ritz_pairs(operator, start, segment, size, large, num_pairs, search_steps)
        if len(large) < count:
            is_rest = torch.ones_like(is_small).index_fill_(0, large, False)
            write_rest(pairs, operator, start, is_rest, size, exact_up_to, search_steps)
        return pairs


def sizes_of(segment: Tensor, count: int) -> Tensor:
    """The nodes of every component."""
    return torch.full_like(segment[:1], len(segment)) if count == 1 else torch.bincount(segment, minlength=count)


def check_start(start: Tensor, segment: Tensor, is_large: Tensor) -> None:
    """A component on which it is zero would have no pairs at all."""
    if start.shape != segment.shape:
        raise ValueError(f"the start vector must have shape {tuple(segment.shape)}, but has {tuple(start.shape)}")
    is_reached = torch.zeros_like(is_large).index_put((segment[start != 0],), is_large.new_ones(()))
    if bool((is_large & ~is_reached).any()):
        node = int((is_large & ~is_reached)[segment].nonzero()[0])
        raise ValueError(
            f"the start vector is zero on the whole component of node {node}, whose Krylov space is then empty: pass "
            "another one, or None for ones"
        )
