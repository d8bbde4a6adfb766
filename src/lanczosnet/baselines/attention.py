"""Attention in padded blocks, for all channels and heads at once."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.nn import GATConv

from lanczosnet.backends import operation
from lanczosnet.batching.formed import FormedOperators


def block_attention(convolutions: Sequence[GATConv], x: Tensor, log_count: FormedOperators) -> Tensor:
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
    dropout = one.dropout if one.training else 0.0
    found = attention(both, log_count.matrix.transpose(0, 1), num_heads, one.negative_slope, dropout)
    if one.concat:
        return padding.unpad(found.flatten(2)) + torch.cat([layer.bias for layer in convolutions])
    return padding.unpad(found.mean(2)) + torch.stack([layer.bias for layer in convolutions]).mean(0)


@operation
def attention(both: Tensor, log_count: Tensor, num_heads: int, slope: float, dropout: float = 0.0) -> Tensor:
    """What every head sums up, `[graph, node, head, out_channels]`.

    Args:
        both: the states of all heads, then what these are worth as sources, then as targets,
            `[graph, node, heads x out_channels + heads + heads]`.
        log_count: `[graph, channel, node i, node j]`; as many heads belong to each channel.
        num_heads: of all channels.
        slope: of leaky ReLU.
        dropout: of the attention.
    """
    states, energies = both.split([both.shape[-1] - 2 * num_heads, 2 * num_heads], -1)
    states = states.unflatten(-1, (num_heads, -1)).transpose(1, 2)  # [graph, head, node, _]
    # In this order everything from here to the product is contiguous.
    source, target = energies.unflatten(-1, (2, num_heads)).permute(2, 0, 3, 1).contiguous()  # [graph, head, node]
    energy = torch.nn.functional.leaky_relu(target.unsqueeze(-1) + source.unsqueeze(-2), slope)
    energy = energy.unflatten(1, (log_count.shape[1], -1)) + log_count.unsqueeze(2)
    shares = torch.nn.functional.dropout(energy.softmax(-1), dropout)
    return (shares.flatten(1, 2).to(states.dtype) @ states).transpose(1, 2)


def _states_and_energies(convolutions: Sequence[GATConv]) -> Tensor:
    """One matrix for the states of all heads and what these are worth as source and as target: a vector times states
    is that vector times the weights, times the input. `[heads x out_channels + 2 x heads, in_channels]`."""
    weight = torch.cat([layer.lin.weight for layer in convolutions])
    vectors = torch.cat([getattr(layer, key) for key in ("att_src", "att_dst") for layer in convolutions])
    by_head = weight.unflatten(0, (-1, vectors.shape[-1]))  # [head, out_channels, in_channels]
    return torch.cat([weight, (vectors.reshape(2, len(by_head), 1, -1) @ by_head).flatten(0, 2)])
