"""Algorithm 1 for one small sparse graph on the CPU, in NumPy.

There the arithmetic of a step takes less time than PyTorch needs to dispatch its operations; NumPy dispatches faster,
and the whole iteration runs two to three times as fast. Equal to
`adjoint.lanczos_iteration`, which the tests hold it to.
"""

import math
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import torch
from torch import Tensor


def iterate(
    operator: Any,
    start: Tensor,
    num_steps: int,
    inner: Any,
    breakdown: Any,
    *,
    fresh_vector: None = None,
    reorthogonalize: bool = True,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """num_steps + 1 Lanczos vectors `[step, node]` and their coefficients, padded with zeros after a breakdown."""
    matrix = scipy.sparse.csr_array(
        (operator.values.detach().numpy(), operator.column.numpy(), operator.row_pointer.numpy()),
        shape=(operator.num_nodes, operator.num_nodes),
    )
    basis = np.zeros((num_steps + 1, operator.num_nodes), dtype=matrix.dtype)
    diagonal, off_diagonal = np.zeros((2, num_steps), dtype=matrix.dtype)
    basis[0] = start.detach().numpy()
    gemv = scipy.linalg.get_blas_funcs("gemv", (basis,))  # z - Q c without a temporary, half the time of NumPy's
    steps = int(basis[0].any())
    threshold = 0.0
    for step in range(num_steps if steps else 0):
        residual = matrix @ basis[step]
        if step == 0:
            threshold = breakdown.tolerance * max(float(breakdown.scale), _length(residual))
        earlier = basis[: step + 1]
        first = earlier @ residual
        residual = gemv(-1.0, earlier.T, first, 1.0, residual, overwrite_y=True)
        second = earlier @ residual
        residual = gemv(-1.0, earlier.T, second, 1.0, residual, overwrite_y=True)
        diagonal[step] = first[-1] + second[-1]
        length = _length(residual)
        if length <= threshold:
            break
        off_diagonal[step] = length
        np.multiply(residual, 1.0 / length, out=basis[step + 1])
        steps = min(step + 2, num_steps)
    arrays = (torch.from_numpy(array) for array in (basis, diagonal, off_diagonal))
    return *arrays, torch.tensor(steps)  # type: ignore[return-value]


def _length(vector: np.ndarray) -> float:
    wide = vector.astype(np.float64, copy=False)
    return math.sqrt(wide @ wide)
