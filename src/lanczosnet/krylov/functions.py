"""Functions of a symmetric matrix, f(T) = B f(R) B^T, with a gradient that repeated eigenvalues cannot break.

The gradient of eigh divides by eigenvalue gaps and is NaN where two eigenvalues meet, as they do in most molecules and
in every padded batch. That of f(T) does not need the eigenvectors' derivative at all (Daleckii and Krein): with the
divided differences F_ij = (f(r_i) - f(r_j)) / (r_i - r_j), it is B (F * (B^T G B)) B^T, smooth across repetitions.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.autograd.forward_ad as forward_mode
from torch import Tensor

from lanczosnet.backends import operation
from lanczosnet.backends.autograd import first_order
from lanczosnet.krylov.symmetric_eigen import symmetric_eigen

# Closer than this, a difference quotient is mostly rounding and the mean slope at both ends is better.
CLOSE = {torch.float32: 3e-4, torch.float64: 1e-6}


class Powers:
    """r -> (r^e for each exponent e), with divided differences that need no quotient: sum_a r_i^a r_j^(e-1-a)."""

    def __init__(self, exponents: Sequence[int]) -> None:
        if any(exponent < 0 or exponent != int(exponent) for exponent in exponents):
            raise ValueError(f"exponents must be non-negative integers, but are {list(exponents)}")
        self.exponents = [int(exponent) for exponent in exponents]

    def __call__(self, values: Tensor) -> Tensor:
        """`[..., n]` -> `[..., n, exponent]`."""
        return torch.stack([values**exponent for exponent in self.exponents], -1)

    def divided_differences(self, values: Tensor) -> Tensor:
        """`[..., n]` -> `[..., exponent, n, n]`."""
        left, right = values.unsqueeze(-1), values.unsqueeze(-2)
        current = torch.zeros_like(left * right)
        power = torch.ones_like(right)
        table = {0: current}
        for exponent in range(1, max(self.exponents, default=0) + 1):
            current = left * current + power
            power = power * right
            table[exponent] = current
        return torch.stack([table[exponent] for exponent in self.exponents], -3)


def matrix_function(
    matrix: Tensor,
    function: Callable[[Tensor], Tensor],
    eigen: tuple[Tensor, Tensor] | None = None,
    *,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """f(T) = B f(R) B^T for symmetric matrices `[..., n, n]`.

    Args:
        matrix: symmetric; zero-padded or with repeated eigenvalues as it comes.
        function: acts on each eigenvalue alone, `[..., n]` -> `[..., n]` or `[..., n, scale]`: `Powers`, an MLP, any
            differentiable torch function. Its parameters receive their gradients. Its derivative comes from its own
            `with_slope` or `divided_differences`, if it has one, else from forward mode.
        eigen: the matrix' eigenvalues and eigenvectors (`symmetric_eigen`), where they are at hand.
        dtype: in which it is decomposed and multiplied. In float32 values and gradients of matrices with up to 32 rows
            are right to a few units of its last digits.

    Returns:
        `[..., n, n]`, or `[..., scale, n, n]` where the function has several outputs. First derivatives only.
    """
    if matrix.dim() < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"matrix_function needs square matrices [..., n, n], but got {tuple(matrix.shape)}")
    if matrix.dtype not in CLOSE:
        raise ValueError(f"matrix_function runs in float32 or float64, not {matrix.dtype}: convert with .float()")
    with torch.autocast(matrix.device.type, enabled=False):
        values, vectors = symmetric_eigen(matrix, dtype) if eigen is None else eigen
        response, differences = _evaluate(function, values, matrix.dtype, matrix.requires_grad)
        if response.shape == values.shape:
            return _SpectralFunction.apply(matrix, response.unsqueeze(-1), vectors, differences).squeeze(-3)
        return _SpectralFunction.apply(matrix, response, vectors, differences)


class Slopes(NamedTuple):
    """What divided differences are made of."""

    values: Tensor  # eigenvalues, [..., n]
    response: Tensor  # f at them, [..., scale, n]
    slope: Tensor  # f' at them, [..., scale, n]
    close: float  # gap under which a quotient is mostly rounding


def _evaluate(
    function: Callable[[Tensor], Tensor], values: Tensor, dtype: torch.dtype, needs_slope: bool
) -> tuple[Tensor, Tensor | Slopes | None]:
    """f at the eigenvalues and, where the matrix wants a gradient, its divided differences `[..., scale, n, n]` or what
    they are made of."""
    if hasattr(function, "divided_differences"):
        response = _checked(function(values), values)
        return response, function.divided_differences(values) if needs_slope else None
    if not needs_slope:
        return _checked(function(values.to(dtype)), values), None
    response, slope = _with_slope(function, values.to(dtype))
    response = _checked(response, values)
    has_scales = response.dim() > values.dim()
    per_scale, slope = (
        part.to(values.dtype).movedim(-1, -2) if has_scales else part.to(values.dtype).unsqueeze(-2)
        for part in (response.detach(), slope)
    )
    return response, Slopes(values, per_scale, slope, CLOSE[dtype])


def _with_slope(function: Callable[[Tensor], Tensor], values: Tensor) -> tuple[Tensor, Tensor]:
    """f and f' for all outputs; f stays in the graph of its own parameters."""
    if hasattr(function, "with_slope"):
        return function.with_slope(values)
    with forward_mode.dual_level():
        inputs = forward_mode.make_dual(values, torch.ones_like(values))
        response, slope = forward_mode.unpack_dual(function(inputs))
    return response, torch.zeros_like(response) if slope is None else slope.detach()


