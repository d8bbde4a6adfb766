"""Polynomial filters on S itself: what can be reached with a few products (section 2)."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from lanczosnet.affinity import Operator
from lanczosnet.filters.scales import Scales
from lanczosnet.krylov import lanczos


def power_terms(operator: Operator, signal: Tensor, scales: Sequence[int]) -> list[Tensor]:
    """[S^s X for s in scales], in the order given, by max(scales) products (Eq. 1 with g_t = S^t X)."""
    wanted = Scales(scales)
    current, found = signal, {}
    for power in range(max(wanted.finite, default=-1) + 1):
        if power > 0:
            current = operator @ current
        if power in wanted.finite:
            found[power] = current
    return [found[scale] for scale in wanted.finite]


def power_filter(operator: Operator, signal: Tensor, scales: Sequence[int], weights: Tensor) -> Tensor:
    """Y = sum_s S^s X W_s (Eq. 1), in the narrower of the input and the output width.

    Args:
        signal: `[..., node, in_channels]`.
        weights: `[scale, in_channels, out_channels]`.
    """
    in_channels, out_channels = weights.shape[1:]
    if out_channels <= in_channels:
        return _horner(operator, signal, scales, weights)
    terms = power_terms(operator, signal, scales)
    return sum((term @ weight for term, weight in zip(terms, weights, strict=True)), start=signal.new_zeros(()))


def power_sum(operator: Operator, signal: Tensor, scales: Sequence[int]) -> Tensor:
    """sum_s S^s X, by max(scales) products."""
    return _nested(operator, dict.fromkeys(scales, signal))


def _horner(operator: Operator, signal: Tensor, scales: Sequence[int], weights: Tensor) -> Tensor:
    """The same by Horner's rule: every product is in the output width."""
    mixed = (signal @ weights.movedim(0, -2).flatten(-2)).split(weights.shape[-1], -1)
    return _nested(operator, dict(zip(scales, mixed, strict=True)))


def _nested(operator: Operator, signals: Mapping[int, Tensor]) -> Tensor:
    """sum_s S^s X_s = X_a + S (X_b + S (...))."""
    highest = max(signals)
    result = signals[highest]
    for power in reversed(range(highest)):
        result = operator @ result
        if power in signals:
            result = result + signals[power]
    return result


def chebyshev_terms(laplacian: Operator, signal: Tensor, order: int, largest_eigenvalue: float = 2.0) -> list[Tensor]:
    """[T_0(L~) X, ..., T_{order-1}(L~) X] with the rescaled L~ = 2 L / lambda_max - I (section 2)."""
    if order < 1:
        raise ValueError(f"order must be at least 1, but is {order}")
    if largest_eigenvalue <= 0:
        raise ValueError(f"largest_eigenvalue must be positive, but is {largest_eigenvalue}")

    def rescaled(x: Tensor) -> Tensor:
        return (laplacian @ x) * (2.0 / largest_eigenvalue) - x

    terms = [signal]
    if order > 1:
        terms.append(rescaled(signal))
    while len(terms) < order:
        terms.append(2.0 * rescaled(terms[-1]) - terms[-2])
    return terms


def chebyshev_sum(product: Callable[[Tensor], Tensor], signals: Sequence[Tensor]) -> Tensor:
    """sum_k T_k(M) X_k by Clenshaw's rule, where `product` multiplies with M: as wide as the X_k, not as what they are
    made of."""
    *lower, current = signals
    after: Tensor | float = 0.0
    for order, signal in reversed(list(enumerate(lower))):
        current, after = signal + (2.0 if order else 1.0) * product(current) - after, current
    return current


def krylov_filter(operator: Operator, signal: Tensor, weights: Tensor) -> Tensor:
    """Y_j = sum_i Q~_i w_ij with an orthonormal basis Q~_i of every channel's own Krylov space (Eq. 3).

    One Lanczos run per input channel, all channels (and graphs) at once. The scale of a channel is lost, as in the
    paper: its Lanczos vectors have unit length.

    Args:
        signal: `[..., node, in_channels]`.
        weights: `[in_channels, out_channels, step]`.
    """
    if signal.shape[-1] != weights.shape[0]:
        raise ValueError(f"weights are for {weights.shape[0]} channels, but the signal has {signal.shape[-1]}")
    if operator.segment is not None or len(operator.shape) > 2:
        raise ValueError("krylov_filter takes one graph: give the graphs of a batch one by one")

    def product(vectors: Tensor) -> Tensor:  # [channel, node]
        return (operator @ vectors.mT).mT

    basis = lanczos(product, signal.mT.to(operator.dtype), weights.shape[-1]).basis  # [channel, node, step]
    return torch.einsum("ink,iok->no", basis, weights)
