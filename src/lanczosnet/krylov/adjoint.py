"""The gradient of the Lanczos iteration, by hand: O(node x step) memory and one more sweep, backwards.

Reading step j as z = (I - Q_j Q_j^T)(S q_j - gamma_j q_j - beta_{j-1} q_{j-1}), beta_j = |z|, q_{j+1} = z / beta_j, the
cotangent of z is orthogonal to Q_j: the same re-orthogonalisation as forward, without which the float32 gradient
drowns in rounding once a Ritz pair has converged.
"""

from typing import Any

import torch
from torch import Tensor

from lanczosnet.affinity import Operator
from lanczosnet.backends import operation
from lanczosnet.backends.autograd import first_order
from lanczosnet.krylov.inner_product import InnerProduct
from lanczosnet.krylov.iteration import Breakdown, FreshVector, PreallocatedBasis, inverse, iterate
from lanczosnet.krylov.space import has_long_basis, iterate_in_batches


class LanczosWithAdjoint(torch.autograd.Function):
    """(entries of S, unit start vector) -> basis `[..., step, node]`, gamma, beta `[graph, step]`, steps `[graph]`.

    Without re-orthogonalisation it serves small batches alone.
    """

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        start: Tensor,
        operator: Operator,
        num_steps: int,
        inner: InnerProduct,
        breakdown: Breakdown,
        fresh_vector: FreshVector | None,
        reorthogonalize: bool,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        block, diagonal, off_diagonal, steps = lanczos_iteration(
            operator,
            start,
            num_steps,
            inner,
            breakdown,
            fresh_vector=fresh_vector,
            reorthogonalize=reorthogonalize,
        )
        ctx.operator, ctx.inner = operator, inner
        ctx.restarts, ctx.reorthogonalize = fresh_vector is not None, reorthogonalize
        ctx.save_for_backward(values, start, block, diagonal, off_diagonal, steps)
        ctx.mark_non_differentiable(steps)
        return block[..., :-1, :], diagonal, off_diagonal, steps

    @staticmethod
    @first_order
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        _, _, basis, diagonal, off_diagonal, steps = ctx.saved_tensors
        if ctx.restarts:
            refuse_restarted(off_diagonal, steps)
        needs_values, needs_start = ctx.needs_input_grad[:2]
        # All processes have T, and each its own gradient of it.
        grads = grads[0], ctx.inner.total(grads[1]), ctx.inner.total(grads[2])
        image_grads, start_grad = lanczos_adjoint(
            ctx.operator, ctx.inner, basis, diagonal, off_diagonal, *grads, reorthogonalize=ctx.reorthogonalize
        )
        values_grad = None
        if needs_values:
            # One sampled product. Entry by entry this is the gradient up to an antisymmetric part, which any symmetric
            # way of filling S (an edge weight that appears as (i, j) and as (j, i)) cancels.
            values_grad = ctx.operator.sampled_product(image_grads.mT, basis[..., :-1, :].mT)
        return values_grad, start_grad if needs_start else None, None, None, None, None, None, None


