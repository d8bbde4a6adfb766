"""S of a learned graph kernel (Eq. 9, then D^-1/2 (A + I) D^-1/2) for batches of small graphs as Triton kernels.

One program for each graph, forwards and backwards, in place of some sixty operations, of which those on the differences
of all pairs of nodes move a hundred times as much memory. It is held to `kernel.dense_kernel_adjacency` and
`normalization.normalized`.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from lanczosnet.backends.autograd import first_order

SMALLEST = 16  # nodes of a tile
TINY = torch.finfo(torch.float32).tiny


def learned_affinity(embedding: Tensor, pattern: Tensor, mask: Tensor, *, self_loops: bool) -> Tensor:
    """`affinity.kernel.learned_affinity`."""
    return LearnedAffinity.apply(embedding, pattern, mask.to(embedding.dtype), self_loops)


class LearnedAffinity(torch.autograd.Function):
    """S, `[graph, node, node]`, of float32 embeddings `[graph, node, channel]`; a gradient for these alone.

    The pattern, `[graph, node, node]`, has ones on edges, and the mask, `[graph, node]`, on nodes. Where self-loops are
    not added, nodes without an edge still get one.
    """

    @staticmethod
    def forward(ctx: Any, embedding: Tensor, pattern: Tensor, mask: Tensor, self_loops: bool) -> Tensor:
        tensors = [tensor.contiguous() for tensor in (embedding, pattern, mask)]
        ctx.save_for_backward(*tensors)
        ctx.self_loops = self_loops
        found = torch.empty_like(tensors[1])
        _forward[(len(embedding),)](*tensors, found, **_sizes(embedding, self_loops))
        return found

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        embedding, pattern, mask = ctx.saved_tensors
        found = torch.empty_like(embedding)
        sizes = _sizes(embedding, ctx.self_loops)
        _backward[(len(embedding),)](embedding, pattern, mask, grad.contiguous(), found, **sizes)
        return found, None, None, None


def _sizes(embedding: Tensor, self_loops: bool) -> dict[str, Any]:
    _, num_nodes, num_channels = embedding.shape
    nodes = max(SMALLEST, triton.next_power_of_2(num_nodes))
    return {"N": num_nodes, "C": num_channels, "LOOPS": self_loops, "NODES": nodes, "TINY": TINY, "num_warps": 4}


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    embedding, pattern, mask, found,
    N: tl.constexpr, C: tl.constexpr, LOOPS: tl.constexpr, NODES: tl.constexpr, TINY: tl.constexpr,
):  # fmt: skip
    graph, node = tl.program_id(0).to(tl.int64), tl.arange(0, NODES)
    distance, edges = _distances(embedding, pattern, graph, N, C, NODES)
    weight, _, _ = _weights(distance, edges, TINY)
    weight, _, scale = _looped(weight, mask, graph, N, LOOPS, NODES)
    place = (graph * N + node[:, None]) * N + node[None, :]
    inside = (node[:, None] < N) & (node[None, :] < N)
    tl.store(found + place, scale[:, None] * weight * scale[None, :], mask=inside)


@triton.jit
def _backward(  # type: ignore[no-untyped-def]
    embedding, pattern, mask, grad, found,
    N: tl.constexpr, C: tl.constexpr, LOOPS: tl.constexpr, NODES: tl.constexpr, TINY: tl.constexpr,
):  # fmt: skip
    graph, node = tl.program_id(0).to(tl.int64), tl.arange(0, NODES)
    distance, edges = _distances(embedding, pattern, graph, N, C, NODES)
    bare, mean, is_mean = _weights(distance, edges, TINY)
    weight, degree, scale = _looped(bare, mask, graph, N, LOOPS, NODES)
    place = (graph * N + node[:, None]) * N + node[None, :]
    inside = (node[:, None] < N) & (node[None, :] < N)
    g = tl.load(grad + place, mask=inside, other=0.0)
    # S_ij = s_i a_ij s_j with s = degree^-1/2
    product = g * weight
    of_scale = tl.sum(product * scale[None, :], 1) + tl.sum(product * scale[:, None], 0)
    of_degree = -0.5 * of_scale * scale / tl.where(degree > 0, degree, 1.0)
    of_weight = scale[:, None] * g * scale[None, :] + of_degree[:, None]
    # a = exp(-d / mean) on edges, with the mean of all d
    of_distance = -of_weight * bare / mean
    of_mean = tl.sum(tl.sum(of_weight * bare * distance, 1), 0) / (mean * mean)
    count = tl.maximum(tl.sum(tl.sum(edges, 1), 0), 1.0)
    of_distance = of_distance + tl.where(is_mean, of_mean / count, 0.0) * edges
    # d_ij = |x_i - x_j|^2, counted once for (i, j) and once for (j, i)
    both = of_distance + tl.trans(of_distance)
    for channel in range(C):
        at = (graph * N + node) * C + channel
        x = tl.load(embedding + at, mask=node < N, other=0.0)
        tl.store(found + at, 2.0 * tl.sum(both * (x[:, None] - x[None, :]), 1), mask=node < N)


@triton.jit
def _distances(  # type: ignore[no-untyped-def]
    embedding, pattern, graph, N: tl.constexpr, C: tl.constexpr, NODES: tl.constexpr
):
    """Squared, on edges, and where those are, `[node, node]`."""
    node = tl.arange(0, NODES)
    inside = (node[:, None] < N) & (node[None, :] < N)
    edges = tl.load(pattern + (graph * N + node[:, None]) * N + node[None, :], mask=inside, other=0.0)
    distance = tl.zeros([NODES, NODES], tl.float32)
    for channel in range(C):
        x = tl.load(embedding + (graph * N + node) * C + channel, mask=node < N, other=0.0)
        difference = x[:, None] - x[None, :]
        distance += difference * difference
    return distance * edges, edges


@triton.jit
def _weights(distance, edges, TINY: tl.constexpr):  # type: ignore[no-untyped-def]
    """Of edges; the mean distance or one; and whether it is the mean."""
    mean = tl.sum(tl.sum(distance, 1), 0) / tl.maximum(tl.sum(tl.sum(edges, 1), 0), 1.0)
    is_mean = mean > TINY
    mean = tl.where(is_mean, mean, 1.0)
    return tl.exp(-distance / mean) * edges, mean, is_mean


@triton.jit
def _looped(  # type: ignore[no-untyped-def]
    weight, mask, graph, N: tl.constexpr, LOOPS: tl.constexpr, NODES: tl.constexpr
):
    """With self-loops; the degrees; and the powers -1/2 of these, zero where there is none."""
    node = tl.arange(0, NODES)
    loops = tl.load(mask + graph * N + node, mask=node < N, other=0.0)
    if not LOOPS:
        loops = tl.where(tl.sum(weight, 1) == 0, loops, 0.0)
    weight = weight + tl.where(node[:, None] == node[None, :], loops[:, None], 0.0)
    degree = tl.sum(weight, 1)
    return weight, degree, tl.where(degree > 0, 1.0 / tl.sqrt(tl.where(degree > 0, degree, 1.0)), 0.0)
