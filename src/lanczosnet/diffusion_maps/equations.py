"""Section 4 of the paper, one short function per equation; NumPy arrays or tensors alike."""

from typing import Any, TypeVar

import numpy as np
from torch import Tensor

Array = TypeVar("Array", np.ndarray, Tensor)


def right_eigenvectors(eigenvectors: Array, degree: Array) -> Array:
    """psi = D^-1/2 u, the right eigenvectors of P = D^-1 A from those of S, `[node, pair]`.

    A node without edges has no walk: its row is zero, as in P.
    """
    connected = degree > 0
    root = (degree + (1.0 - 1.0 * connected)) ** 0.5
    return eigenvectors * (connected / root)[:, None]


def diffusion_map(eigenvalues: Array, right_eigenvectors: Array, t: int) -> Array:
    """Phi_t(i) = (lambda_1^t psi_1(i), ..., lambda_N^t psi_N(i)) (Eq. 11), `[node, pair]`."""
    return eigenvalues**t * right_eigenvectors


def frequency_representation(eigenvalues: Array, eigenvectors: Array, signal: Array, t: int) -> Array:
    """hat X = Lambda^t U^T X (Eq. 12): signals `[node, channel]` -> `[pair, channel]`."""
    return (eigenvalues**t)[:, None] * (eigenvectors.T @ signal)


def nystroem_extension(transition: Any, eigenvalues: Array, right_eigenvectors: Array, t: int) -> Array:
    """Phi_t(x) = lambda^(t-1) sum_j p(x, j) psi(j): P psi = lambda psi read as a definition outside the data.

    Args:
        transition: probabilities p(x, j) of stepping from a new point to an old one, `[point, node]`; may be sparse.
        eigenvalues: `[pair]`.
        right_eigenvectors: psi, `[node, pair]`.
        t: the time; at t = 0 a pair with eigenvalue zero has no extension and gives zero.
    """
    vanishing = eigenvalues == 0
    safe = eigenvalues + 1.0 * vanishing
    power = eigenvalues ** (t - 1) if t > 0 else (1.0 - 1.0 * vanishing) / safe
    return power * (transition @ right_eigenvectors)