def _checked(response: Tensor, values: Tensor) -> Tensor:
    if values.shape not in (response.shape, response.shape[:-1]):
        raise ValueError(
            f"the function must map [..., n] = {tuple(values.shape)} to the same shape or to [..., n, scale], "
            f"but gave {tuple(response.shape)}"
        )
    return response


def divided_differences(values: Tensor, response: Tensor, slope: Tensor, close: float) -> Tensor:
    """(f(r_i) - f(r_j)) / (r_i - r_j), and the mean slope where they nearly meet; `[..., n]` -> `[..., n, n]`."""
    gap = values.unsqueeze(-1) - values.unsqueeze(-2)
    is_close = gap.abs() < close
    quotient = (response.unsqueeze(-1) - response.unsqueeze(-2)) / torch.where(is_close, torch.ones_like(gap), gap)
    return torch.where(is_close, (slope.unsqueeze(-1) + slope.unsqueeze(-2)) / 2, quotient)


@operation
def weighted_differences(values: Tensor, response: Tensor, slope: Tensor, rotated: Tensor, close: float) -> Tensor:
    """The sum over scales of divided differences times `[..., n, scale, n]`: `[..., n, n]`."""
    return _weighted_sum(divided_differences(values.unsqueeze(-2), response, slope, close), rotated)


def _weighted_sum(differences: Tensor, rotated: Tensor) -> Tensor:
    return (differences.movedim(-3, -2) * rotated).sum(-2)


class _SpectralFunction(torch.autograd.Function):
    """(matrix, f(R) `[..., n, scale]`) -> B f(R) B^T `[..., scale, n, n]`."""

    @staticmethod
    def forward(
        ctx: Any, matrix: Tensor, response: Tensor, vectors: Tensor, differences: Tensor | Slopes | None
    ) -> Tensor:
        *parts, ctx.close = differences if isinstance(differences, Slopes) else (differences, None)
        ctx.save_for_backward(matrix, response, vectors, *parts)
        ctx.types = matrix.dtype, response.dtype
        # Scales stand between rows and columns, so that all of them are one product.
        scaled = vectors.unsqueeze(-2) * response.to(vectors.dtype).mT.unsqueeze(-3)  # [..., n, scale, step]
        product = (scaled.flatten(-3, -2) @ vectors.mT).unflatten(-2, scaled.shape[-3:-1])
        return product.movedim(-2, -3).to(matrix.dtype)

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        _, _, vectors, *parts = ctx.saved_tensors
        matrix_type, response_type = ctx.types
        grad = grad.to(vectors.dtype).movedim(-3, -2)
        half = (grad.flatten(-3, -2) @ vectors).unflatten(-2, grad.shape[-3:-1])
        rotated = (vectors.mT @ half.flatten(-2)).unflatten(-1, half.shape[-2:])  # B^T G B, [..., step, scale, step]
        matrix_grad = response_grad = None
        if ctx.needs_input_grad[0]:
            # Rotating back and symmetrising are linear: the sum over scales comes first.
            if ctx.close is None:
                core = _weighted_sum(parts[0], rotated)
            else:
                values, response, slope = parts
                core = weighted_differences(values, response, slope, rotated, ctx.close)
            matrix_grad = (vectors @ ((core + core.mT) / 2) @ vectors.mT).to(matrix_type)
        if ctx.needs_input_grad[1]:
            response_grad = rotated.diagonal(dim1=-3, dim2=-1).mT.to(response_type)
        return matrix_grad, response_grad, None, None
