"""From the tridiagonal T to Ritz values and vectors, and to powers of T."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import NamedTuple

import torch
from torch import Tensor

from lanczosnet.krylov.lanczos import Tridiagonalization


class RitzPairs(NamedTuple):
    """S ~ V R V^T. Values fall from left to right; past a graph's `rank` values and vectors are zero."""

    values: Tensor  # R, [..., step]
    vectors: Tensor  # V, [..., node, step]
    rank: Tensor  # [...], how many pairs each graph has
    segment: Tensor | None = None  # [node], which graph or component a node belongs to


def tridiagonal_matrix(result: Tridiagonalization) -> Tensor:
    """T (Eq. 2), `[..., step, step]`."""
    return tridiagonal(result.diagonal, result.off_diagonal)


def tridiagonal(diagonal: Tensor, off_diagonal: Tensor) -> Tensor:
    """The same from gamma and beta, `[..., step]`, of which the last beta is not part."""
    beta = off_diagonal[..., :-1]
    return torch.diag_embed(diagonal) + torch.diag_embed(beta, 1) + torch.diag_embed(beta, -1)


def ritz(result: Tridiagonalization) -> RitzPairs:
    """T = B R B^T and V = Q B (lines 13 and 14 of Algorithm 1), diagonalised in float64.

    Its gradient is that of eigh, undefined at repeated Ritz values: differentiate `matrix_function` instead.
    """
    values, rotation = eigh_of_leading(tridiagonal_matrix(result).double(), result.steps)
    values, rotation = values.to(result.basis.dtype), rotation.to(result.basis.dtype)
    if result.segment is None:
        vectors = result.basis @ rotation
    else:  # column by column: all rotations at once would need node x step x step
        columns = [(result.basis * column[result.segment]).sum(-1) for column in rotation.unbind(-1)]
        vectors = torch.stack(columns, -1)
    return RitzPairs(values, vectors, result.steps, result.segment)


def checked_search_steps(search_steps: int | None, num_pairs: int) -> int:
    """How many Lanczos steps are run to find this number of pairs: by default the same number."""
    if search_steps is None:
        return num_pairs
    if not isinstance(search_steps, Integral):  # of NumPy, too
        raise ValueError(f"search_steps must be a whole number, but is {search_steps!r}")
    if search_steps < num_pairs:
        raise ValueError(
            f"search_steps is {search_steps}, but {num_pairs} pairs need at least as many Lanczos steps: raise it, or "
            "leave it out"
        )
    return int(search_steps)


def leading(pairs: RitzPairs, num_pairs: int) -> RitzPairs:
    """The `num_pairs` pairs of largest modulus of every graph, or all that it has.

    They are those of `num_pairs` Lanczos steps from another start vector, which has no share in what is left out: an
    implicit restart with exact shifts (Sorensen, SIAM J. Matrix Anal. Appl. 1992).
    """
    if num_pairs < 1:
        raise ValueError(f"num_pairs must be at least 1, but is {num_pairs}")
    if num_pairs >= pairs.values.shape[-1]:
        return pairs
    chosen = leading_steps(pairs.values, pairs.rank, num_pairs)
    of_node = chosen.unsqueeze(-2) if pairs.segment is None else chosen[pairs.segment]
    shape = (*pairs.vectors.shape[:-1], chosen.shape[-1])
    vectors = pairs.vectors.gather(-1, of_node.expand(shape))
    return RitzPairs(pairs.values.gather(-1, chosen), vectors, pairs.rank.clamp(max=num_pairs), pairs.segment)


def leading_steps(values: Tensor, rank: Tensor, num_pairs: int) -> Tensor:
    """Which Ritz values have the largest modulus, `[..., pair]`, in their order."""
    place = torch.arange(values.shape[-1], device=values.device)
    modulus = values.abs().masked_fill(place >= rank.unsqueeze(-1), -1.0)  # padding comes last
    return modulus.topk(num_pairs, -1).indices.sort(-1).values


def eigh_of_leading(
    matrix: Tensor, size: Tensor, eigh: Callable[[Tensor], tuple[Tensor, Tensor]] = torch.linalg.eigh
) -> tuple[Tensor, Tensor]:
    """Eigenpairs, falling, of the leading size x size block of zero-padded symmetric matrices `[..., n, n]`.

    The padding is moved below the spectrum before eigh, so that it cannot mix with true zero eigenvalues.
    """
    place = torch.arange(matrix.shape[-1], device=matrix.device)
    is_padding = place >= size.unsqueeze(-1)
    below = -1.0 - 2.0 * matrix.detach().abs().sum(-1).amax(-1, keepdim=True) if matrix.shape[-1] else 0.0
    values, vectors = eigh(matrix + torch.diag_embed(is_padding * below))
    values, vectors = values.flip(-1), vectors.flip(-1)
    return values.masked_fill(is_padding, 0.0), vectors.masked_fill(is_padding.unsqueeze(-2), 0.0)


def matrix_powers(matrix: Tensor, exponents: Sequence[int]) -> Tensor:
    """Powers of a matrix `[..., n, n]`, stacked as `[..., exponent, n, n]`, by an addition chain."""
    if any(exponent < 0 or exponent != int(exponent) for exponent in exponents):
        raise ValueError(f"exponents must be non-negative integers, but are {list(exponents)}")
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device).expand_as(matrix)
    known = {0: identity, 1: matrix}
    for exponent in sorted(exponents):
        _power(known, exponent)
    return torch.stack([known[exponent] for exponent in exponents], dim=-3)


def _power(known: dict[int, Tensor], exponent: int) -> Tensor:
    """One product where two known exponents add up to this one, else by halving."""
    if exponent not in known:
        part = next((e for e in sorted(known, reverse=True) if exponent - e in known), None)
        if part is None:
            part = exponent // 2 if exponent % 2 == 0 else exponent - 1
        known[exponent] = _power(known, part) @ _power(known, exponent - part)
    return known[exponent]
