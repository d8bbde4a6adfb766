"""Eigenpairs of many small symmetric matrices at once."""

import torch
from torch import Tensor

from lanczosnet.backends import operation


def symmetric_eigen(matrix: Tensor, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Eigenvalues `[..., n]` in no particular order and eigenvectors `[..., n, n]` of symmetric `[..., n, n]`.

    Computed in `dtype`, which is that of the results. No gradient.
    """
    return symmetric_eigenpairs(matrix.detach().to(dtype))


@operation
def symmetric_eigenpairs(matrix: Tensor) -> tuple[Tensor, Tensor]:
    return torch.linalg.eigh(matrix)
