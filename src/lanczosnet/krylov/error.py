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
    """||S - Q T Q^T||_F per graph, exactly and, for sparse operators, without forming anything node x node.

    It is the error of this Q and this T, in float64: those of a run in float32 are orthonormal and tridiagonal to seven
    digits only. Where it vanishes, sparse operators leave the root of a rounding error, 1e-8 of S.
    """
    if isinstance(operator, DenseOperator):
        Q, T = result.basis.double(), tridiagonal_matrix(result).double()
        return torch.linalg.matrix_norm(operator.dense().double() - Q @ T @ Q.mT)
    if result.segment is not None:
        return _squared_error(operator, result, result.segment).clamp(min=0.0).sqrt()
    one = result._replace(diagonal=result.diagonal.unsqueeze(0), off_diagonal=result.off_diagonal.unsqueeze(0))
    segment = torch.zeros(len(result.basis), dtype=torch.long, device=result.basis.device)
    return _squared_error(operator, one, segment).squeeze(0).clamp(min=0.0).sqrt()


def _squared_error(operator: Operator, result: Tridiagonalization, segment: Tensor) -> Tensor:
    """||S||^2 - 2 <S Q, Q T> + ||Q T Q^T||^2, `[graph]`, whether or not the columns of Q are orthonormal."""
    S, Q, T = operator.to(torch.float64), result.basis.double(), tridiagonal_matrix(result).double()
    # Column by column: node x step x step would be too large.
    QT = torch.stack([(Q * column[segment]).sum(-1) for column in T.unbind(-1)], -1)
    gram = torch.stack([segment_sum(Q * column.unsqueeze(1), segment, len(T)) for column in Q.unbind(1)], -1)
    per_node = S.with_values(S.values.square()).degree() - 2.0 * (S.product(Q) * QT).sum(-1)
    TG = T @ gram
    return segment_sum(per_node, segment, len(T)) + (TG * TG.mT).sum((-2, -1))


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