@operation
def lanczos_iteration(
    operator: Operator,
    start: Tensor,
    num_steps: int,
    inner: InnerProduct,
    breakdown: Breakdown,
    *,
    fresh_vector: FreshVector | None = None,
    reorthogonalize: bool = True,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """num_steps + 1 Lanczos vectors `[..., step, node]`, gamma, beta and steps, zero after a breakdown; no gradient."""
    if reorthogonalize and fresh_vector is None:
        if has_long_basis(start, num_steps, inner):
            return iterate_in_batches(operator.product, start, num_steps, inner, breakdown)
        return orthonormal_iteration(operator, start, num_steps, inner, breakdown)
    basis = PreallocatedBasis(start, num_steps + 1)
    options = {"breakdown": breakdown, "fresh_vector": fresh_vector, "reorthogonalize": reorthogonalize}
    found = iterate(operator.product, start, num_steps, inner, basis, **options)  # type: ignore[arg-type]
    return basis.block, *found


@operation
def orthonormal_iteration(
    operator: Operator, start: Tensor, num_steps: int, inner: InnerProduct, breakdown: Breakdown
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same with two-pass Gram-Schmidt in every step, which is what a large graph costs beside its products."""
    basis = PreallocatedBasis(start, num_steps + 1)
    return basis.block, *iterate(operator.product, start, num_steps, inner, basis, breakdown=breakdown)


@operation
def lanczos_adjoint(
    operator: Operator,
    inner: InnerProduct,
    basis: Tensor,
    diagonal: Tensor,
    off_diagonal: Tensor,
    basis_grad: Tensor,
    diagonal_grad: Tensor,
    off_diagonal_grad: Tensor,
    *,
    reorthogonalize: bool = True,
) -> tuple[Tensor, Tensor]:
    """The cotangents of every S q_j, `[..., step, node]`, and of the start vector.

    The three-term recurrence has an adjoint of its own only as a Triton kernel; autograd serves elsewhere.
    """
    assert reorthogonalize
    num_steps = diagonal.shape[-1]
    recurrence = extended_tridiagonal(diagonal, off_diagonal)
    image_grads = torch.empty_like(basis[..., :-1, :])
    # What the projection of step k owes q_j lies along q_{k+1}: owed[k + 1, j] of it, paid when the sweep reaches j.
    owed = torch.zeros_like(recurrence)
    next_grad = torch.zeros_like(basis[..., 0, :])
    next_residual_grad = torch.zeros_like(next_grad)
    for j in reversed(range(num_steps)):
        gamma, beta = inner.spread(diagonal[..., j]), inner.spread(off_diagonal[..., j])
        gamma_grad = diagonal_grad[..., j]
        earlier, following = basis[..., : j + 1, :], basis[..., j + 1, :]
        residual_grad = _through_normalization(
            next_grad, following, off_diagonal[..., j], off_diagonal_grad[..., j], inner
        )
        overlap = inner.project(earlier, residual_grad)
        residual_grad = inner.without(residual_grad, earlier, overlap)
        owed[..., j + 1, : j + 1] = off_diagonal[..., j].unsqueeze(-1) * overlap
        image_grad = torch.addcmul(residual_grad, inner.spread(gamma_grad), basis[..., j, :])
        image_grads[..., j, :] = image_grad
        # gamma_j = q_j^T (S q_j) also sends its cotangent times S q_j, which the recurrence spells out.
        first = max(j - 1, 0)
        due = owed[..., first:, j] - gamma_grad.unsqueeze(-1) * recurrence[..., first:, j]
        next_grad = inner.without(basis_grad[..., j, :] + operator.product(image_grad), basis[..., first:, :], due)
        next_grad = next_grad.addcmul_(gamma, residual_grad, value=-1).addcmul_(beta, next_residual_grad, value=-1)
        next_residual_grad = residual_grad
    return image_grads, next_grad


def extended_tridiagonal(diagonal: Tensor, off_diagonal: Tensor) -> Tensor:
    """S Q_K = Q_{K+1} times this: T with the residual's row below it, `[graph, step + 1, step]`."""
    below = torch.nn.functional.pad(torch.diag_embed(off_diagonal), (0, 0, 1, 0))
    inside = torch.diag_embed(diagonal) + torch.diag_embed(off_diagonal[..., :-1], 1)
    return below + torch.nn.functional.pad(inside, (0, 0, 0, 1))


def _through_normalization(
    vector_grad: Tensor, vector: Tensor, length: Tensor, length_grad: Tensor, inner: InnerProduct
) -> Tensor:
    """Back through q = z / |z| and beta = |z|; nothing comes back where the iteration had ended."""
    factor = inverse(length, length > 0)
    along = inner.dot(vector, vector_grad).to(vector.dtype)
    return torch.addcmul(inner.spread(factor) * vector_grad, inner.spread(length_grad - factor * along), vector)


def refuse_restarted(off_diagonal: Tensor, steps: Tensor) -> None:
    reached = torch.arange(1, off_diagonal.shape[-1], device=steps.device) < steps.unsqueeze(-1)
    if bool((reached & (off_diagonal[..., :-1] == 0)).any()):
        raise RuntimeError(
            "the Lanczos iteration was restarted after a breakdown, where its vectors have no derivative: "
            "differentiate f(S) with lanczosnet.krylov.matrix_function, or use on_breakdown='pad'"
        )
