"""Convolutions on padded blocks of one shape: few products, and nothing that depends on what the graphs look like.

An operator that is zero in the columns of padding keeps what stands there out of everything else; only a readout has to
look away. Signals may therefore carry padding along, `[graph x node, channel]`, so that all shapes stay the same; or
leave it out, `[node, channel]`, where that costs nothing and arithmetic does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lanczosnet.backends import operation
from lanczosnet.krylov import matrix_powers
from lanczosnet.layers.linear import linear


@dataclass(frozen=True)
class Padding:
    """How the rows of a signal stand in padded blocks."""

    num_graphs: int
    width: int
    rows: Tensor | None = None  # the places that a signal has rows for, [row]; all of them where absent

    def pad(self, signal: Tensor) -> Tensor:
        """`[..., row, channel]` -> `[..., graph, node, channel]`."""
        if self.rows is not None:
            shape = (*signal.shape[:-2], self.num_graphs * self.width, signal.shape[-1])
            signal = signal.new_zeros(shape).index_copy(-2, self.rows, signal)
        return signal.unflatten(-2, (self.num_graphs, self.width))

    def unpad(self, blocks: Tensor) -> Tensor:
        """`[..., graph, node, channel]` -> `[..., row, channel]`."""
        signal = blocks.flatten(-3, -2)
        return signal if self.rows is None else signal.index_select(-2, self.rows)


@dataclass(frozen=True)
class BlockOperators:
    """What layers multiply with on padded blocks, in place of a graph."""

    matrix: Tensor  # [graph, node, term, node], or [channel, graph, node, node] where channels are kept apart
    padding: Padding


def block_convolution(x: Tensor, operators: BlockOperators, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """[O_1 X ... O_T X] W + b as two products.

    Args:
        x: `[row, in_channels]`.
        operators: `[graph, node, term, node]`.
        weight: `[term x in_channels, out_channels]`.
        bias: `[out_channels]`.
    """
    matrix = operators.matrix
    terms = block_product(matrix.flatten(1, 2), x, operators.padding).unflatten(1, matrix.shape[1:3]).flatten(2)
    terms = operators.padding.unpad(terms).to(weight.dtype)
    return terms @ weight if bias is None else linear(terms, weight, bias)


def block_product(matrix: Tensor, x: Tensor, padding: Padding) -> Tensor:
    """O X for `[graph, place, node]` and `[row, channel]` -> `[graph, place, channel]`, in full precision."""
    with torch.autocast(x.device.type, enabled=False):
        dtype = torch.promote_types(matrix.dtype, x.dtype)
        return matrix.to(dtype) @ padding.pad(x.to(dtype))


@dataclass(frozen=True)
class BlockSpectrum:
    """The operators that are known beforehand, and the long scales of a layer by their Ritz pairs and responses.

    Their operators are never formed: more and smaller products, and a half to a tenth of the arithmetic.
    """

    known: BlockOperators  # short scales, then edge types
    vectors: Tensor  # V, [graph, node, step]
    response: Tensor  # f(R), [graph, step, scale]
    existing: Tensor  # the steps that are not padding, among all graphs', [frequency]

    def long_scales(self, x: Tensor, weight: Tensor) -> Tensor:
        """sum_i V f_i(R) V^T X W_i by one pass through the K-dimensional space; weight `[scale x in, out]`."""
        padding = self.known.padding
        coefficients = block_product(self.vectors.mT, x, padding).flatten(0, 1).index_select(0, self.existing)
        response = self.response.flatten(0, 1).index_select(0, self.existing)
        spread = (response.unsqueeze(-1) * coefficients.unsqueeze(-2)).flatten(1).to(weight.dtype)
        num_steps = self.vectors.shape[-1]
        by_step = Padding(padding.num_graphs, num_steps, self.existing).pad(spread @ weight)
        return padding.unpad(self.vectors @ by_step.to(self.vectors.dtype))


def stacked_powers(matrix: Tensor, exponents: Sequence[int]) -> Tensor:
    """Powers of `[graph, node, node]`, one per term: `[graph, node, exponent, node]`."""
    if not exponents:
        return matrix.unsqueeze(2)[:, :, :0]
    return matrix_powers(matrix, exponents).movedim(1, 2).contiguous()


def formed_operators(
    vectors: Tensor, response: Tensor, short: Tensor, typed: Tensor, padding: Padding
) -> list[BlockOperators]:
    """All terms of every layer from Ritz vectors and responses."""
    return [BlockOperators(matrix, padding) for matrix in layer_matrices(vectors, response, short, typed).unbind(1)]


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


def layer_operators(short: Tensor, long: Tensor, typed: Tensor, padding: Padding) -> list[BlockOperators]:
    """All terms of every layer; see `joined_terms`."""
    return [BlockOperators(matrix, padding) for matrix in joined_terms(short, long, typed).unbind(1)]


def joined_terms(short: Tensor, long: Tensor, typed: Tensor) -> Tensor:
    """All terms of every layer, in the order that the layers' weights have: `[graph, layer, node, term, node]`.

    Args:
        short: `[graph, node, scale, node]`, the same in every layer.
        long: `[graph, layer, node, scale, node]`.
        typed: `[graph, node, type, node]`, the same in every layer.
    """
    every = [part.unsqueeze(1).expand(-1, long.shape[1], -1, -1, -1) for part in (short, typed)]
    return torch.cat([every[0], long, every[1]], 3)
