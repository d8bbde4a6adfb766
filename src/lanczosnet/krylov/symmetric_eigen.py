"""Eigenpairs of many small symmetric matrices at once."""

import torch
from torch import Tensor

from lanczosnet.backends import operation


def symmetric_eigen(matrix: Tensor, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Eigenvalues `[..., n]` in no particular order and eigenvectors `[..., n, n]` of symmetric `[..., n, n]`.

    Computed in `dtype`, which is that of the results. No gradient.
    """
    return symmetric_eigenpairs(matrix.detach().to(dtype))


def sorted_eigen(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The same with rising eigenvalues, in the type of the matrix."""
    values, vectors = symmetric_eigen(matrix, matrix.dtype)
    values, order = values.sort(stable=True, dim=-1)
    return values, vectors.gather(-1, order.unsqueeze(-2).expand_as(vectors))


@operation
def symmetric_eigenpairs(matrix: Tensor) -> tuple[Tensor, Tensor]:
    return torch.linalg.eigh(matrix)
