"""The graph Fourier transform and its inverse (section 2), on Ritz pairs or a full eigenbasis."""

from typing import Any, Protocol

import torch
from torch import Tensor

from lanczosnet.krylov import RitzPairs


class SpectralBasis(Protocol):
    """Ritz pairs, ready to transform signals. The frequencies of all graphs that exist stand in one row."""

    values: Tensor  # [frequency]

    def transform(self, signal: Tensor) -> Tensor:
        """V^T X: `[..., node, channel]` -> `[frequency, channel]`."""

    def inverse(self, spectrum: Tensor) -> Tensor:
        """V Y: `[frequency, channel]` -> `[..., node, channel]`."""


def spectral_basis(pairs: RitzPairs) -> SpectralBasis:
    """The transform of some Ritz pairs: one graph, a padded batch, or ragged graphs and components."""
    if pairs.segment is not None:
        return RaggedBasis(pairs)
    if pairs.vectors.dim() == 3:
        return PaddedBasis(pairs)
    return WholeBasis(pairs.values, pairs.vectors)


def fourier_transform(pairs: RitzPairs, signal: Tensor) -> Tensor:
    """Y = U^T X."""
    return spectral_basis(pairs).transform(signal)


def inverse_fourier_transform(pairs: RitzPairs, spectrum: Tensor) -> Tensor:
    """X = U Y."""
    return spectral_basis(pairs).inverse(spectrum)


class WholeBasis:
    """One graph, vectors `[node, step]`."""

    def __init__(self, values: Tensor, vectors: Tensor) -> None:
        self.values = values
        self.vectors = vectors

    def transform(self, signal: Tensor) -> Tensor:
        return self.vectors.mT @ signal

    def inverse(self, spectrum: Tensor) -> Tensor:
        return self.vectors @ spectrum


class PaddedBasis:
    """A padded batch, vectors `[graph, node, step]`: steps past a graph's rank are left out of the row.

    A fifth of the frequencies of a batch of molecules are such padding, and what follows costs in proportion.
    """

    def __init__(self, pairs: RitzPairs) -> None:
        self.vectors = pairs.vectors
        self.place = _existing(pairs).flatten().nonzero().squeeze(1)
        self.values = pairs.values.flatten()[self.place]

    def transform(self, signal: Tensor) -> Tensor:
        return (self.vectors.mT @ signal).flatten(0, 1).index_select(0, self.place)

    def inverse(self, spectrum: Tensor) -> Tensor:
        graphs, _, steps = self.vectors.shape
        padded = spectrum.new_zeros(graphs * steps, spectrum.shape[-1]).index_copy(0, self.place, spectrum)
        return self.vectors @ padded.view(graphs, steps, -1).to(self.vectors.dtype)


class RaggedBasis:
    """Ragged graphs or components, vectors `[node, step]`: V is block-diagonal and kept as a sparse matrix.

    Gradients reach signals only.
    """

    def __init__(self, pairs: RitzPairs) -> None:
        assert pairs.segment is not None
        exists = _existing(pairs)
        self.values = pairs.values[exists]
        frequency = (exists.flatten().cumsum(0) - 1).view_as(exists)
        node, step = exists[pairs.segment].nonzero(as_tuple=True)
        column = frequency[pairs.segment[node], step]
        entries = pairs.vectors.detach()[node, step]
        shape = (len(pairs.vectors), len(self.values))
        self._vectors = csr_matrix(node, column, entries, shape)
        order = torch.argsort(column, stable=True)
        self._transposed = csr_matrix(column[order], node[order], entries[order], (shape[1], shape[0]))

    def transform(self, signal: Tensor) -> Tensor:
        return constant_product(signal, self._transposed, self._vectors)

    def inverse(self, spectrum: Tensor) -> Tensor:
        return constant_product(spectrum, self._vectors, self._transposed)


def _existing(pairs: RitzPairs) -> Tensor:
    """Which pairs are not padding, `[graph, step]`."""
    return torch.arange(pairs.values.shape[-1], device=pairs.values.device) < pairs.rank.unsqueeze(-1)


def csr_matrix(row: Tensor, column: Tensor, entries: Tensor, shape: tuple[int, int]) -> Tensor:
    """A CSR matrix from entries sorted by row."""
    count = torch.bincount(row, minlength=shape[0])
    pointer = torch.cat([count.new_zeros(1), count.cumsum(0)])
    return torch.sparse_csr_tensor(pointer.int(), column.int(), entries, shape, check_invariants=False)


def constant_product(signal: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
    """matrix @ signal with a gradient for the signal; the matrix is data, sparse, and its transpose is at hand."""
    return _ConstantProduct.apply(signal, matrix, transpose)


class _ConstantProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, signal: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.matrices = matrix, transpose
        ctx.signal_type = signal.dtype
        with torch.autocast(signal.device.type, enabled=False):
            return matrix @ signal.to(matrix.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        matrix, transpose = ctx.matrices
        return constant_product(grad, transpose, matrix).to(ctx.signal_type), None, None
