"""How many Ritz pairs a graph needs: as many as carry its features over long scales."""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import SparseOperator, connected_components
from lanczosnet.backends.segments import segment_sum
from lanczosnet.krylov import start as start_vectors
from lanczosnet.krylov.components import check_start
from lanczosnet.krylov.inner_product import project
from lanczosnet.krylov.lanczos import in_full_precision
from lanczosnet.krylov.large_components import LARGE_COMPONENT, FoundPairs, krylov_space, parts
from lanczosnet.krylov.ritz import RitzPairs
from lanczosnet.krylov.small_components import rest_of
from lanczosnet.krylov.space import KrylovSpace

FIRST = 20  # pairs that are tried first
GROWTH = 1.25  # from one number that is tried to the next
CHANNELS = 16  # random mixtures of the features, on which the error is measured


class AutoRitzPairs(NamedTuple):
    """Ritz pairs, and why this number was chosen."""

    pairs: RitzPairs
    num_pairs: int  # K
    error: float  # ||S^t X - V R^t V^T X|| / ||S^t X|| for the longest scale t
    captured: float  # 1 - error^2, the share of the long-scale signal that the pairs carry
    reason: Literal["tolerance", "budget", "exhausted"]  # why K grew no further


def auto_ritz_pairs(
    operator: SparseOperator,
    signal: Tensor,
    *,
    scale: int = 30,
    tolerance: float = 0.05,
    budget: int = 400,
    start: Tensor | None = None,
    components: tuple[Tensor, int] | None = None,
) -> AutoRitzPairs:
    """As many Ritz pairs per connected component as the features need, found by growing the Krylov spaces.

    K grows from 20 by a quarter at a time until ||S^t X - V R^t V^T X|| <= tolerance ||S^t X||. Vectors are kept, so
    that K pairs cost K Lanczos steps. The result depends on nothing random: the mixtures have a fixed seed.

    Args:
        operator: S, as a sparse operator. Not differentiable.
        signal: the features X, `[node]` or `[node, channel]`. More than 16 channels are mixed into 16 at random.
        scale: t, the longest scale of the network.
        tolerance: of the relative error.
        budget: the largest K.
        start: the first Lanczos vector, `[node]`; ones where absent. What it cannot reach no K captures.
        components: those of `connected_components`, where they are known.
    """
    _check(operator, signal, scale, tolerance, budget)
    with torch.no_grad(), in_full_precision(operator, signal):
        start = start_vectors.ones(operator) if start is None else start
        growing = _Growing(operator, _mixed(signal.to(operator.dtype)), scale, start, components)
        num_pairs = min(FIRST, budget)
        while True:
            growing.extend(num_pairs, budget)
            error = growing.error(num_pairs)
            reason = _reason_to_stop(error <= tolerance, num_pairs == budget, growing.is_exhausted(num_pairs))
            if reason is not None:
                return AutoRitzPairs(growing.pairs(num_pairs), num_pairs, error, 1.0 - error**2, reason)
            num_pairs = min(int(GROWTH * num_pairs), budget)


def _reason_to_stop(
    is_close: bool, is_spent: bool, is_exhausted: bool
) -> Literal["tolerance", "budget", "exhausted"] | None:
    return "tolerance" if is_close else "exhausted" if is_exhausted else "budget" if is_spent else None


def _mixed(signal: Tensor) -> Tensor:
    """`[node, channel]` with few channels: Gaussian mixtures keep the ratio of two errors' expected squares."""
    signal = signal.unsqueeze(1) if signal.dim() == 1 else signal
    if signal.shape[1] <= CHANNELS:
        return signal
    mixture = torch.randn(signal.shape[1], CHANNELS, generator=torch.Generator().manual_seed(0))
    return signal @ mixture.to(signal)


