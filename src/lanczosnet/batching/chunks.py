"""Work in chunks, where the whole would take more memory than its result.

Without gradients, the largest arrays of a layer are products that are added up at once. On a large graph they are made
for some channels, or some nodes, after others. Nothing of it looks at values, so that a captured step may do it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

LARGEST_WHOLE = 2**25  # numbers of an activation, up to which it is made at once
CHUNK = 2**23  # numbers of a chunk
LEAST_CHANNELS = 8  # of a chunk: products with sparse matrices and narrower signals are slow


def row_ranges(num_rows: int, at_a_time: int) -> Iterator[slice]:
    """All rows, so many at a time."""
    at_a_time = max(1, at_a_time)
    return (slice(first, min(first + at_a_time, num_rows)) for first in range(0, num_rows, at_a_time))


def num_channel_parts(x: Any, num_rows: int, num_channels: int) -> int:
    """Into how many parts the channels of a signal's convolution are divided."""
    is_signal = isinstance(x, Tensor) and x.dim() == 2
    if torch.is_grad_enabled() or not is_signal or num_rows * num_channels <= LARGEST_WHOLE:
        return 1
    return min(-(-num_rows * num_channels // CHUNK), -(-num_channels // LEAST_CHANNELS))


def by_channels(function: Callable[[slice], Tensor], num_channels: int, num_parts: int) -> Tensor:
    """`[node, channel]` from functions of parts of its channels."""
    found: Tensor | None = None
    for part in row_ranges(num_channels, -(-num_channels // num_parts)):
        piece = function(part)
        found = piece.new_empty(len(piece), num_channels) if found is None else found
        found[:, part] = piece
    assert found is not None
    return found


def by_rows(function: Callable[..., Tensor], *signals: Tensor) -> Tensor:
    """What a function of single nodes makes of signals `[node, channel]`."""
    first = signals[0]
    if torch.is_grad_enabled() or first.dim() != 2 or first.numel() <= LARGEST_WHOLE:
        return function(*signals)
    found: Tensor | None = None
    for rows in row_ranges(len(first), CHUNK // first.shape[1]):
        piece = function(*(signal[rows] for signal in signals))
        found = piece.new_empty(len(first), piece.shape[1]) if found is None else found
        found[rows] = piece
    assert found is not None
    return found
