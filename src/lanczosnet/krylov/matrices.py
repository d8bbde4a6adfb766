"""What Krylov methods multiply with, besides operators: matrices, and SciPy's `LinearOperator`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.linalg import LinearOperator
from torch import Tensor

from lanczosnet.affinity import Operator, adjacency
from lanczosnet.backends.autograd import first_order

Product = Callable[[Tensor], Tensor]
Matrix = Tensor | np.ndarray | scipy.sparse.sparray | scipy.sparse.spmatrix | LinearOperator

# How far <u, A v> may be from <A u, v>, relative to the lengths.
ASYMMETRY = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}


def opened(
    operator: Operator | Product | Matrix, start: Tensor | None, *, symmetric: bool, validate: bool = True
) -> tuple[Operator | Product, Tensor | None]:
    """An operator or a product function of whatever was passed, and a start vector that suits it.

    Args:
        operator: returned as it is where it is an `Operator` or a function.
        start: as in `lanczos`.
        symmetric: whether the method needs a symmetric matrix.
        validate: check that it is one.
    """
    if not isinstance(start, Tensor | None):
        raise TypeError(f"the start vector must be a tensor (torch.as_tensor makes one), not a {type(start).__name__}")
    if isinstance(operator, LinearOperator):
        product = ScipyProduct(operator)
        if symmetric and validate:
            product.check_symmetric()
        return product, product.start(start)
    if isinstance(operator, Tensor | np.ndarray | scipy.sparse.sparray | scipy.sparse.spmatrix):
        return adjacency(_floating(operator), directed=not symmetric, validate=validate), start
    return operator, start


def _floating(matrix: Any) -> Any:
    """A matrix of integers, which `adjacency` would take for an edge_index, counts as one of numbers."""
    if isinstance(matrix, np.ndarray):
        matrix = torch.as_tensor(matrix)
    if isinstance(matrix, Tensor) and not (matrix.is_floating_point() or matrix.is_complex()):
        return matrix.to(torch.get_default_dtype())
    return matrix


class ScipyProduct:
    """Multiplies tensors with a `LinearOperator`, whose own entries have no gradient."""

    def __init__(self, operator: LinearOperator) -> None:
        if len(operator.shape) != 2 or operator.shape[0] != operator.shape[1]:
            raise ValueError(f"Krylov methods need a square LinearOperator, but this one has shape {operator.shape}")
        self.operator = operator
        self.dtype = _dtype(operator)

    def __call__(self, vector: Tensor) -> Tensor:
        return _ScipyProduct.apply(vector, self)

    def start(self, given: Tensor | None) -> Tensor:
        """The start vector in the operator's type; ones where absent."""
        size = self.operator.shape[0]
        if given is None:
            return torch.ones(size, dtype=self.dtype)
        if given.shape != (size,):
            raise ValueError(f"the start vector must have shape {(size,)}, but has {tuple(given.shape)}")
        return given.to(self.dtype)

    def multiplied(self, vector: Tensor, *, adjoint: bool = False) -> Tensor:
        """A @ vector, or A^T @ vector; computed where SciPy computes, on the CPU."""
        multiply = self.operator.rmatvec if adjoint else self.operator.matvec
        image = multiply(vector.detach().cpu().numpy())
        return torch.as_tensor(np.ascontiguousarray(image)).to(vector)

    def check_symmetric(self) -> None:
        """By one random pair of vectors: <u, A v> = <A u, v>."""
        u, v = np.random.default_rng(0).standard_normal((2, self.operator.shape[0])).astype(_numpy_type(self.dtype))
        image_of_u, image_of_v = self.operator.matvec(u), self.operator.matvec(v)
        size = np.linalg.norm(u) * np.linalg.norm(image_of_v) + np.linalg.norm(image_of_u) * np.linalg.norm(v)
        if abs(u @ image_of_v - image_of_u @ v) > ASYMMETRY[u.dtype] * size:
            raise ValueError("lanczos needs a symmetric operator, and this LinearOperator is not: use arnoldi")


class _ScipyProduct(torch.autograd.Function):
    """The gradient of A v with respect to v is A^T g."""

    @staticmethod
    def forward(ctx: Any, vector: Tensor, product: ScipyProduct) -> Tensor:
        ctx.product = product
        ctx.save_for_backward(vector)
        return product.multiplied(vector)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.product.multiplied(grad, adjoint=True), None


def _dtype(operator: LinearOperator) -> torch.dtype:
    """float32 for an operator of that type, else float64."""
    kind = np.dtype(operator.dtype) if operator.dtype is not None else np.dtype(np.float64)
    if kind.kind == "c":
        raise ValueError("the LinearOperator is complex: pass a real one, for example of real and imaginary parts")
    return torch.float32 if kind == np.float32 else torch.float64


def _numpy_type(dtype: torch.dtype) -> type[np.floating]:
    return np.float32 if dtype == torch.float32 else np.float64
