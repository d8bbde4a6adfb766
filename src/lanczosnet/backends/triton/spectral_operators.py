"""`batching.formed.layer_matrices` as Triton kernels: every term of every layer is written once."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from lanczosnet.backends.autograd import first_order

SMALLEST = 16  # sides of a tile, and steps at a time


def layer_matrices(vectors: Tensor, response: Tensor, short: Tensor, typed: Tensor) -> Tensor:
    return LayerMatrices.apply(vectors, response, short, typed)


class LayerMatrices(torch.autograd.Function):
    """V f_i(R) V^T of every layer between what all layers have, float32.

    `[graph, node, step]`, `[graph, step, layer, scale]`, `[graph, node, scale, node]`, `[graph, node, type, node]` ->
    `[graph, layer, node, term, node]`. The response alone has a gradient.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, response: Tensor, short: Tensor, typed: Tensor) -> Tensor:
        vectors, response, short, typed = (part.contiguous() for part in (vectors, response, short, typed))
        ctx.save_for_backward(vectors)
        num_graphs, num_nodes, num_steps = vectors.shape
        num_layers, num_scales = response.shape[2:]
        num_terms = short.shape[2] + num_scales + typed.shape[2]
        ctx.sizes = {
            "N": num_nodes, "K": num_steps, "L": num_layers, "SHORT": short.shape[2], "LONG": num_scales,
            "TERMS": num_terms, "NODES": max(triton.next_power_of_2(num_nodes), SMALLEST), "STEPS": SMALLEST,
            "num_warps": 4,
        }  # fmt: skip
        found = vectors.new_empty(num_graphs, num_layers, num_nodes, num_terms, num_nodes)
        if found.numel():
            _operators[(num_graphs, num_layers, num_terms)](vectors, response, short, typed, found, **ctx.sizes)
        return found

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None, None]:
        (vectors,) = ctx.saved_tensors
        num_layers, num_scales = ctx.sizes["L"], ctx.sizes["LONG"]
        found = vectors.new_empty(len(vectors), vectors.shape[2], num_layers, num_scales)
        if found.numel():
            _responses[(len(vectors), num_layers, num_scales)](vectors, grad.contiguous(), found, **ctx.sizes)
        return None, found, None, None


@triton.jit
def _operators(  # type: ignore[no-untyped-def]
    vectors, response, short, typed, found,
    N: tl.constexpr, K: tl.constexpr, L: tl.constexpr, SHORT: tl.constexpr, LONG: tl.constexpr, TERMS: tl.constexpr,
    NODES: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    graph, layer, term = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    node = tl.arange(0, NODES)
    inside = (node[:, None] < N) & (node[None, :] < N)
    place = found + (((graph * L + layer) * N + node[:, None]) * TERMS + term) * N + node[None, :]
    if term < SHORT:
        value = tl.load(short + ((graph * N + node[:, None]) * SHORT + term) * N + node[None, :], mask=inside)
        tl.store(place, value, mask=inside)
    elif term >= SHORT + LONG:
        TYPES: tl.constexpr = TERMS - SHORT - LONG
        row = (graph * N + node[:, None]) * TYPES + term - SHORT - LONG
        tl.store(place, tl.load(typed + row * N + node[None, :], mask=inside), mask=inside)
    else:
        total = tl.zeros([NODES, NODES], tl.float32)
        for begin in range(0, K, STEPS):
            step = begin + tl.arange(0, STEPS)
            weight = _response(response, graph, step, layer, term - SHORT, K, L, LONG)
            v = _vectors(vectors, graph, node, step, N, K)
            total += tl.dot(v * weight[None, :], tl.trans(v), input_precision="tf32x3")
        tl.store(place, total, mask=inside)


@triton.jit
def _responses(  # type: ignore[no-untyped-def]
    vectors, grad, found,
    N: tl.constexpr, K: tl.constexpr, L: tl.constexpr, SHORT: tl.constexpr, LONG: tl.constexpr, TERMS: tl.constexpr,
    NODES: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """v^T G v for every step's v."""
    graph, layer, scale = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    node = tl.arange(0, NODES)
    row = ((graph * L + layer) * N + node[:, None]) * TERMS + SHORT + scale
    g = tl.load(grad + row * N + node[None, :], mask=(node[:, None] < N) & (node[None, :] < N), other=0.0)
    for begin in range(0, K, STEPS):
        step = begin + tl.arange(0, STEPS)
        v = _vectors(vectors, graph, node, step, N, K)
        value = tl.sum(v * tl.dot(g, v, input_precision="tf32x3"), 0)
        tl.store(found + ((graph * K + step) * L + layer) * LONG + scale, value, mask=step < K)


@triton.jit
def _vectors(vectors, graph, node, step, N: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
    inside = (node[:, None] < N) & (step[None, :] < K)
    return tl.load(vectors + (graph * N + node[:, None]) * K + step[None, :], mask=inside, other=0.0)


@triton.jit
def _response(response, graph, step, layer, scale, K: tl.constexpr, L: tl.constexpr, LONG: tl.constexpr):  # type: ignore[no-untyped-def]
    return tl.load(response + ((graph * K + step) * L + layer) * LONG + scale, mask=step < K, other=0.0)
