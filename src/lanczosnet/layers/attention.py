"""Attention in padded blocks, for all channels and heads at once."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.nn import GATConv

from lanczosnet.filters.spectral import StackedLinear
from lanczosnet.layers.blocks import BlockOperators


def block_attention(convolutions: Sequence[GATConv], x: Tensor, log_count: BlockOperators) -> Tensor:
    """What PyG's layers, one for each channel and of one size, make of `[row, in_channels]`.

    Args:
        log_count: the logarithm of how often node j is a neighbour of node i (itself included),
            `[channel, graph, node i, node j]`; minus infinity where it is not.

    Returns:
        `[channel, row, out_channels]`.
    """
    one = convolutions[0]
    states = StackedLinear([layer.lin for layer in convolutions])(x.expand(len(convolutions), *x.shape))
    states = log_count.padding.pad(states).unflatten(-1, (one.heads, -1))  # [channel, graph, node, head, _]
    source, target = (
        (states * torch.stack([getattr(layer, key) for layer in convolutions]).unsqueeze(1)).sum(-1).movedim(-1, 2)
        for key in ("att_src", "att_dst")
    )
    # [channel, graph, head, node, node]
    energy = torch.nn.functional.leaky_relu(target.unsqueeze(-1) + source.unsqueeze(-2), one.negative_slope)
    attention = (
        (energy + log_count.matrix.unsqueeze(2)).softmax(-1).to(states.dtype)
    )  # [channel, graph, head, node, node]
    attention = torch.nn.functional.dropout(attention, one.dropout, one.training)
    found = (attention @ states.movedim(3, 2)).movedim(2, 3)
    found = found.flatten(3) if one.concat else found.mean(3)
    return log_count.padding.unpad(found) + torch.stack([layer.bias for layer in convolutions]).unsqueeze(1)