class _Growing:
    """One Krylov space per large component, which grows; the pairs of the others are found anew for every K."""

    def __init__(
        self, operator: SparseOperator, signal: Tensor, scale: int, start: Tensor, components: tuple[Tensor, int] | None
    ) -> None:
        self.operator, self.scale = operator, scale
        self.segment, count = connected_components(operator) if components is None else components
        self.size = torch.bincount(self.segment, minlength=count)
        is_large = self.size >= LARGE_COMPONENT
        check_start(start, self.segment, self.size > FIRST)
        diffused = signal
        for _ in range(scale):
            diffused = operator.product(diffused)
        self.square = segment_sum(diffused.double().square().sum(1), self.segment, count)
        self.rest = rest_of(operator, start, self.segment, ~is_large)
        if self.rest is not None:
            self.rest_signal, self.rest_diffused = signal[self.rest.node], diffused[self.rest.node]
        self.large = [
            _LargeComponent(label, node, krylov_space(S, first, FIRST, 0), *_on(node, signal, diffused))
            for label, node, S, first in parts(operator, start, self.segment, self.size, is_large)
        ]

    def extend(self, num_pairs: int, budget: int) -> None:
        for each in self.large:
            each.extend(num_pairs, budget)
        if self.rest is not None:
            self.rest_pairs = self.rest.pairs(num_pairs, num_pairs, num_pairs)

    def is_exhausted(self, num_pairs: int) -> bool:
        is_exact = self.rest is None or bool((self.rest.size <= num_pairs).all())
        return is_exact and all(each.space.is_exhausted for each in self.large)

    def error(self, num_pairs: int) -> float:
        """||S^t X - V R^t V^T X|| / ||S^t X||."""
        square = sum(float(self.square[each.label]) - each.carried(self.scale) for each in self.large)
        if self.rest is not None and bool((self.rest.size > num_pairs).any()):
            carried = _diffused(self.rest_pairs, self.rest_signal, self.scale)
            square += float((self.rest_diffused - carried).double().square().sum())
        total = float(self.square.sum())
        return math.sqrt(max(square, 0.0) / total) if total else 0.0

    def pairs(self, num_pairs: int) -> RitzPairs:
        found = FoundPairs(self.operator, self.segment, self.size, num_pairs)
        for each in self.large:
            found.write(each.label, each.node, each.space.compress(num_pairs), each.space.basis())
        pairs = found.result()
        if self.rest is not None:
            self.rest.write(self.rest_pairs, pairs)
        return pairs


class _LargeComponent:
    """A Krylov space, and the coordinates of X and of S^t X in it."""

    def __init__(self, label: int, node: Tensor | None, space: KrylovSpace, signal: Tensor, diffused: Tensor) -> None:
        self.label, self.node, self.space = label, node, space
        self.signals = torch.cat([signal, diffused], 1).to(space.block.dtype)
        self.coordinates = self.signals[:0].double()

    def extend(self, num_pairs: int, budget: int) -> None:
        if num_pairs > self.space.capacity:
            self.space.reserve(min(2 * num_pairs, budget))
        self.space.extend(num_pairs)
        new = self.space.block[len(self.coordinates) : self.space.size]
        self.coordinates = torch.cat([self.coordinates, project(new, self.signals).double()])

    def carried(self, scale: int) -> float:
        """||S^t X||^2 - ||S^t X - Q T^t Q^T X||^2, where Q is orthonormal."""
        values, rotation = torch.linalg.eigh(self.space.projected())
        signal, diffused = self.coordinates.chunk(2, 1)
        image = rotation @ (values.pow(scale).unsqueeze(1) * (rotation.mT @ signal))
        return float(((2.0 * diffused - image) * image).sum())


def _on(node: Tensor | None, *signals: Tensor) -> tuple[Tensor, ...]:
    return signals if node is None else tuple(signal[node] for signal in signals)


def _diffused(pairs: RitzPairs, signal: Tensor, scale: int) -> Tensor:
    """V R^t V^T X, pair by pair."""
    assert pairs.segment is not None
    result = torch.zeros_like(signal)
    for value, vector in zip(pairs.values.unbind(1), pairs.vectors.unbind(1), strict=True):
        along = segment_sum(vector.unsqueeze(1) * signal, pairs.segment, len(value))
        result += vector.unsqueeze(1) * (value.pow(scale).unsqueeze(1) * along)[pairs.segment]
    return result


def _check(operator: SparseOperator, signal: Tensor, scale: int, tolerance: float, budget: int) -> None:
    if signal.dim() not in (1, 2) or len(signal) != operator.num_nodes:
        raise ValueError(
            f"signal must have shape [{operator.num_nodes}] or [{operator.num_nodes}, channel], but has "
            f"{tuple(signal.shape)}"
        )
    if scale < 1 or budget < 1:
        raise ValueError(f"scale and budget must be at least 1, but are {scale} and {budget}")
    if not tolerance > 0:
        raise ValueError(f"tolerance must be positive, but is {tolerance}")
