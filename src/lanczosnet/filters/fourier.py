"""The graph Fourier transform and its inverse (section 2), on Ritz pairs or a full eigenbasis."""

from typing import Any, Protocol

import torch
from torch import Tensor

from lanczosnet.krylov import RitzPairs


class SpectralBasis(Protocol):
    """Ritz pairs, ready to transform signals. `frequency` stands for one axis, or for [graph, step]."""

    values: Tensor  # [..., frequency]

    def transform(self, signal: Tensor) -> Tensor:
        """V^T X: `[..., node, channel]` -> `[..., frequency, channel]`."""

    def inverse(self, spectrum: Tensor) -> Tensor:
        """V Y: `[..., frequency, channel]` -> `[..., node, channel]`."""


def spectral_basis(pairs: RitzPairs) -> SpectralBasis:
    """The transform of some Ritz pairs: one graph, a padded batch, or ragged graphs and components."""
    if pairs.segment is None:
        return WholeBasis(pairs.values, pairs.vectors)
    return PackedBasis(pairs)


def fourier_transform(pairs: RitzPairs, signal: Tensor) -> Tensor:
    """Y = U^T X."""
    return spectral_basis(pairs).transform(signal)


def inverse_fourier_transform(pairs: RitzPairs, spectrum: Tensor) -> Tensor:
    """X = U Y."""
    return spectral_basis(pairs).inverse(spectrum)


class WholeBasis:
    """One graph, vectors `[node, step]`, or a padded batch `[graph, node, step]`."""

    def __init__(self, values: Tensor, vectors: Tensor) -> None:
        self.values = values
        self.vectors = vectors

    def transform(self, signal: Tensor) -> Tensor:
        return self.vectors.mT @ signal

    def inverse(self, spectrum: Tensor) -> Tensor:
        return self.vectors @ spectrum


class PackedBasis:
    """Ragged graphs or components: the pairs that exist, all in one row of frequencies.

    V is block-diagonal, one block per component, and is kept as a sparse matrix; padding would cost as many
    frequencies as K per component, more than there are nodes where components are small. Gradients reach signals only.
    """

    def __init__(self, pairs: RitzPairs) -> None:
        assert pairs.segment is not None
        exists = torch.arange(pairs.values.shape[-1], device=pairs.values.device) < pairs.rank.unsqueeze(-1)
        self.values = pairs.values[exists]
        frequency = (exists.flatten().cumsum(0) - 1).view_as(exists)
        node, step = exists[pairs.segment].nonzero(as_tuple=True)
        column = frequency[pairs.segment[node], step]
        entries = pairs.vectors.detach()[node, step]
        shape = (len(pairs.vectors), len(self.values))
        self._vectors = _csr(node, column, entries, shape)
        order = torch.argsort(column, stable=True)
        self._transposed = _csr(column[order], node[order], entries[order], (shape[1], shape[0]))

    def transform(self, signal: Tensor) -> Tensor:
        return _ConstantProduct.apply(signal, self._transposed, self._vectors)

    def inverse(self, spectrum: Tensor) -> Tensor:
        return _ConstantProduct.apply(spectrum, self._vectors, self._transposed)


def _csr(row: Tensor, column: Tensor, entries: Tensor, shape: tuple[int, int]) -> Tensor:
    """A CSR matrix from entries sorted by row."""
    count = torch.bincount(row, minlength=shape[0])
    pointer = torch.cat([count.new_zeros(1), count.cumsum(0)])
    return torch.sparse_csr_tensor(pointer.int(), column.int(), entries, shape, check_invariants=False)


class _ConstantProduct(torch.autograd.Function):
    """matrix @ signal, where the matrix is data and its transpose is at hand."""

    @staticmethod
    def forward(ctx: Any, signal: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.matrices = matrix, transpose
        ctx.signal_type = signal.dtype
        with torch.autocast(signal.device.type, enabled=False):
            return matrix @ signal.to(matrix.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        matrix, transpose = ctx.matrices
        return _ConstantProduct.apply(grad, transpose, matrix).to(ctx.signal_type), None, None
