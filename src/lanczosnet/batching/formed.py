"""Precomputed operators in padded blocks: few products, whatever the graphs look like.

An operator that is zero in the columns of padding keeps what stands there out of everything else; only a readout has to
mask it. Signals may therefore include padding, `[graph x node, channel]`, so that all shapes stay the same; or
leave it out, `[node, channel]`, where that costs nothing and arithmetic does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lanczosnet.affinity import Padding
from lanczosnet.affinity.operator import full_precision_product
from lanczosnet.backends import operation
from lanczosnet.backends.linear import linear
from lanczosnet.batching.graph_spectrum import RitzFilter
from lanczosnet.batching.terms import Terms
from lanczosnet.krylov import matrix_powers


@dataclass(frozen=True, eq=False)
class FormedOperators:
    """What layers multiply with in padded blocks, in place of a graph.

    Long scales are either among them, or filtered on Ritz pairs: more and smaller products, and a half to a tenth of
    the arithmetic.
    """

    matrix: Tensor  # [graph, node, term, node], or [channel, graph, node, node] where channels are kept apart
    padding: Padding
    long_scales: RitzFilter | None = None

    def convolve(self, terms: Terms, chosen: Any = None) -> Tensor:
        """Eq. 7 as [O_1 X ... O_T X] W + b."""
        if self.long_scales is None:
            return formed_convolution(terms.x, self, terms.by_term.flatten(0, 1), terms.bias)
        terms = terms.untied()
        short, _, typed = terms.weights
        y = formed_convolution(terms.x, self, torch.cat([short, typed]).flatten(0, 1), terms.bias)
        return y + self.long_scales.convolve(terms, chosen)


def formed_convolution(x: Tensor, operators: FormedOperators, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """[O_1 X ... O_T X] W + b as two products.

    Args:
        x: `[row, in_channels]`.
        operators: `[graph, node, term, node]`.
        weight: `[term x in_channels, out_channels]`.
        bias: `[out_channels]`.
    """
    matrix, padding = operators.matrix, operators.padding
    terms = full_precision_product(matrix.flatten(1, 2), padding.pad(x))
    terms = padding.unpad(terms.unflatten(1, matrix.shape[1:3]).flatten(2)).to(weight.dtype)
    return terms @ weight if bias is None else linear(terms, weight, bias)


def stacked_powers(matrix: Tensor, exponents: Sequence[int]) -> Tensor:
    """Powers of `[graph, node, node]`, one per term: `[graph, node, exponent, node]`."""
    if not exponents:
        return matrix.unsqueeze(2)[:, :, :0]
    return matrix_powers(matrix, exponents).movedim(1, 2).contiguous()


def formed_layers(matrix: Tensor, padding: Padding) -> list[FormedOperators]:
    """One for every layer, from `[graph, layer, node, term, node]`."""
    return [FormedOperators(of_layer, padding) for of_layer in matrix.unbind(1)]


@operation
def layer_matrices(vectors: Tensor, response: Tensor, short: Tensor, typed: Tensor) -> Tensor:
    """`[graph, layer, node, term, node]`: see `spectral_operators` and `joined_terms`."""
    return joined_terms(short, spectral_operators(vectors, response), typed)


def spectral_operators(vectors: Tensor, response: Tensor) -> Tensor:
    """V f_i(R) V^T of every layer and scale, in full precision.

    `[graph, node, step]` and `[graph, step, layer, scale]` -> `[graph, layer, node, scale, node]`.
    """
    with torch.autocast(vectors.device.type, enabled=False):
        # Contiguous, so that the product, which is much larger, is so too and need not be copied.
        spread = response.to(vectors.dtype).permute(0, 2, 3, 1).contiguous()
        scaled = vectors[:, None, :, None] * spread.unsqueeze(2)  # [graph, layer, node, scale, step]
        return (scaled.flatten(1, 3) @ vectors.mT).unflatten(1, scaled.shape[1:4])


def joined_terms(short: Tensor, long: Tensor, typed: Tensor) -> Tensor:
    """All terms of every layer, in the order that the layers' weights have: `[graph, layer, node, term, node]`.

    Args:
        short: `[graph, node, scale, node]`, the same in every layer.
        long: `[graph, layer, node, scale, node]`.
        typed: `[graph, node, type, node]`, the same in every layer.
    """
    every = [part.unsqueeze(1).expand(-1, long.shape[1], -1, -1, -1) for part in (short, typed)]
    return torch.cat([every[0], long, every[1]], 3)
