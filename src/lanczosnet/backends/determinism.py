"""Deterministic sums on a GPU: the same input gives the same bits every time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from lanczosnet.backends.segments import LongRows


@contextmanager
def deterministic_algorithms(device: torch.device) -> Iterator[None]:
    """Enable `torch.use_deterministic_algorithms` for a CUDA device inside a block, for all threads of the process.

    A CPU is deterministic anyway. A caller who has asked PyTorch for deterministic algorithms keeps that setting.
    """
    if device.type != "cuda" or torch.are_deterministic_algorithms_enabled():
        yield
        return
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic
    fills = memory.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    memory.fill_uninitialized_memory = False  # would cost time; nothing here reads what it did not write
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False, warn_only=warned)
        memory.fill_uninitialized_memory = fills


MOST_PIECES = 512  # of a segment


def segment_sum(per_node: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """`backends.segments.segment_sum` in pieces: a GPU adds the rows of a segment one after the other, which takes long
    where it has thousands. The sums of the pieces are then added up."""
    # As many as cost no more memory than the nodes.
    num_pieces = max(1, min(len(per_node) // max(num_segments, 1), MOST_PIECES))
    return sum_of_pieces(per_node, segment, num_segments, num_pieces)


def sum_of_pieces(per_node: Tensor, segment: Tensor, num_segments: int, num_pieces: int) -> Tensor:
    piece = segment * num_pieces + torch.arange(len(segment), device=segment.device) % num_pieces
    sums = per_node.new_zeros(num_segments * num_pieces, *per_node.shape[1:]).index_add(0, piece, per_node)
    return sums.unflatten(0, (num_segments, num_pieces)).sum(1)


def csr_product(matrix: Tensor, signal: Tensor, long_rows: LongRows | None = None) -> Tensor:
    """`affinity.csr_product.csr_product` without Triton, by way of every entry's product."""
    check_product(matrix, signal)
    return rows_product(matrix.crow_indices(), matrix.col_indices(), matrix.values(), signal)


def rows_product(
    row_pointer: Tensor, column: Tensor, values: Tensor | None, signal: Tensor, long_rows: LongRows | None = None
) -> Tensor:
    """`affinity.csr_product.rows_product`, likewise."""
    table = signal if signal.dim() == 2 else signal.unsqueeze(-1)
    total = torch.promote_types(table.dtype, torch.float32)  # half precision is added up in single
    parts = table.index_select(0, column).to(total)
    parts = parts if values is None else values.to(total).unsqueeze(-1) * parts
    found = torch.segment_reduce(parts, "sum", offsets=row_pointer.long(), initial=0).to(table.dtype)
    return found.view(len(row_pointer) - 1, *signal.shape[1:])


def check_product(matrix: Tensor, signal: Tensor) -> None:
    """PyTorch's product refuses these; a Triton kernel would read what is not there."""
    if signal.dim() not in (1, 2) or len(signal) != matrix.shape[1] or signal.dtype != matrix.dtype:
        raise ValueError(
            f"a matrix of shape {tuple(matrix.shape)} and type {matrix.dtype} cannot be multiplied with a signal of "
            f"shape {tuple(signal.shape)} and type {signal.dtype}"
        )
