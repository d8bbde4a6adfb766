"""Products with sparse matrices, in an order that stays the same where that is asked for."""

import torch
from torch import Tensor

from lanczosnet.kernels import kernels_serve
from lanczosnet.order import wants_one_order


def csr_product(matrix: Tensor, signal: Tensor) -> Tensor:
    """A CSR matrix times `[column]` or `[column, channel]`.

    On a GPU PyTorch's product adds in any order, also under `torch.use_deterministic_algorithms`; there, this one adds
    the entries of every row in the same order every time.
    """
    if not wants_one_order(signal):
        return matrix @ signal
    # PyTorch's product would refuse these; a kernel would read what is not there.
    if signal.dim() not in (1, 2) or len(signal) != matrix.shape[1] or signal.dtype != matrix.dtype:
        raise ValueError(
            f"a matrix of shape {tuple(matrix.shape)} and type {matrix.dtype} cannot be multiplied with a signal of "
            f"shape {tuple(signal.shape)} and type {signal.dtype}"
        )
    table = signal if signal.dim() == 2 else signal.unsqueeze(-1)
    return product_in_order(matrix, table).view(matrix.shape[0], *signal.shape[1:])


def product_in_order(matrix: Tensor, table: Tensor) -> Tensor:
    """Row by row, `[row, column] @ [column, channel]`; without Triton by way of every entry's product."""
    if kernels_serve(table):
        from lanczosnet.affinity.csr_kernel import rows_times

        return rows_times(matrix.crow_indices(), matrix.col_indices(), matrix.values(), table)
    total = torch.promote_types(table.dtype, torch.float32)  # half precision is added up in single
    parts = matrix.values().to(total).unsqueeze(-1) * table.index_select(0, matrix.col_indices())
    return torch.segment_reduce(parts, "sum", offsets=matrix.crow_indices().long(), initial=0).to(table.dtype)
