"""Jacobi's method as a Triton kernel, one program per matrix: `backends.jacobi` that stops when it is done."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from lanczosnet.backends.jacobi import SWEEPS, padded_size

# The share of the squared entries off the diagonal at which a matrix counts as diagonal.
CLOSE = {torch.float32: 1e-13, torch.float64: 1e-28}


def eigenpairs(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues `[..., n]` and eigenvectors `[..., n, n]`, without waiting for the device."""
    n, sweeps = matrix.shape[-1], SWEEPS[matrix.dtype]
    matrix = matrix.contiguous()
    values, vectors = matrix.new_empty(matrix.shape[:-1]), torch.empty_like(matrix)
    count = values.numel() // n
    if count:
        size, close = padded_size(n), CLOSE[matrix.dtype]
        warps = 1 if size == 4 else 4
        _jacobi[(count,)](matrix, values, vectors, n, SIZE=size, SWEEPS=sweeps, CLOSE=close, num_warps=warps)
    return values, vectors


@triton.jit
def _jacobi(matrix, values, vectors, n, SIZE: tl.constexpr, SWEEPS: tl.constexpr, CLOSE: tl.constexpr):  # type: ignore[no-untyped-def]
    program = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, SIZE)
    row, column = place[:, None], place[None, :]
    inside, on_diagonal = (row < n) & (column < n), row == column
    at = program * n * n + row * n + column
    A = tl.load(matrix + at, mask=inside, other=0.0)
    V = tl.where(on_diagonal, 1.0, 0.0).to(A.dtype)
    turns: tl.constexpr = SIZE - 1
    whole = tl.sum(tl.sum(A * A, 1), 0)
    rest = whole  # what is not on the diagonal yet
    sweep = 0
    while (sweep < SWEEPS) & (rest > CLOSE * whole):
        for turn in range(turns):
            partner = (2 * turn - place + turns) % turns
            partner = tl.where(place == turns, turn, tl.where(place == turn, turns, partner))
            is_partner = row == partner[None, :]
            diagonal = tl.where(on_diagonal, A, 0.0)
            other = tl.sum(tl.where(is_partner, tl.sum(diagonal, 1)[:, None], 0.0), 0)
            met = tl.where(is_partner, A, 0.0)
            between = (tl.sum(met, 0) + tl.sum(met, 1)) * 0.5  # bitwise the same for both partners
            gap = (other - tl.sum(diagonal, 0)) * 0.5
            sign = tl.where((gap > 0) | ((gap == 0) & (place < partner)), 1.0, -1.0)
            length = tl.abs(gap) + tl.sqrt(gap * gap + between * between)
            tangent = tl.where(length > 0, sign * between / tl.where(length > 0, length, 1.0), 0.0)
            square = 1.0 + tangent * tangent
            cosine = 1.0 / tl.sqrt(square)
            # The fast root is always wrong to the same side, which hundreds of turns add up: one step of Newton's.
            cosine = (cosine * (1.5 - 0.5 * square * cosine * cosine)).to(A.dtype)
            sine = (tangent * cosine).to(A.dtype)
            index = tl.broadcast_to(partner[None, :], (SIZE, SIZE))
            A = A * cosine[None, :] - tl.gather(A, index, 1) * sine[None, :]
            A = tl.trans(A)  # what is left to do with the rows is then the same again, and the result is symmetric
            A = A * cosine[None, :] - tl.gather(A, index, 1) * sine[None, :]
            V = V * cosine[None, :] - tl.gather(V, index, 1) * sine[None, :]
        rest = tl.sum(tl.sum(tl.where(on_diagonal, 0.0, A * A), 1), 0)
        sweep += 1
    tl.store(values + program * n + place, tl.sum(tl.where(on_diagonal, A, 0.0), 0), mask=place < n)
    tl.store(vectors + at, V, mask=inside)
