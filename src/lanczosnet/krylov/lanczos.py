"""Algorithm 1 of the paper: S and a start vector -> an orthonormal basis Q and a tridiagonal T with Q^T S Q = T."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import Operator
from lanczosnet.backends import serves
from lanczosnet.krylov.adjoint import LanczosWithAdjoint, refuse_restarted
from lanczosnet.krylov.iteration import Basis, Coefficients, FreshVector, PreallocatedBasis, RecordedBasis, iterate
from lanczosnet.krylov.matrices import Matrix, opened
from lanczosnet.krylov.setup import Setup, prepare


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
    operator: Operator | Callable[[Tensor], Tensor] | Matrix,
    start: Tensor | None = None,
    num_steps: int = 20,
    *,
    reorthogonalize: bool = True,
    on_breakdown: Literal["pad", "restart"] = "pad",
    gradient: Literal["adjoint", "autograd"] = "adjoint",
    segment: Tensor | None = None,
    generator: torch.Generator | None = None,
    working_dtype: torch.dtype | None = None,
    num_segments: int | None = None,
    validate: bool = True,
) -> Tridiagonalization:
    """Run `num_steps` steps of the Lanczos algorithm on every graph of an operator at once (Algorithm 1).

    Args:
        operator: a symmetric operator; a symmetric matrix as a `torch.sparse` or dense tensor, with gradients into it,
            or as a SciPy or NumPy one; or a function that multiplies `[..., node]` with one (then `start` is needed,
            and gradients are recorded by autograd, since a hand-written one cannot see into the function). SciPy's
            `LinearOperator` is such a function, whose gradient reaches `start` alone.
        start: `[..., node]`, any length but zero; ones where absent (see `lanczosnet.krylov.start`). Of several graphs,
            those where it is zero are left out.
        num_steps: K; graphs with a smaller Krylov space are padded.
        reorthogonalize: two-pass Gram-Schmidt against all earlier vectors, in batches where one large graph takes
            hundreds of steps (see `lanczosnet.krylov.space`); False is the paper's three-term recurrence, which loses
            orthogonality as soon as a Ritz pair converges (its gradient is autograd's, but for batches of small dense
            graphs on a GPU, which have a hand-written one).
        on_breakdown: what follows when the Krylov space is exhausted before K: "pad" with zeros (S Q = Q T is then
            exact), or "restart" with a fresh orthogonal vector (Q T Q^T = S is then exact once K reaches the node
            count). A restarted basis has no derivative; asking for one raises.
        gradient: the hand-written adjoint, or autograd through the iteration (its twin, slower and larger).
        segment: which graph or component each node belongs to, `[node]`; the operator's own where absent.
        generator: draws the fresh vectors of "restart"; a fixed seed where absent.
        working_dtype: the iteration's type; float64 for small graphs where absent, else the operator's.
        num_segments: how many graphs `segment` names, where known.
        validate: check the start vector, and a matrix. Without, and with `working_dtype` and `num_segments` given,
            nothing waits for a GPU.

    Shapes:
        dense batch `[graph, node, node]` -> basis `[graph, node, step]`, coefficients `[graph, step]`;
        sparse `[node, node]` -> basis `[node, step]`, coefficients `[step]`, or `[graph, step]` with segments.
    """
    _check_choice("on_breakdown", on_breakdown, ("pad", "restart"))
    _check_choice("gradient", gradient, ("adjoint", "autograd"))
    operator, start = opened(operator, start, symmetric=True, validate=validate)
    check_symmetric(operator)
    with in_full_precision(operator, start):
        setup = prepare(operator, start, num_steps, segment, working_dtype, num_segments, validate=validate)
        fresh_vector = _fresh_vectors(setup, generator) if on_breakdown == "restart" else None
        S = setup.operator
        if S is not None and gradient == "adjoint" and _has_adjoint(setup, num_steps, reorthogonalize, fresh_vector):
            arguments = S, num_steps, setup.inner, setup.breakdown, fresh_vector, reorthogonalize
            basis, *found = LanczosWithAdjoint.apply(S.stored_values, setup.start, *arguments)
            coefficients = Coefficients(*found)
        else:
            basis, coefficients = _recorded(setup, num_steps, reorthogonalize, fresh_vector)
    diagonal, off_diagonal, steps = coefficients
    dtype = setup.dtype
    return Tridiagonalization(basis.mT.to(dtype), diagonal.to(dtype), off_diagonal.to(dtype), steps, setup.segment)


def _check_choice(name: str, value: str, choices: tuple[str, str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")


def check_symmetric(operator: Operator | Callable[[Tensor], Tensor]) -> None:
    if isinstance(operator, Operator) and not operator.symmetric:
        raise ValueError("lanczos needs a symmetric operator: use normalized(...) for S, or arnoldi for this one")


@contextmanager
def in_full_precision(operator: Operator | Callable[[Tensor], Tensor], start: Tensor | None) -> Iterator[None]:
    """Krylov methods keep their precision under autocast, and where float32 products may be rounded to TF32."""
    device = (
        operator.device if isinstance(operator, Operator) else torch.device("cpu") if start is None else start.device
    )
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def _has_adjoint(setup: Setup, num_steps: int, reorthogonalize: bool, fresh_vector: FreshVector | None) -> bool:
    """The three-term recurrence has one only as a Triton kernel, and the real form of a Hermitian matrix has none."""
    if setup.operator is not None and setup.operator.is_real_form:
        return False
    if reorthogonalize:
        return True
    arguments = setup.operator, setup.start, num_steps, setup.inner, setup.breakdown
    return serves("lanczos_iteration", "triton", *arguments, fresh_vector=fresh_vector, reorthogonalize=False)


def _recorded(
    setup: Setup, num_steps: int, reorthogonalize: bool, fresh_vector: FreshVector | None
) -> tuple[Tensor, Coefficients]:
    """The iteration as autograd sees it."""
    basis: Basis = RecordedBasis() if torch.is_grad_enabled() else PreallocatedBasis(setup.start, num_steps + 1)
    coefficients = iterate(
        setup.product,
        setup.start,
        num_steps,
        setup.inner,
        basis,
        breakdown=setup.breakdown,
        reorthogonalize=reorthogonalize,
        fresh_vector=fresh_vector,
    )
    vectors = basis.matrix()[..., :-1, :]
    if fresh_vector is not None:
        for found in (vectors, coefficients.diagonal, coefficients.off_diagonal):
            if found.requires_grad:
                found.register_hook(lambda _: refuse_restarted(coefficients.off_diagonal, coefficients.steps))
    return vectors, coefficients


def _fresh_vectors(setup: Setup, generator: torch.Generator | None) -> FreshVector:
    """Normal random vectors, zero on padding; from a fixed seed unless a generator is given."""
    source = torch.Generator().manual_seed(0) if generator is None else generator
    mask = None if setup.operator is None else setup.operator.mask

    def draw() -> Tensor:
        vector = torch.randn(setup.start.shape, dtype=torch.float64, generator=source, device=source.device)
        vector = vector.to(setup.start)
        return vector if mask is None else vector * mask

    return draw
