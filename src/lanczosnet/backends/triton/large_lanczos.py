"""Algorithm 1 for a large sparse graph on a GPU, or for components that are ranges of its nodes: four kernels a step.

`adjoint.orthonormal_iteration` starts thirty operations for every step, and goes through the earlier vectors four
times. Here each strip of nodes has a program, which leaves its share of all sums to the next kernel; the vectors are
read three times. Sums of tiles are added up in float64, always in the same order.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

MOST_PROGRAMS = 256  # a power of two; of all ranges: every program reads the sums of all others of its range
NUMBERS = 4096  # of a tile of earlier vectors
NODES = 1024  # of a tile of one vector
ROWS = 16  # of other programs' sums, read at a time


def iterate(
    operator: Any, start: Tensor, num_steps: int, inner: Any, breakdown: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """num_steps + 1 Lanczos vectors `[step, node]` and their coefficients, per range if there are several."""
    num_nodes, sizes = len(start), getattr(inner, "sizes", [len(start)])
    bounds = _bounds(sizes, start.device)
    num_programs = max(1, min(MOST_PROGRAMS // len(sizes), triton.cdiv(max(sizes), NODES)))
    block = start.new_empty(num_steps + 1, num_nodes)
    rows = block.unbind(0)
    rows[0].copy_(start)
    once, twice = start.new_empty(2, num_nodes).unbind(0)
    width = _padded(num_steps)
    first, second, squares = start.new_empty(3, len(sizes), num_programs, width, dtype=torch.float64).unbind(0)
    diagonal, off_diagonal = start.new_empty(2, len(sizes), num_steps).unbind(0)
    threshold: Any = None
    grid = (len(sizes), num_programs)
    for step in range(num_steps):
        image = operator.product(rows[step])
        if threshold is None:
            threshold = breakdown.threshold(image, inner).double().view(-1).contiguous()
        size = num_nodes, step + 1, num_programs, width
        vectors = _padded(step + 1)
        shape = {"VECTORS": vectors, "NODES": NUMBERS // vectors, "num_warps": 4}
        _project[grid](block, image, first, bounds, *size, **shape)
        _without[grid](block, image, first, once, second, bounds, *size, LAST=False, ROWS=ROWS, **shape)
        _without[grid](block, once, second, twice, squares, bounds, *size, LAST=True, ROWS=ROWS, **shape)
        _normalize[grid](
            twice, rows[step + 1], first, second, squares, threshold, diagonal, off_diagonal, bounds,
            num_steps, step, num_programs, width, NODES=NODES, MOST=MOST_PROGRAMS, num_warps=4,
        )  # fmt: skip
    present = (inner.norm(start) > 0).view(-1, 1)
    steps = torch.cat([present, off_diagonal[:, :-1] > 0], 1).sum(1)
    if not hasattr(inner, "sizes"):
        return block, diagonal[0], off_diagonal[0], steps[0]
    return block, diagonal, off_diagonal, steps


def _bounds(sizes: list[int], device: torch.device) -> Tensor:
    """Where the ranges begin, and the last one ends; a captured step, which has one, may copy nothing from the host."""
    if len(sizes) == 1:
        return torch.arange(2, device=device) * sizes[0]
    return torch.tensor([0, *sizes]).cumsum(0).to(device)


def _padded(num_vectors: int) -> int:
    return max(8, triton.next_power_of_2(num_vectors))


@triton.jit
def _strip(bounds, of_range, program, num_programs, NODES: tl.constexpr):  # type: ignore[no-untyped-def]
    """The nodes of a program: whole tiles, but at the end of its range."""
    first, last = tl.load(bounds + of_range), tl.load(bounds + of_range + 1)
    tiles = (last - first + NODES - 1) // NODES
    per_program = (tiles + num_programs - 1) // num_programs * NODES
    begin = first + program * per_program
    return begin, tl.minimum(begin + per_program, last)


@triton.jit
def _added_up(sums, num_programs, width, VECTORS: tl.constexpr, ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
    """What all programs of a range have left, `[vector]`."""
    vector = tl.arange(0, VECTORS)
    total = tl.zeros([VECTORS], tl.float64)
    for first in range(0, num_programs, ROWS):
        program = first + tl.arange(0, ROWS)
        place = program[:, None] * width + vector[None, :]
        total += tl.sum(tl.load(sums + place, mask=(program < num_programs)[:, None], other=0.0), 0)
    return total


@triton.jit(do_not_specialize=["count", "num_programs", "width"])
def _project(  # type: ignore[no-untyped-def]
    basis, signal, sums, bounds, num_nodes, count, num_programs, width,
    VECTORS: tl.constexpr, NODES: tl.constexpr,
):  # fmt: skip
    """Q^T z of every strip, `[range, program, vector]`."""
    of_range, program = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    begin, end = _strip(bounds, of_range, program, num_programs, NODES)
    vector = tl.arange(0, VECTORS)
    row = basis + vector[:, None].to(tl.int64) * num_nodes
    total = tl.zeros([VECTORS], tl.float64)
    while begin < end:
        node = begin + tl.arange(0, NODES)
        z = tl.load(signal + node, mask=node < end, other=0.0)
        Q = tl.load(row + node[None, :], mask=(vector < count)[:, None] & (node < end)[None, :], other=0.0)
        total += tl.sum(Q * z[None, :], 1).to(tl.float64)
        begin += NODES
    tl.store(sums + (of_range * num_programs + program) * width + vector, total)


@triton.jit(do_not_specialize=["count", "num_programs", "width"])
def _without(  # type: ignore[no-untyped-def]
    basis, signal, known, result, sums, bounds, num_nodes, count, num_programs, width,
    VECTORS: tl.constexpr, NODES: tl.constexpr, ROWS: tl.constexpr,
    LAST: tl.constexpr,
):  # fmt: skip
    """z - Q c with the c that is known, and of every strip Q^T of that, or its square where it is the last."""
    of_range, program = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    begin, end = _strip(bounds, of_range, program, num_programs, NODES)
    vector = tl.arange(0, VECTORS)
    row = basis + vector[:, None].to(tl.int64) * num_nodes
    overlap = _added_up(known + of_range * num_programs * width, num_programs, width, VECTORS, ROWS)
    overlap = overlap.to(result.dtype.element_ty)
    total = tl.zeros([VECTORS], tl.float64)
    square = tl.zeros([NODES], tl.float64)
    while begin < end:
        node = begin + tl.arange(0, NODES)
        z = tl.load(signal + node, mask=node < end, other=0.0)
        Q = tl.load(row + node[None, :], mask=(vector < count)[:, None] & (node < end)[None, :], other=0.0)
        z = z - tl.sum(Q * overlap[:, None], 0)
        tl.store(result + node, z, mask=node < end)
        if LAST:
            wide = z.to(tl.float64)
            square += wide * wide
        else:
            total += tl.sum(Q * z[None, :], 1).to(tl.float64)
        begin += NODES
    if LAST:
        total = tl.where(vector == 0, tl.sum(square, 0), 0.0)
    tl.store(sums + (of_range * num_programs + program) * width + vector, total)


@triton.jit(do_not_specialize=["num_steps", "step", "num_programs", "width"])
def _normalize(  # type: ignore[no-untyped-def]
    residual, result, first, second, squares, threshold, diagonal, off_diagonal, bounds,
    num_steps, step, num_programs, width, NODES: tl.constexpr, MOST: tl.constexpr,
):  # fmt: skip
    """The next vector, gamma and beta; zero where the residual is no longer than its threshold."""
    of_range, program = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    begin, end = _strip(bounds, of_range, program, num_programs, NODES)
    other = tl.arange(0, MOST)
    place = (of_range * num_programs + other) * width
    length = tl.sqrt(tl.sum(tl.load(squares + place, mask=other < num_programs, other=0.0), 0))
    goes_on = length > tl.load(threshold + of_range)
    factor = tl.where(goes_on, 1.0 / tl.where(goes_on, length, 1.0), 0.0).to(result.dtype.element_ty)
    if program == 0:
        gamma = tl.sum(tl.load(first + place + step, mask=other < num_programs, other=0.0), 0)
        gamma += tl.sum(tl.load(second + place + step, mask=other < num_programs, other=0.0), 0)
        tl.store(diagonal + of_range * num_steps + step, gamma)
        tl.store(off_diagonal + of_range * num_steps + step, tl.where(goes_on, length, 0.0))
    while begin < end:
        node = begin + tl.arange(0, NODES)
        z = tl.load(residual + node, mask=node < end, other=0.0)
        tl.store(result + node, z * factor, mask=node < end)
        begin += NODES
