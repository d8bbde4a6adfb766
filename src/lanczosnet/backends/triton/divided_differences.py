"""`krylov.functions.weighted_differences` as a Triton kernel: no divided difference is ever stored."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS, SCALES = 16, 8  # of a matrix, and at a time, for one program


@torch.no_grad()
def weighted_differences(values: Tensor, response: Tensor, slope: Tensor, rotated: Tensor, close: float) -> Tensor:
    """For `[graph, n]`, `[graph, scale, n]` twice and `[graph, n, scale, n]`, all of one type: `[graph, n, n]`."""
    num_graphs, n = values.shape
    found = values.new_empty(num_graphs, n, n)
    if found.numel():
        tensors = (tensor.contiguous() for tensor in (values, response, slope, rotated))
        _weighted[(num_graphs, triton.cdiv(n, ROWS))](*tensors, found, **_sizes(response, close))
    return found


def _sizes(response: Tensor, close: float) -> dict[str, Any]:
    _, num_scales, n = response.shape
    nodes = triton.next_power_of_2(max(n, 2))
    return {"N": n, "S": num_scales, "CLOSE": close, "NODES": nodes, "ROWS": ROWS, "SCALES": SCALES, "num_warps": 4}


@triton.jit
def _weighted(  # type: ignore[no-untyped-def]
    values, response, slope, rotated, found,
    N: tl.constexpr, S: tl.constexpr, CLOSE: tl.constexpr, NODES: tl.constexpr, ROWS: tl.constexpr,
    SCALES: tl.constexpr,
):  # fmt: skip
    graph = tl.program_id(0).to(tl.int64)
    i, j = tl.program_id(1) * ROWS + tl.arange(0, ROWS), tl.arange(0, NODES)
    left = tl.load(values + graph * N + i, mask=i < N, other=0.0)
    right = tl.load(values + graph * N + j, mask=j < N, other=0.0)
    gap = left[:, None] - right[None, :]
    is_close = tl.abs(gap) < CLOSE
    factor = 1.0 / tl.where(is_close, 1.0, gap)
    total = tl.zeros_like(gap)
    for begin in range(0, S, SCALES):
        scale = begin + tl.arange(0, SCALES)
        f_i, f_j = _both(response, graph, scale, i, j, N, S)
        slope_i, slope_j = _both(slope, graph, scale, i, j, N, S)
        quotient = (f_i[:, :, None] - f_j[None, :, :]) * factor[:, None, :]
        mean = (slope_i[:, :, None] + slope_j[None, :, :]) * 0.5
        inside = (i < N)[:, None, None] & (scale < S)[None, :, None] & (j < N)[None, None, :]
        place = ((graph * N + i)[:, None, None] * S + scale[None, :, None]) * N + j[None, None, :]
        weight = tl.load(rotated + place, mask=inside, other=0.0)
        total += tl.sum(tl.where(is_close[:, None, :], mean, quotient) * weight, 1)
    tl.store(found + (graph * N + i[:, None]) * N + j[None, :], total, mask=(i < N)[:, None] & (j < N)[None, :])


@triton.jit
def _both(table, graph, scale, i, j, N: tl.constexpr, S: tl.constexpr):  # type: ignore[no-untyped-def]
    """Numbers of scales and values, as `[i, scale]` and as `[scale, j]`."""
    at = (graph * S + scale) * N
    of_i = tl.load(table + at[None, :] + i[:, None], mask=(scale < S)[None, :] & (i < N)[:, None], other=0.0)
    of_j = tl.load(table + at[:, None] + j[None, :], mask=(scale < S)[:, None] & (j < N)[None, :], other=0.0)
    return of_i, of_j
