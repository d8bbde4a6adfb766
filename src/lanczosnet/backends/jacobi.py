"""Jacobi's method in plain PyTorch: the reference of the Triton kernel, and its stand-in inside a CUDA graph.

LAPACK is the fastest on a CPU. On a GPU PyTorch's decomposition waits for the device, which a capture forbids.
"""

import math

import torch
from torch import Tensor

# Rounds of a sweep meet every pair of rows once; these many sweeps reach the rounding error of up to 32 rows.
SWEEPS = {torch.float32: 7, torch.float64: 9}


def eigenpairs(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues `[..., n]` and eigenvectors `[..., n, n]` by n / 2 rotations at a time."""
    size = matrix.shape[-1] + matrix.shape[-1] % 2
    extra = size - matrix.shape[-1]
    A = torch.nn.functional.pad(matrix, (0, extra, 0, extra))
    V = torch.eye(size, dtype=A.dtype, device=A.device).expand_as(A)
    for step in range(SWEEPS[matrix.dtype] * (size - 1)):
        partner = partners(size, step % (size - 1)).to(A.device)
        cosine, sine = _rotation(A, partner)
        A = _rotated(_rotated(A, partner, cosine, sine).mT, partner, cosine, sine)
        V = _rotated(V, partner, cosine, sine)
    n = matrix.shape[-1]
    return A.diagonal(dim1=-2, dim2=-1)[..., :n], V[..., :n, :n]


def partners(size: int, turn: int) -> Tensor:
    """Whom everyone meets in a turn of a round robin: the last one meets number `turn`, i meets 2 turn - i."""
    partner = (2 * turn - torch.arange(size)) % (size - 1)
    partner[turn], partner[size - 1] = size - 1, turn
    return partner


def _rotation(A: Tensor, partner: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine `[..., 1, n]` of the rotations that make the entries between partners zero."""
    places = torch.arange(len(partner), device=A.device)
    diagonal = A.diagonal(dim1=-2, dim2=-1)
    between = (A[..., partner, places] + A[..., places, partner]) / 2  # bitwise the same for both partners
    gap = (diagonal[..., partner] - diagonal) / 2
    # tan = between / (gap + sign(gap) sqrt(gap^2 + between^2)), where partners have opposite signs
    sign = torch.where((gap > 0) | ((gap == 0) & (places < partner)), 1.0, -1.0)
    length = gap.abs() + torch.hypot(gap, between)
    tangent = torch.where(length > 0, sign * between / torch.where(length > 0, length, 1.0), 0.0)
    cosine = 1.0 / (1.0 + tangent.square()).sqrt()
    return cosine.unsqueeze(-2), (tangent * cosine).unsqueeze(-2)


def _rotated(matrix: Tensor, partner: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    return matrix * cosine - matrix[..., partner] * sine


def padded_size(n: int) -> int:
    """The power of two that the Triton kernel works on: 4, or at least 16."""
    return 4 if n <= 4 else max(16, 2 ** math.ceil(math.log2(n)))
