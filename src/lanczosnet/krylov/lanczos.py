"""Algorithm 1 of the paper: S and a start vector -> an orthonormal basis Q and a tridiagonal T with Q^T S Q = T."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import Operator
from lanczosnet.krylov import start as start_vectors
from lanczosnet.krylov.adjoint import LanczosWithAdjoint
from lanczosnet.krylov.inner_product import InnerProduct, inner_product
from lanczosnet.krylov.iteration import (
    BREAKDOWN_TOLERANCE,
    Coefficients,
    PreallocatedBasis,
    RecordedBasis,
    iterate,
    unit,
)

# Up to this many entries of Q the iteration runs in float64, whatever the input's type: it costs little, and only
# there can an exhausted Krylov space, the normal case for small graphs, be told from a small coefficient.
SMALL_BASIS = 2**21


class Tridiagonalization(NamedTuple):
    """S Q = Q T + beta_K q_{K+1} e_K^T. Past a graph's `steps` everything is zero.

    For ragged graphs (a `segment` vector) the basis is `[node, step]` and the coefficients are `[graph, step]`.
    """

    basis: Tensor  # Q, [..., node, step]
    diagonal: Tensor  # gamma, [..., step]
    off_diagonal: Tensor  # beta, [..., step]; the last one, beta_K, is the length of the residual and not part of T
    steps: Tensor  # [...], the dimension of the Krylov space that was found
    segment: Tensor | None = None  # [node], which graph a node belongs to


def lanczos(
    operator: Operator | Callable[[Tensor], Tensor],
    start: Tensor | None = None,
    num_steps: int = 20,
    *,
    reorthogonalize: bool = True,
    on_breakdown: Literal["pad", "restart"] = "pad",
    gradient: Literal["adjoint", "autograd"] = "adjoint",
    segment: Tensor | None = None,
    generator: torch.Generator | None = None,
    working_dtype: torch.dtype | None = None,
) -> Tridiagonalization:
    """Run `num_steps` steps of the Lanczos algorithm on every graph of an operator at once (Algorithm 1).

    Args:
        operator: a symmetric operator, or a function that multiplies `[..., node]` with one (then `start` is needed,
            and gradients are recorded by autograd, since a hand-written one cannot see into the function).
        start: `[..., node]`, any length but zero; ones where absent (see `lanczosnet.krylov.start`).
        num_steps: K; graphs with a smaller Krylov space are padded.
        reorthogonalize: two-pass Gram-Schmidt against all earlier vectors; False is the paper's three-term recurrence,
            which loses orthogonality as soon as a Ritz pair converges.
        on_breakdown: what follows when the Krylov space is exhausted before K: "pad" with zeros (S Q = Q T is then
            exact), or "restart" with a fresh orthogonal vector (Q T Q^T = S is then exact once K reaches the node
            count). A restarted basis has no derivative; asking for one raises.
        gradient: the hand-written adjoint, or autograd through the iteration (its twin, slower and larger).
        segment: which graph or component each node belongs to, `[node]`; the operator's own where absent.
        generator: draws the fresh vectors of "restart"; a fixed seed where absent.
        working_dtype: the iteration's type; float64 for small graphs where absent, else the operator's.

    Shapes:
        dense batch `[graph, node, node]` -> basis `[graph, node, step]`, coefficients `[graph, step]`;
        sparse `[node, node]` -> basis `[node, step]`, coefficients `[step]`, or `[graph, step]` with segments.
    """
    _check_options(num_steps, on_breakdown, gradient)
    if isinstance(operator, Operator) and not operator.symmetric:
        raise ValueError("lanczos needs a symmetric operator: use normalized(...) for S, or arnoldi for this one")
    start, segment, num_segments = prepared_start(operator, start, segment)
    check_start(operator, start, segment)
    dtype, working_dtype = working_type(operator, start, num_steps, working_dtype)
    inner = inner_product(segment, num_segments)
    with torch.autocast(start.device.type, enabled=False):
        first = unit(start.to(working_dtype), inner)
        fresh_vector = None
        if on_breakdown == "restart":
            fresh_vector = _fresh_vectors(operator, first, generator)
        if not isinstance(operator, Operator):
            product = _in_dtype(operator, dtype, working_dtype)
            basis, found = _recorded(product, first, num_steps, inner, reorthogonalize, fresh_vector)
        elif gradient == "autograd" or not reorthogonalize:
            product = operator.to(working_dtype).product
            basis, found = _recorded(product, first, num_steps, inner, reorthogonalize, fresh_vector)
        else:
            operator = operator.to(working_dtype)
            results = LanczosWithAdjoint.apply(operator.values, first, operator, num_steps, inner, fresh_vector)
            basis, found = results[0], Coefficients(*results[1:])
    return Tridiagonalization(
        basis.mT.to(dtype),
        found.diagonal.to(dtype),
        found.off_diagonal.to(dtype),
        found.steps,
        segment,
    )


def prepared_start(
    operator: Operator | Callable[[Tensor], Tensor], start: Tensor | None, segment: Tensor | None
) -> tuple[Tensor, Tensor | None, int | None]:
    """The start vector, and which graph each node belongs to, filled in from the operator where not given."""
    if not isinstance(operator, Operator):
        if start is None:
            raise ValueError("a product function does not say how many nodes there are: pass a start vector")
        return start, segment, None
    start = start_vectors.ones(operator) if start is None else start
    if segment is None:
        return start, operator.segment, operator.num_segments
    return start, segment, None


def working_type(
    operator: object, start: Tensor, num_steps: int, wanted: torch.dtype | None
) -> tuple[torch.dtype, torch.dtype]:
    """The type of the results, and that of the iteration."""
    if not isinstance(operator, Operator):
        # A function computes in its own precision; iterating in a finer one would mistake its rounding for signal.
        return start.dtype, wanted or start.dtype
    is_small = start.numel() * num_steps <= SMALL_BASIS
    return operator.dtype, wanted or (torch.float64 if is_small else operator.dtype)


def _recorded(
    product: Callable[[Tensor], Tensor],
    first: Tensor,
    num_steps: int,
    inner: InnerProduct,
    reorthogonalize: bool,
    fresh_vector: Callable[[], Tensor] | None,
) -> tuple[Tensor, Coefficients]:
    """The iteration as autograd sees it."""
    basis = RecordedBasis() if torch.is_grad_enabled() else PreallocatedBasis(first, num_steps + 1)
    found = iterate(product, first, num_steps, inner, basis, reorthogonalize=reorthogonalize, fresh_vector=fresh_vector)
    return basis.matrix()[..., :-1, :], found


def _fresh_vectors(operator: object, like: Tensor, generator: torch.Generator | None) -> Callable[[], Tensor]:
    """Normal random vectors, zero on padding; from a fixed seed unless a generator is given."""
    generator = torch.Generator().manual_seed(0) if generator is None else generator
    mask = getattr(operator, "mask", None)

    def draw() -> Tensor:
        vector = torch.randn(like.shape, dtype=torch.float64, generator=generator, device=generator.device)
        vector = vector.to(like.device, like.dtype)
        return vector if mask is None else vector * mask

    return draw


def _in_dtype(
    product: Callable[[Tensor], Tensor], dtype: torch.dtype, working_dtype: torch.dtype
) -> Callable[[Tensor], Tensor]:
    return lambda vector: product(vector.to(dtype)).to(working_dtype)


def _check_options(num_steps: int, on_breakdown: str, gradient: str) -> None:
    if num_steps < 1:
        raise ValueError(f"num_steps must be at least 1, but is {num_steps}")
    if on_breakdown not in ("pad", "restart"):
        raise ValueError(f"on_breakdown must be 'pad' or 'restart', not {on_breakdown!r}")
    if gradient not in ("adjoint", "autograd"):
        raise ValueError(f"gradient must be 'adjoint' or 'autograd', not {gradient!r}")


def check_start(operator: object, start: Tensor, segment: Tensor | None) -> None:
    if isinstance(operator, Operator) and start.shape != operator.shape[:-1]:
        raise ValueError(f"the start vector must have shape {tuple(operator.shape[:-1])}, but has {tuple(start.shape)}")
    dtype = operator.dtype if isinstance(operator, Operator) else start.dtype
    if dtype not in BREAKDOWN_TOLERANCE:
        raise ValueError(
            f"lanczos runs in float32 or float64, not {dtype}: convert the operator with .to(torch.float32)"
        )
    if segment is not None and segment.shape != start.shape:
        raise ValueError(
            f"segment must name the graph of every node, shape {tuple(start.shape)}, but has {tuple(segment.shape)}"
        )
