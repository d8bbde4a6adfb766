"""The Arnoldi algorithm: what Lanczos becomes when the operator is not symmetric (the paper's footnote 1)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import Operator
from lanczosnet.krylov.iteration import (
    Basis,
    PreallocatedBasis,
    RecordedBasis,
    inverse,
    orthogonalized,
)
from lanczosnet.krylov.lanczos import in_full_precision
from lanczosnet.krylov.matrices import Matrix, opened
from lanczosnet.krylov.setup import Setup, prepare


class HessenbergDecomposition(NamedTuple):
    """A Q = Q H + h_K q_{K+1} e_K^T with orthonormal Q. Past a graph's `steps` everything is zero."""

    basis: Tensor  # Q, [..., node, step]
    hessenberg: Tensor  # H, [..., step, step], zero below the first subdiagonal
    residual: Tensor  # h_K, [...], the length of what the basis leaves out
    steps: Tensor  # [...], the dimension of the Krylov space that was found
    segment: Tensor | None = None  # [node], which graph a node belongs to


def arnoldi(
    operator: Operator | Callable[[Tensor], Tensor] | Matrix,
    start: Tensor | None = None,
    num_steps: int = 20,
    *,
    segment: Tensor | None = None,
    working_dtype: torch.dtype | None = None,
) -> HessenbergDecomposition:
    """Run `num_steps` steps of the Arnoldi algorithm; arguments and shapes are those of `lanczos`, and no
    symmetry is required.

    Exhausted Krylov spaces are padded with zeros, and gradients are recorded by autograd.
    """
    operator, start = opened(operator, start, symmetric=False)
    with in_full_precision(operator, start):
        setup = prepare(operator, start, num_steps, segment, working_dtype)
        basis: Basis = RecordedBasis() if torch.is_grad_enabled() else PreallocatedBasis(setup.start, num_steps + 1)
        extended, steps = _iterate(setup, num_steps, basis)
    hessenberg, residual = extended[..., :-1, :], extended[..., -1, -1]
    vectors = basis.matrix()[..., :-1, :].mT
    dtype = setup.dtype
    return HessenbergDecomposition(vectors.to(dtype), hessenberg.to(dtype), residual.to(dtype), steps, setup.segment)


def _iterate(setup: Setup, num_steps: int, basis: Basis) -> tuple[Tensor, Tensor]:
    """Fill the basis; return H with the residual's row below it, `[graph, step + 1, step]`, and the steps taken."""
    inner, dtype = setup.inner, setup.start.dtype
    vector = basis.append(setup.start, 1.0)
    columns, present = [], [inner.norm(vector) > 0]
    for step in range(num_steps):
        image = setup.product(vector)
        if step == 0:
            threshold = setup.breakdown.threshold(image, inner)
        residual, overlap = orthogonalized(image, basis.matrix(), inner)
        length = inner.norm(residual)
        goes_on = length > threshold
        vector = basis.append(residual, inner.spread(inverse(length, goes_on).to(dtype)))
        column = torch.cat([overlap, (length * goes_on).to(dtype).unsqueeze(-1)], -1)
        columns.append(torch.nn.functional.pad(column, (0, num_steps - step - 1)))
        present.append(goes_on)
    return torch.stack(columns, -1), torch.stack(present[:-1], -1).sum(-1)
