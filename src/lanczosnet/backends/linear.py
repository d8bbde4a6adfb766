"""Linear maps and embeddings, the operations that every network shares."""

import torch
from torch import Tensor, nn

from lanczosnet.backends.registry import operation


@operation
def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """X W + b: `[row, in_channels]`, `[in_channels, out_channels]` and `[out_channels]` -> `[row, out_channels]`."""
    return torch.addmm(bias, x, weight)


@operation
def embedding(table: Tensor, rows: Tensor) -> Tensor:
    """`table[rows]` for `[row, channel]` and integers `[...]` -> `[..., channel]`."""
    return nn.functional.embedding(rows, table)
