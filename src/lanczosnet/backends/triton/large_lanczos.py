"""Algorithm 1 for a large sparse graph on a GPU, or for components that are ranges of its nodes: three kernels a step.

`adjoint.orthonormal_iteration` starts thirty operations for every step, and goes through the earlier vectors four
times. Here each strip of nodes has a program, and the vectors are read three times. The last program to arrive adds up
what all have left, in float64 and always in the same order. A vector is divided by its length where it is first read.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

MOST_PROGRAMS = 396  # of all ranges: three for every multiprocessor of an H200
NUMBERS = 8192  # of a tile of earlier vectors
NODES = 512  # of a tile, at most
THREADS = 128  # of a program; each keeps sums of its own until the end
ROWS = 16  # of other programs' sums, read at a time


def iterate(
    operator: Any, start: Tensor, num_steps: int, inner: Any, breakdown: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """num_steps + 1 Lanczos vectors `[step, node]` and their coefficients, per range if there are several."""
    num_nodes, sizes = len(start), getattr(inner, "sizes", [len(start)])
    bounds = _bounds(sizes, start.device)
    num_programs = max(1, min(MOST_PROGRAMS // len(sizes), triton.cdiv(max(sizes), NODES)))
    block = start.new_empty(num_steps + 1, num_nodes)
    once, twice = start.new_empty(2, num_nodes).unbind(0)
    width = _padded(num_steps)
    sums = start.new_empty(len(sizes), num_programs, width, dtype=torch.float64)
    first, second = start.new_empty(2, len(sizes), width, dtype=torch.float64).unbind(0)
    arrived = torch.zeros(len(sizes), dtype=torch.int32, device=start.device)
    diagonal, off_diagonal = start.new_empty(2, len(sizes), num_steps).unbind(0)
    residual, factor = start, start.new_ones(len(sizes))
    threshold: Any = None
    grid = (len(sizes), num_programs)
    for step in range(num_steps):
        image = operator.product(residual)
        if threshold is None:
            threshold = breakdown.threshold(image, inner).double().view(-1).contiguous()
        vectors = _padded(step + 1)
        shared = sums, arrived, bounds, num_nodes, step + 1, num_programs, width
        shape = {"VECTORS": vectors, "NODES": min(NODES, NUMBERS // vectors), "THREADS": THREADS, "ROWS": ROWS}
        shape["num_warps"] = THREADS // 32
        _project[grid](block, residual, image, factor, first, *shared, **shape)
        ends = threshold, factor, diagonal, off_diagonal, num_steps
        _without[grid](block, image, first, once, second, *ends, *shared, LAST=False, **shape)
        _without[grid](block, once, second, twice, first, *ends, *shared, LAST=True, **shape)
        residual = twice
    for own, part, scale in zip(block[-1].split(sizes), residual.split(sizes), factor, strict=True):
        torch.mul(part, scale, out=own)
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
def _is_last(sums, arrived, own, of_range, program, num_programs, width, VECTORS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Leave a program's sums, and say whether all others of its range have left theirs."""
    tl.store(sums + (of_range * num_programs + program) * width + tl.arange(0, VECTORS), own)
    tl.debug_barrier()  # of all threads, before one of them arrives
    return tl.atomic_add(arrived + of_range, 1) == num_programs - 1


@triton.jit
def _added_up(sums, num_programs, width, VECTORS: tl.constexpr, ROWS: tl.constexpr):  # type: ignore[no-untyped-def]
    """What all programs of a range have left, `[vector]`."""
    vector = tl.arange(0, VECTORS)
    total = tl.zeros([VECTORS], tl.float64)
    for first in range(0, num_programs, ROWS):
        program = first + tl.arange(0, ROWS)
        place = sums + program[:, None] * width + vector[None, :]
        found = tl.load(place, mask=(program < num_programs)[:, None], other=0.0, cache_modifier=".cg")
        total += tl.sum(found, 0)
    return total


