"""When an implementation serves: one predicate of an operation's arguments each.

They look at device, type, size and determinism, and never at values: on a GPU the host would wait for those.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

TILE = 64  # nodes of a graph, or rows of a matrix, that one program of a Triton kernel holds
JACOBI_ROWS = range(2, 33)  # of matrices whose sweeps reach the rounding error in the number that is done
SMALL_GRAPH = 2**15  # nodes, below which NumPy dispatches the steps of Lanczos faster than PyTorch
# Matrix products on a CPU add float32 numbers one after the other, and over a million nodes lose three digits.
LONGEST_FLOAT32_SUM = 2**15
ONE_HOT_NUMBERS = 2**22  # rows of a table times lookups
READOUT_NUMBERS = 2**12  # nodes of a block times outputs
MANY_COLUMNS = 128  # from which on sparse products of features pay off
FEW_ENTRIES = 0.05  # and up to this share of non-zeros
ENTRIES_WITHOUT_VALUES = 2**23  # more than any graph of the tables has, whose results keep their bits
MANY_ROWS = 2**18  # more than in any batch of the tables, whose results keep their bits
MOST_CHANNELS = 2**10  # of a row that one program holds
LOSS_NUMBERS = 2**16  # of a batch: one program goes through all of them


def device_type(arguments: Sequence[Any]) -> str | None:
    """That of the first argument that has one."""
    for argument in arguments:
        device = getattr(argument, "device", None)
        if device is not None:
            return device.type
    return None


def always(*arguments: Any, **options: Any) -> bool:
    return True


def deterministic(*arguments: Any) -> bool:
    return torch.are_deterministic_algorithms_enabled()


def float32(tensor: Tensor, *arguments: Any) -> bool:
    return tensor.dtype == torch.float32


def float32_table(table: Tensor, *arguments: Any) -> bool:
    return table.dtype == torch.float32


def float32_state(input_gates: Tensor, hidden_gates: Tensor, state: Tensor) -> bool:
    return state.dtype == torch.float32


def long_float32_sum(basis: Tensor, vector: Tensor) -> bool:
    return vector.dtype != torch.float64 and len(vector) > LONGEST_FLOAT32_SUM


def small_sparse_graph(operator: Any, start: Tensor, num_steps: int, inner: Any, *others: Any, **options: Any) -> bool:
    """One graph, without restarts, on which the steps re-orthogonalise."""
    is_one_sparse_graph = hasattr(operator, "row_pointer") and not (
        hasattr(inner, "segment") or hasattr(inner, "sizes")
    )
    plain_steps = options.get("fresh_vector") is None and options.get("reorthogonalize", True)
    return is_one_sparse_graph and plain_steps and 0 < operator.num_nodes <= SMALL_GRAPH


def large_sparse_graph(operator: Any, start: Tensor, num_steps: int, inner: Any, *others: Any) -> bool:
    """One, or components that are ranges of its nodes, while all vectors fit into a tile."""
    is_sparse = hasattr(operator, "row_pointer") and start.dim() == 1 and start.dtype in (torch.float32, torch.float64)
    is_summed_here = not (hasattr(inner, "segment") or hasattr(inner, "own"))
    return is_sparse and is_summed_here and len(start) > SMALL_GRAPH and num_steps <= TILE


def tall_block(vectors: Tensor, other: Tensor) -> bool:
    """Whose gradients, if it has any, are those of autograd."""
    return len(vectors) > SMALL_GRAPH and not vectors.requires_grad and not torch.compiler.is_exporting()


def tall_rows(x: Tensor, *others: Any) -> bool:
    is_float32 = x.dtype == torch.float32 and not torch.is_autocast_enabled(x.device.type)
    return is_float32 and x.shape[-1] <= MOST_CHANNELS and x.numel() > MANY_ROWS * x.shape[-1]


def small_dense_batch(operator: Any, num_steps: int) -> bool:
    """In float64, in which small graphs are iterated."""
    is_batch = not hasattr(operator, "row_pointer") and operator.values.dim() == 3
    return is_batch and 0 < operator.num_nodes <= TILE and num_steps < TILE and operator.dtype == torch.float64


def small_dense_iteration(
    operator: Any, start: Tensor, num_steps: int, inner: Any, breakdown: Any, **options: Any
) -> bool:
    return options.get("fresh_vector") is None and small_dense_batch(operator, num_steps)


def small_dense_sweep(operator: Any, inner: Any, basis: Tensor, diagonal: Tensor, *others: Any, **options: Any) -> bool:
    return small_dense_batch(operator, diagonal.shape[-1])


def small_matrices(matrix: Tensor) -> bool:
    return matrix.shape[-1] in JACOBI_ROWS


def captured_small_matrices(matrix: Tensor) -> bool:
    """PyTorch's own decomposition waits for the device, which a capture forbids."""
    return small_matrices(matrix) and torch.cuda.is_current_stream_capturing()


