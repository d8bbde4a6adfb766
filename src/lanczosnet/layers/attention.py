"""Attention in padded blocks, for all channels and heads at once."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.nn import GATConv

from lanczosnet.layers.blocks import BlockOperators


def block_attention(convolutions: Sequence[GATConv], x: Tensor, log_count: BlockOperators) -> Tensor:
    """What PyG's layers, one for each channel and of one size, make of `[row, in_channels]`.

    Args:
        log_count: the logarithm of how often node j is a neighbour of node i (itself included),
            `[channel, graph, node i, node j]`; minus infinity where it is not.

    Returns:
        Side by side where the layers concatenate their heads, `[row, channel x head x out_channels]`; else the mean,
        `[row, out_channels]`.
    """
    one, padding = convolutions[0], log_count.padding
    num_heads = len(convolutions) * one.heads  # of all channels
    both = padding.pad(torch.nn.functional.linear(x, _states_and_energies(convolutions)))
    states, energies = both.split([num_heads * one.out_channels, 2 * num_heads], -1)
    states = states.unflatten(-1, (num_heads, -1)).transpose(1, 2)  # [graph, head, node, _]
    # In this order everything from here to the product is contiguous.
    source, target = energies.unflatten(-1, (2, num_heads)).permute(2, 0, 3, 1).contiguous()  # [graph, head, node]
    energy = torch.nn.functional.leaky_relu(target.unsqueeze(-1) + source.unsqueeze(-2), one.negative_slope)
    energy = energy.unflatten(1, (len(convolutions), -1)) + log_count.matrix.transpose(0, 1).unsqueeze(2)
    attention = torch.nn.functional.dropout(energy.softmax(-1), one.dropout, one.training)
    found = attention.flatten(1, 2).to(states.dtype) @ states
    if one.concat:
        return padding.unpad(found.transpose(1, 2).flatten(2)) + torch.cat([layer.bias for layer in convolutions])
    return padding.unpad(found.mean(1)) + torch.stack([layer.bias for layer in convolutions]).mean(0)


def _states_and_energies(convolutions: Sequence[GATConv]) -> Tensor:
    """One matrix for the states of all heads and what these are worth as source and as target: a vector times states
    is that vector times the weights, times the input. `[heads x out_channels + 2 x heads, in_channels]`."""
    weight = torch.cat([layer.lin.weight for layer in convolutions])
    vectors = torch.cat([getattr(layer, key) for key in ("att_src", "att_dst") for layer in convolutions])
    by_head = weight.unflatten(0, (-1, vectors.shape[-1]))  # [head, out_channels, in_channels]
    return torch.cat([weight, (vectors.reshape(2, len(by_head), 1, -1) @ by_head).flatten(0, 2)])
