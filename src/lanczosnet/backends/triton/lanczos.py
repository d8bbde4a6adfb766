"""Algorithm 1 and its gradient for batches of small dense graphs on a GPU: a Triton program for each graph.

`adjoint.lanczos_iteration` and `adjoint.lanczos_adjoint` are some forty operations for every step, and each of them
takes longer to start than to do. Here matrix and basis stay in registers from the first step to the last. Both are
equal to those functions, and without re-orthogonalisation to autograd through the first. The tests hold them to it.
"""

from typing import Any

import torch
from torch import Tensor

from lanczosnet.backends.triton.lanczos_kernels import iteration, re_orthogonalized_sweep, three_term_sweep

SMALLEST = 16


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
    """num_steps + 1 Lanczos vectors `[graph, step, node]` and their coefficients, zero after a breakdown."""
    values = operator.values.detach()
    num_graphs, num_nodes, _ = values.shape
    basis = values.new_empty(num_graphs, num_steps + 1, num_nodes)
    diagonal, off_diagonal = values.new_empty(2, num_graphs, num_steps)
    steps = torch.empty(num_graphs, dtype=torch.long, device=values.device)
    if num_graphs:
        iteration[(num_graphs,)](
            values.contiguous(), start.contiguous(), breakdown.scale.double().contiguous(),
            basis, diagonal, off_diagonal, steps, breakdown.tolerance, REORTHOGONALIZE=reorthogonalize,
            **_sizes(num_nodes, num_steps),
        )  # fmt: skip
    return basis, diagonal, off_diagonal, steps


def backward_sweep(
    operator: Any,
    inner: Any,
    basis: Tensor,
    diagonal: Tensor,
    off_diagonal: Tensor,
    basis_grad: Tensor,
    diagonal_grad: Tensor,
    off_diagonal_grad: Tensor,
    *,
    reorthogonalize: bool = True,
) -> tuple[Tensor, Tensor]:
    """The cotangents of every S q_j, `[graph, step, node]`, and of the start vector."""
    values = operator.values.detach()
    num_graphs, num_nodes, _ = values.shape
    num_steps = diagonal.shape[-1]
    image_grads = values.new_empty(num_graphs, num_steps, num_nodes)
    start_grad = values.new_empty(num_graphs, num_nodes)
    if num_graphs:
        inputs = (values, basis, diagonal, off_diagonal, basis_grad, diagonal_grad, off_diagonal_grad)
        sweep = re_orthogonalized_sweep if reorthogonalize else three_term_sweep
        sweep[(num_graphs,)](
            *(tensor.contiguous() for tensor in inputs), image_grads, start_grad, **_sizes(num_nodes, num_steps)
        )
    return image_grads, start_grad


def _sizes(num_nodes: int, num_steps: int) -> dict[str, Any]:
    nodes, vectors = (max(SMALLEST, 1 << (size - 1).bit_length()) for size in (num_nodes, num_steps + 1))
    return {"N": num_nodes, "K": num_steps, "NODES": nodes, "VECTORS": vectors, "num_warps": 4}
