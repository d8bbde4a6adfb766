"""From the operator S to Krylov bases, Ritz pairs and functions of S."""

from lanczosnet.krylov import start
from lanczosnet.krylov.arnoldi import HessenbergDecomposition, arnoldi
from lanczosnet.krylov.auto import AutoRitzPairs, auto_ritz_pairs
from lanczosnet.krylov.chebyshev import chebyshev_block
from lanczosnet.krylov.components import component_ritz_pairs
from lanczosnet.krylov.error import ErrorBound, approximation_error, error_bound
from lanczosnet.krylov.functions import Powers, matrix_function
from lanczosnet.krylov.hermitian import hermitian_ritz_pairs
from lanczosnet.krylov.lanczos import Tridiagonalization, lanczos
from lanczosnet.krylov.ritz import RitzPairs, leading, matrix_powers, ritz, tridiagonal_matrix

__all__ = [
    "AutoRitzPairs",
    "ErrorBound",
    "HessenbergDecomposition",
    "Powers",
    "RitzPairs",
    "Tridiagonalization",
    "approximation_error",
    "arnoldi",
    "auto_ritz_pairs",
    "chebyshev_block",
    "component_ritz_pairs",
    "error_bound",
    "hermitian_ritz_pairs",
    "lanczos",
    "leading",
    "matrix_function",
    "matrix_powers",
    "ritz",
    "start",
    "tridiagonal_matrix",
]
