"""The Arnoldi algorithm: what Lanczos becomes when the operator is not symmetric (the paper's footnote 1)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import Operator
from lanczosnet.krylov.inner_product import inner_product
from lanczosnet.krylov.iteration import BREAKDOWN_TOLERANCE, PreallocatedBasis, RecordedBasis, orthogonalized, unit
from lanczosnet.krylov.lanczos import check_start, prepared_start, working_type


class HessenbergDecomposition(NamedTuple):
    """A Q = Q H + h_K q_{K+1} e_K^T with orthonormal Q. Past a graph's `steps` everything is zero."""

    basis: Tensor  # Q, [..., node, step]
    hessenberg: Tensor  # H, [..., step, step], zero below the first subdiagonal
    residual: Tensor  # h_K, [...], the length of what the basis leaves out
    steps: Tensor  # [...], the dimension of the Krylov space that was found
    segment: Tensor | None = None  # [node], which graph a node belongs to


def arnoldi(
    operator: Operator | Callable[[Tensor], Tensor],
    start: Tensor | None = None,
    num_steps: int = 20,
    *,
    segment: Tensor | None = None,
    working_dtype: torch.dtype | None = None,
) -> HessenbergDecomposition:
    """Run `num_steps` steps of the Arnoldi algorithm; arguments and shapes are those of `lanczos`.

    Exhausted Krylov spaces are padded with zeros, and gradients are recorded by autograd.
    """
    if num_steps < 1:
        raise ValueError(f"num_steps must be at least 1, but is {num_steps}")
    start, segment, num_segments = prepared_start(operator, start, segment)
    check_start(operator, start, segment)
    dtype, working_dtype = working_type(operator, start, num_steps, working_dtype)
    inner = inner_product(segment, num_segments)
    with torch.autocast(start.device.type, enabled=False):
        product = operator.to(working_dtype).product if isinstance(operator, Operator) else operator
        vector = unit(start.to(working_dtype), inner)
        basis = RecordedBasis() if torch.is_grad_enabled() else PreallocatedBasis(vector, num_steps)
        length = inner.norm(vector)
        steps = (length > 0).long()
        scale = torch.zeros_like(length)
        columns = []
        for step in range(num_steps):
            basis.append(vector)
            residual, overlap = orthogonalized(product(vector), basis.matrix(), inner)
            length = inner.norm(residual)
            scale = torch.maximum(scale, torch.maximum(overlap.detach().abs().amax(-1).double(), length.detach()))
            goes_on = length > BREAKDOWN_TOLERANCE[working_dtype] * scale
            length = length * goes_on
            vector = unit(residual * inner.spread(goes_on), inner)
            column = torch.cat([overlap, length.to(working_dtype).unsqueeze(-1)], -1)
            columns.append(torch.nn.functional.pad(column, (0, num_steps - step - 1)))
            if step + 1 < num_steps:
                steps = steps + goes_on
        extended = torch.stack(columns, -1)
    return HessenbergDecomposition(
        basis.matrix().mT.to(dtype), extended[..., :-1, :].to(dtype), length.to(dtype), steps, segment
    )
