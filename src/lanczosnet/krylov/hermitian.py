"""Ritz pairs of a Hermitian matrix from its real form.

From a start vector z, Lanczos on [[A, -B], [B, A]] takes the steps of complex Lanczos on A + iB: its vectors are real
polynomials of the matrix times z, and T is the same. What it finds are complex Ritz vectors v as real ones. Their
complex span is what they and all i v span among real vectors, so that every pair comes with that second one.
"""

import torch
from torch import Tensor

from lanczosnet.affinity.hermitian import RealForm, turned
from lanczosnet.krylov.components import check_start
from lanczosnet.krylov.lanczos import lanczos
from lanczosnet.krylov.ritz import RitzPairs, checked_search_steps, leading, ritz
from lanczosnet.krylov.small_components import of_similar_size, write_exact_pairs


def hermitian_ritz_pairs(
    operator: RealForm,
    num_pairs: int,
    components: tuple[Tensor, int],
    *,
    exact_up_to: int | None = None,
    search_steps: int | None = None,
) -> RitzPairs:
    """Up to `num_pairs` complex pairs of every connected component, each as two real ones; not differentiable.

    Args:
        operator: the real form `[2 x node, 2 x node]`.
        num_pairs: K; values are `[component, 2 x K]` and vectors `[2 x node, 2 x K]`.
        components: those of the graph, `[node]`, and how many they are.
        exact_up_to: components of at most this many nodes (at most K) are decomposed exactly.
        search_steps: run this many Lanczos steps, keep the pairs of largest modulus.
    """
    exact_up_to = num_pairs if exact_up_to is None else exact_up_to
    steps = checked_search_steps(search_steps, num_pairs)
    segment, count = torch.cat([components[0]] * 2), components[1]
    size = torch.bincount(segment, minlength=count)
    is_small = size <= 2 * exact_up_to
    with torch.no_grad():
        start = _start(operator, ~is_small[segment])
        check_start(start, segment, ~is_small)
        if bool(is_small.all()):
            zeros = operator.new_zeros
            found = RitzPairs(zeros(count, 2 * num_pairs), zeros(len(start), 2 * num_pairs), size, segment)
        else:
            found = _completed(leading(_of_lanczos(operator, start, steps, segment, count), num_pairs), num_pairs)
        write_exact_pairs(found, operator, segment, size, of_similar_size(size, 2 * exact_up_to))
    return RitzPairs(found.values, found.vectors, torch.where(is_small, size, found.rank), segment)


def _start(operator: RealForm, is_iterated: Tensor) -> Tensor:
    """Ones without an imaginary part."""
    start = torch.zeros_like(is_iterated, dtype=operator.dtype)
    start[: len(start) // 2] = 1.0
    return start * is_iterated


def _of_lanczos(operator: RealForm, start: Tensor, steps: int, segment: Tensor, count: int) -> RitzPairs:
    if count > 1:
        return ritz(lanczos(operator, start, steps, segment=segment, num_segments=count))
    pairs = ritz(lanczos(operator, start, steps))
    return RitzPairs(pairs.values.unsqueeze(0), pairs.vectors, pairs.rank.view(1), segment)


def _completed(pairs: RitzPairs, num_pairs: int) -> RitzPairs:
    """v and i v side by side, with room for so many pairs."""
    vectors = torch.stack([pairs.vectors, turned(pairs.vectors.mT).mT], -1).flatten(-2)
    values = pairs.values.repeat_interleave(2, -1)
    extra = (0, 2 * num_pairs - values.shape[-1])
    padded = [torch.nn.functional.pad(part, extra) for part in (values, vectors)]
    return RitzPairs(padded[0], padded[1], 2 * pairs.rank, pairs.segment)
