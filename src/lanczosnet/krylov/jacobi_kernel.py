"""Jacobi's method as a Triton kernel, one program per matrix: the same as `symmetric_eigen.jacobi`, step by step."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from lanczosnet.krylov.symmetric_eigen import padded_size


def jacobi_on_device(matrix: Tensor, sweeps: int) -> tuple[Tensor, Tensor]:
    """Eigenvalues `[..., n]` and eigenvectors `[..., n, n]`, without waiting for the device."""
    n = matrix.shape[-1]
    matrix = matrix.contiguous()
    values, vectors = matrix.new_empty(matrix.shape[:-1]), torch.empty_like(matrix)
    count = values.numel() // n
    if count:
        _jacobi[(count,)](matrix, values, vectors, n, SIZE=padded_size(n), SWEEPS=sweeps, num_warps=4)
    return values, vectors


@triton.jit
def _jacobi(matrix, values, vectors, n, SIZE: tl.constexpr, SWEEPS: tl.constexpr):  # type: ignore[no-untyped-def]
    program = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, SIZE)
    row, column = place[:, None], place[None, :]
    inside = (row < n) & (column < n)
    at = program * n * n + row * n + column
    A = tl.load(matrix + at, mask=inside, other=0.0)
    V = tl.where(row == column, 1.0, 0.0).to(A.dtype)
    turns: tl.constexpr = SIZE - 1
    for step in range(SWEEPS * turns):
        turn = step % turns
        partner = (2 * turn - place + turns) % turns
        partner = tl.where(place == turns, turn, tl.where(place == turn, turns, partner))
        is_partner = row == partner[None, :]
        on_diagonal = row == column
        own = tl.sum(tl.where(on_diagonal, A, 0.0), 0)
        own_by_row = tl.sum(tl.where(on_diagonal, A, 0.0), 1)
        other = tl.sum(tl.where(is_partner, own_by_row[:, None], 0.0), 0)
        met = tl.where(is_partner, A, 0.0)
        between = (tl.sum(met, 0) + tl.sum(met, 1)) * 0.5  # bitwise the same for both partners
        gap = (other - own) * 0.5
        sign = tl.where((gap > 0) | ((gap == 0) & (place < partner)), 1.0, -1.0)
        length = tl.abs(gap) + tl.sqrt(gap * gap + between * between)
        tangent = tl.where(length > 0, sign * between / tl.where(length > 0, length, 1.0), 0.0)
        cosine = (1.0 / tl.sqrt(1.0 + tangent * tangent)).to(A.dtype)
        sine = (tangent * cosine).to(A.dtype)
        index = tl.broadcast_to(partner[None, :], (SIZE, SIZE))
        A = A * cosine[None, :] - tl.gather(A, index, 1) * sine[None, :]
        A = tl.trans(A)
        A = A * cosine[None, :] - tl.gather(A, index, 1) * sine[None, :]
        V = V * cosine[None, :] - tl.gather(V, index, 1) * sine[None, :]
    found = tl.sum(tl.where(row == column, A, 0.0), 0)
    tl.store(values + program * n + place, found, mask=place < n)
    tl.store(vectors + at, V, mask=inside)
