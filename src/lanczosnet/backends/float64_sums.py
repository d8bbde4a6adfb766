"""Long float32 sums on a CPU, put together in float64; it costs nothing."""

import torch
from torch import Tensor

from lanczosnet.backends.conditions import LONGEST_FLOAT32_SUM


def project(basis: Tensor, vector: Tensor) -> Tensor:
    """`krylov.inner_product.project` in pieces."""
    pieces = zip(basis.split(LONGEST_FLOAT32_SUM, -1), vector.split(LONGEST_FLOAT32_SUM), strict=True)
    return torch.stack([part @ piece for part, piece in pieces]).sum(0, dtype=torch.float64).to(vector.dtype)