@triton.jit
def _by_thread(products, VECTORS: tl.constexpr, NODES: tl.constexpr, THREADS: tl.constexpr):  # type: ignore[no-untyped-def]
    """`[vector, node]` -> `[vector, thread]`: a thread has every THREADS-th node of a tile."""
    return tl.sum(tl.reshape(products, [VECTORS, NODES // THREADS, THREADS]), 1)


@triton.jit(do_not_specialize=["count", "num_programs", "width"])
def _project(  # type: ignore[no-untyped-def]
    basis, residual, image, factor, known, sums, arrived, bounds, num_nodes, count, num_programs, width,
    VECTORS: tl.constexpr, NODES: tl.constexpr, THREADS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The last vector of the basis, and Q^T z, `[range, vector]`."""
    of_range, program = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    begin, end = _strip(bounds, of_range, program, num_programs, NODES)
    vector = tl.arange(0, VECTORS)
    row = basis + vector[:, None].to(tl.int64) * num_nodes
    latest = basis + (count - 1).to(tl.int64) * num_nodes
    scale = tl.load(factor + of_range)
    total = tl.zeros([VECTORS, THREADS], basis.dtype.element_ty)
    while begin < end:
        node = begin + tl.arange(0, NODES)
        is_inside = node < end
        q = tl.load(residual + node, mask=is_inside, other=0.0) * scale
        tl.store(latest + node, q, mask=is_inside)
        z = tl.load(image + node, mask=is_inside, other=0.0) * scale
        Q = tl.load(row + node[None, :], mask=(vector < count - 1)[:, None] & is_inside[None, :], other=0.0)
        Q = tl.where((vector == count - 1)[:, None], q[None, :], Q)
        total += _by_thread(Q * z[None, :], VECTORS, NODES, THREADS)
        begin += NODES
    own = tl.sum(total.to(tl.float64), 1)
    if _is_last(sums, arrived, own, of_range, program, num_programs, width, VECTORS):
        found = _added_up(sums + of_range * num_programs * width, num_programs, width, VECTORS, ROWS)
        tl.store(known + of_range * width + vector, found)
        tl.store(arrived + of_range, 0)


@triton.jit(do_not_specialize=["num_steps", "count", "num_programs", "width"])
def _without(  # type: ignore[no-untyped-def]
    basis, signal, known, result, other, threshold, factor, diagonal, off_diagonal, num_steps,
    sums, arrived, bounds, num_nodes, count, num_programs, width,
    VECTORS: tl.constexpr, NODES: tl.constexpr, THREADS: tl.constexpr, ROWS: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    """z - Q c with the c that is known, and Q^T of that into the other.

    The last time gamma, of both, beta and 1 / beta instead. Those of beta are zero where it is below its threshold.
    """
    of_range, program = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    begin, end = _strip(bounds, of_range, program, num_programs, NODES)
    vector = tl.arange(0, VECTORS)
    row = basis + vector[:, None].to(tl.int64) * num_nodes
    overlap = tl.load(known + of_range * width + vector, mask=vector < count, other=0.0)
    overlap = overlap.to(result.dtype.element_ty)
    total = tl.zeros([VECTORS, THREADS], result.dtype.element_ty)
    square = tl.zeros([NODES], tl.float64)
    while begin < end:
        node = begin + tl.arange(0, NODES)
        is_inside = node < end
        z = tl.load(signal + node, mask=is_inside, other=0.0)
        if not LAST:
            z = z * tl.load(factor + of_range)
        Q = tl.load(row + node[None, :], mask=(vector < count)[:, None] & is_inside[None, :], other=0.0)
        z = z - tl.sum(Q * overlap[:, None], 0)
        tl.store(result + node, z, mask=is_inside)
        if LAST:
            wide = z.to(tl.float64)
            square += wide * wide
        else:
            total += _by_thread(Q * z[None, :], VECTORS, NODES, THREADS)
        begin += NODES
    own = tl.where(vector == 0, tl.sum(square, 0), 0.0) if LAST else tl.sum(total.to(tl.float64), 1)
    if _is_last(sums, arrived, own, of_range, program, num_programs, width, VECTORS):
        all_of_it = _added_up(sums + of_range * num_programs * width, num_programs, width, VECTORS, ROWS)
        if LAST:
            length = tl.sqrt(tl.sum(all_of_it, 0))
            goes_on = length > tl.load(threshold + of_range)
            tl.store(factor + of_range, tl.where(goes_on, 1.0 / tl.where(goes_on, length, 1.0), 0.0))
            place = of_range * width + count - 1
            gamma = tl.load(known + place) + tl.load(other + place)
            tl.store(diagonal + of_range * num_steps + count - 1, gamma)
            tl.store(off_diagonal + of_range * num_steps + count - 1, tl.where(goes_on, length, 0.0))
        else:
            tl.store(other + of_range * width + vector, all_of_it)
        tl.store(arrived + of_range, 0)
