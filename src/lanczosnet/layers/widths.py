"""Sizes of a stack of layers."""

import itertools


def layer_widths(first: int, hidden: int, last: int, num_layers: int) -> list[tuple[int, int]]:
    """(in, out) of every layer: first -> hidden -> ... -> hidden -> last."""
    if num_layers < 1:
        raise ValueError(f"num_layers must be at least 1, but is {num_layers}")
    sizes = [first, *[hidden] * (num_layers - 1), last]
    return list(itertools.pairwise(sizes))
