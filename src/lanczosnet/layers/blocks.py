"""Convolutions on padded blocks of one shape: few products, and nothing that depends on what the graphs look like.

A signal is `[graph x node, channel]`, the nodes of every graph at fixed places and padding among them. An operator that
is zero in the columns of padding keeps what stands there out of everything else; only a readout has to look away.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lanczosnet.krylov import matrix_powers


def block_convolution(x: Tensor, operators: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """[O_1 X ... O_T X] W + b as two products.

    Args:
        x: `[graph x node, in_channels]`.
        operators: `[graph, node, term, node]`; the Krylov part, which keeps its precision under autocast.
        weight: `[term x in_channels, out_channels]`.
        bias: `[out_channels]`.
    """
    terms = block_product(operators.flatten(1, 2), x).reshape(len(x), -1).to(weight.dtype)
    return terms @ weight if bias is None else torch.addmm(bias, terms, weight)


def block_product(operators: Tensor, x: Tensor) -> Tensor:
    """O X for `[graph, row, node]` and `[graph x node, channel]` -> `[graph, row, channel]`."""
    with torch.autocast(x.device.type, enabled=False):
        dtype = torch.promote_types(operators.dtype, x.dtype)
        return operators.to(dtype) @ x.unflatten(0, (len(operators), -1)).to(dtype)


def stacked_powers(matrix: Tensor, exponents: Sequence[int]) -> Tensor:
    """Powers of `[graph, node, node]`, one per term: `[graph, node, exponent, node]`."""
    if not exponents:
        return matrix.unsqueeze(2)[:, :, :0]
    return matrix_powers(matrix, exponents).movedim(1, 2).contiguous()


def spectral_operators(vectors: Tensor, response: Tensor) -> Tensor:
    """V f_i(R) V^T of every layer and scale, in full precision.

    `[graph, node, step]` and `[graph, step, layer, scale]` -> `[graph, layer, node, scale, node]`.
    """
    with torch.autocast(vectors.device.type, enabled=False):
        spread = response.to(vectors.dtype).permute(0, 2, 3, 1).unsqueeze(2)  # [graph, layer, 1, scale, step]
        scaled = vectors[:, None, :, None] * spread
        return (scaled.flatten(1, 3) @ vectors.mT).unflatten(1, scaled.shape[1:4])


def layer_operators(short: Tensor, long: Tensor, typed: Tensor) -> tuple[Tensor, ...]:
    """All terms of every layer, `[graph, node, term, node]`, in the order that the layers' weights have.

    Args:
        short: `[graph, node, scale, node]`, the same in every layer.
        long: `[graph, layer, node, scale, node]`.
        typed: `[graph, node, type, node]`, the same in every layer.
    """
    every = [part.unsqueeze(1).expand(-1, long.shape[1], -1, -1, -1) for part in (short, typed)]
    return torch.cat([every[0], long, every[1]], 3).unbind(1)
