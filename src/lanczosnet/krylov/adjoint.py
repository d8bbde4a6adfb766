"""The gradient of the Lanczos iteration, by hand: O(node x step) memory and one more sweep, backwards.

Reading step j as z = (I - Q_j Q_j^T)(S q_j - gamma_j q_j - beta_{j-1} q_{j-1}), beta_j = |z|, q_{j+1} = z / beta_j, the
cotangent of z is orthogonal to Q_j: the same re-orthogonalisation as forward, without which the float32 gradient
drowns in rounding once a Ritz pair has converged.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lanczosnet.affinity import Operator
from lanczosnet.krylov.inner_product import InnerProduct, SegmentInnerProduct
from lanczosnet.krylov.iteration import FreshVector, PreallocatedBasis, iterate
from lanczosnet.krylov.small_graph import is_small_graph, iterate_small_graph


class LanczosWithAdjoint(torch.autograd.Function):
    """(entries of S, unit start vector) -> basis `[..., step, node]`, gamma, beta `[graph, step]`, steps `[graph]`."""

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        start: Tensor,
        operator: Operator,
        num_steps: int,
        inner: InnerProduct,
        scale: Tensor,
        fresh_vector: FreshVector | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        if is_small_graph(operator) and not isinstance(inner, SegmentInnerProduct) and fresh_vector is None:
            block, found = iterate_small_graph(operator, start, num_steps, scale)
        else:
            basis = PreallocatedBasis(start, num_steps + 1)
            found = iterate(operator.product, start, num_steps, inner, basis, scale=scale, fresh_vector=fresh_vector)
            block = basis.block
        ctx.operator, ctx.inner = operator, inner
        ctx.restarts = fresh_vector is not None
        ctx.save_for_backward(block, found.diagonal, found.off_diagonal, found.steps)
        ctx.mark_non_differentiable(found.steps)
        return block[..., :-1, :], *found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        basis, diagonal, off_diagonal, steps = ctx.saved_tensors
        if ctx.restarts:
            _refuse_restarted(off_diagonal, steps)
        needs_values, needs_start = ctx.needs_input_grad[:2]
        image_grads, start_grad = backward_sweep(ctx.operator, ctx.inner, basis, diagonal, off_diagonal, *grads[:3])
        values_grad = None
        if needs_values:
            # One sampled product. Entry by entry this is the gradient up to an antisymmetric part, which any symmetric
            # way of filling S (an edge weight that appears as (i, j) and as (j, i)) cancels.
            values_grad = ctx.operator.sampled_product(image_grads.mT, basis[..., :-1, :].mT)
        return values_grad, start_grad if needs_start else None, None, None, None, None, None


def backward_sweep(
    operator: Operator,
    inner: InnerProduct,
    basis: Tensor,
    diagonal: Tensor,
    off_diagonal: Tensor,
    basis_grad: Tensor,
    diagonal_grad: Tensor,
    off_diagonal_grad: Tensor,
) -> tuple[Tensor, Tensor]:
    """The cotangents of every S q_j, `[..., step, node]`, and of the start vector."""
    num_steps = diagonal.shape[-1]
    image_grads = torch.zeros_like(basis[..., :-1, :])
    # What the projection of step k owes q_j lies along q_{k+1}; debts[k, j] of it, paid when the sweep reaches j.
    debts = off_diagonal.new_zeros(*off_diagonal.shape, num_steps)
    next_grad = torch.zeros_like(basis[..., 0, :])
    next_residual_grad = torch.zeros_like(next_grad)
    for j in reversed(range(num_steps)):
        vector, following = basis[..., j, :], basis[..., j + 1, :]
        gamma_grad = inner.spread(diagonal_grad[..., j])
        residual_grad = _through_normalization(
            next_grad, following, off_diagonal[..., j], off_diagonal_grad[..., j], inner
        )
        overlap = inner.project(basis[..., : j + 1, :], residual_grad)
        residual_grad = inner.without(residual_grad, basis[..., : j + 1, :], overlap)
        debts[..., j, : j + 1] = off_diagonal[..., j].unsqueeze(-1) * overlap
        image_grad = residual_grad + gamma_grad * vector
        image_grads[..., j, :] = image_grad
        next_grad = (
            basis_grad[..., j, :]
            + operator.product(image_grad)
            + gamma_grad * _image(basis, diagonal, off_diagonal, j, inner)
            - inner.spread(diagonal[..., j]) * residual_grad
            - inner.spread(off_diagonal[..., j]) * next_residual_grad
            - inner.combine(basis[..., j + 1 :, :], debts[..., j:, j])
        )
        next_residual_grad = residual_grad
    return image_grads, next_grad


def _through_normalization(
    vector_grad: Tensor, vector: Tensor, length: Tensor, length_grad: Tensor, inner: InnerProduct
) -> Tensor:
    """Back through q = z / |z| and beta = |z|; nothing comes back where the iteration had ended."""
    inverse = torch.where(length > 0, 1.0 / torch.where(length > 0, length, torch.ones_like(length)), 0.0)
    along = inner.dot(vector, vector_grad).to(vector.dtype)
    return inner.spread(inverse) * vector_grad + inner.spread(length_grad - inverse * along) * vector


def _image(basis: Tensor, diagonal: Tensor, off_diagonal: Tensor, j: int, inner: InnerProduct) -> Tensor:
    """S q_j, read off the three-term recurrence."""
    first = max(j - 1, 0)
    coefficients = [diagonal[..., j], off_diagonal[..., j]]
    if j > 0:
        coefficients.insert(0, off_diagonal[..., j - 1])
    return inner.combine(basis[..., first : j + 2, :], torch.stack(coefficients, -1))


def _refuse_restarted(off_diagonal: Tensor, steps: Tensor) -> None:
    reached = torch.arange(1, off_diagonal.shape[-1], device=steps.device) < steps.unsqueeze(-1)
    if bool((reached & (off_diagonal[..., :-1] == 0)).any()):
        raise RuntimeError(
            "the Lanczos iteration was restarted after a breakdown, where its vectors have no derivative: "
            "differentiate f(S) with lanczosnet.krylov.matrix_function, or use on_breakdown='pad'"
        )
