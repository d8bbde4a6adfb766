"""Theorem 1: how well Q T Q^T approximates S."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import DenseOperator, Operator
from lanczosnet.backends.segments import segment_sum
from lanczosnet.krylov.lanczos import Tridiagonalization
from lanczosnet.krylov.ritz import tridiagonal_matrix


class ErrorBound(NamedTuple):
    """Frobenius norms. error^2 = projection_error^2 + residual^2, and projection_error <= bound.

    The proof of Theorem 1 uses S Q = Q T, which drops the residual beta_K; the bound therefore holds for the projection
    error ||S (I - Q Q^T)||, and for the error itself with the residual added. The theorem's product is printed with the
    index j throughout; the lemma that it rests on has i there, k = 1..i-1 and lambda_i, and only so is it a bound.
    """

    error: float  # ||S - Q T Q^T||
    projection_error: float  # ||S (I - Q Q^T)||
    residual: float  # beta_K
    bound: float  # the right-hand side of Theorem 1 (with the lemma's product), under the root, at its best j


def approximation_error(operator: Operator, result: Tridiagonalization) -> Tensor:
    """||S - Q T Q^T||_F per graph, exactly and, for sparse operators, without forming anything node x node."""
    T = tridiagonal_matrix(result).double()
    if isinstance(operator, DenseOperator):
        Q = result.basis.double()
        return torch.linalg.matrix_norm(operator.dense().double() - Q @ T @ Q.mT)
    # Q T Q^T is the orthogonal projection of S, so the squares subtract.
    squares = operator.values.double().square()
    if result.segment is None:
        total = squares.sum()
    else:
        per_node = operator.with_values(squares).degree()
        total = segment_sum(per_node, result.segment, len(T))
    return (total - T.square().sum((-2, -1))).clamp(min=0.0).sqrt()


def error_bound(operator: Operator, result: Tridiagonalization) -> ErrorBound:
    """Theorem 1 for one graph: the bound and what it bounds. Needs all eigenvalues of S, so a graph that fits densely.

    The bound is infinite where the theorem says nothing: fewer than three steps, a repeated eigenvalue among the
    leading ones, a start vector orthogonal to one of them.
    """
    if len(operator.shape) != 2 or result.diagonal.dim() != 1:
        raise ValueError("error_bound looks at one graph: take one out of the batch first")
    S = operator.dense().detach().double()
    eigenvalues, eigenvectors = torch.linalg.eigh(S)
    eigenvalues, eigenvectors = eigenvalues.flip(0), eigenvectors.flip(1)
    num_steps = int(result.steps)
    Q = result.basis[:, :num_steps].detach().double()
    residual = float(result.off_diagonal[num_steps - 1]) if num_steps else 0.0
    start = result.basis[:, 0].detach().double()
    squared = min(
        (_squared_bound(eigenvalues, eigenvectors.T @ start, num_steps, j) for j in _admissible(len(S), num_steps)),
        default=math.inf,
    )
    return ErrorBound(
        error=float(approximation_error(DenseOperator(S), result)),
        projection_error=float(torch.linalg.matrix_norm(S - (S @ Q) @ Q.T)),
        residual=residual,
        bound=math.sqrt(squared),
    )


def _admissible(num_nodes: int, num_steps: int) -> range:
    """1 < j < N and K > j."""
    return range(2, min(num_nodes, num_steps))


def _squared_bound(eigenvalues: Tensor, overlap: Tensor, num_steps: int, j: int) -> float:
    """The right-hand side of Theorem 1, with the lemma's product; eigenvalues fall, `overlap` is U^T v."""
    leading = eigenvalues[:j]
    lowest = eigenvalues[-1]
    is_earlier = torch.ones(j, j, dtype=torch.bool, device=eigenvalues.device).triu(1)  # k before i
    factors = (leading.unsqueeze(1) - lowest) / (leading.unsqueeze(1) - leading)
    growth = torch.where(is_earlier, factors, torch.ones_like(factors)).prod(0)
    sine = (1.0 - overlap.square().cumsum(0)[:j]).clamp(min=0.0).sqrt()
    gap = (leading - eigenvalues[1 : j + 1]) / (eigenvalues[1 : j + 1] - lowest)
    degree = num_steps - torch.arange(1, j + 1, dtype=torch.float64, device=eigenvalues.device)
    chebyshev = torch.cosh(degree * torch.acosh(1.0 + 2.0 * gap))
    ratio = sine * growth / (overlap[:j].abs() * chebyshev)
    squared = float((leading * ratio).square().sum() + eigenvalues[j:].square().sum())
    return math.inf if math.isnan(squared) else squared