def few_rows(values: Tensor, response: Tensor, slope: Tensor, rotated: Tensor, close: float) -> bool:
    return rotated.dim() == 4 and rotated.shape[-1] <= TILE


def small_embeddings(embedding: Tensor, pattern: Tensor, mask: Tensor, **options: Any) -> bool:
    return embedding.dtype == torch.float32 and embedding.numel() > 0 and embedding.shape[-2] <= TILE


def small_spectra(vectors: Tensor, response: Tensor, short: Tensor, typed: Tensor) -> bool:
    is_float32 = vectors.dtype == response.dtype == torch.float32
    return is_float32 and not vectors.requires_grad and vectors.shape[1] <= TILE


def no_autocast(x: Tensor, weight: Tensor, bias: Tensor) -> bool:
    """Autocast casts, and undoes it backwards."""
    return not torch.is_autocast_enabled(x.device.type)


def few_rows_looked_up(table: Tensor, rows: Tensor) -> bool:
    return table.shape[0] * rows.numel() <= ONE_HOT_NUMBERS


def small_attention(both: Tensor, log_count: Tensor, num_heads: int, slope: float, dropout: float = 0.0) -> bool:
    return both.dtype == torch.float32 and both.shape[1] <= TILE and dropout == 0.0


def gated_blocks(matrix: Tensor, messages: Any, padding: Any) -> bool:
    is_float32 = matrix.dtype == messages.cell.weight_hh.dtype == torch.float32
    has_one_hidden_layer = len(messages.layers) == 2
    fits = 0 < matrix.shape[-1] <= TILE and matrix.shape[1] > 0
    return is_float32 and padding.rows is None and has_one_hidden_layer and fits


def gated_mean(x: Tensor, readout: Any, mask: Tensor) -> bool:
    if not hasattr(readout, "gate"):
        return False
    is_float32 = x.dtype == readout.linear.weight.dtype == torch.float32
    return is_float32 and 0 < x.shape[-2] * len(readout.linear.bias) <= READOUT_NUMBERS


def at_most_four_axes(table: Tensor, *arguments: Any) -> bool:
    return table.dim() <= 4


def few_losses(output: Tensor, y: Tensor, *arguments: Any) -> bool:
    return output.dtype == y.dtype == torch.float32 and 0 < output.numel() <= LOSS_NUMBERS


def drops_values(num_entries: int) -> bool:
    """Whether an unweighted graph stores no values: half of its memory, and products with other rounding."""
    return num_entries >= ENTRIES_WITHOUT_VALUES


def mostly_zero(features: Tensor) -> bool:
    """Whether products with constant features are faster without their zeros. Counts them, on a CPU alone."""
    is_wide = features.dim() == 2 and features.shape[1] >= MANY_COLUMNS and features.is_floating_point()
    if features.device.type != "cpu" or not is_wide or features.requires_grad:
        return False
    return int(torch.count_nonzero(features)) <= FEW_ENTRIES * features.numel()
