"""The graph Fourier transform and its inverse (section 2), on Ritz pairs or a full eigenbasis."""

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from lanczosnet.affinity.csr_product import csr_product
from lanczosnet.affinity.segments import row_pointers
from lanczosnet.krylov import RitzPairs

LARGE = 512  # nodes of a component whose vectors are worth a product of their own


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
    """Ragged graphs or components, vectors `[node, step]`: V is block-diagonal.

    Its large blocks are multiplied as the dense matrices that they are, the many small ones together as a sparse one,
    where long rows would be slow. Gradients reach signals only.
    """

    def __init__(self, pairs: RitzPairs) -> None:
        assert pairs.segment is not None
        exists = _existing(pairs)
        self._large = _large_blocks(pairs)
        rest = exists & ~self._large.is_large.unsqueeze(1)
        self.values = torch.cat([self._large.values, pairs.values[rest]])
        self._num_rest = len(self.values) - len(self._large.values)
        frequency = (rest.flatten().cumsum(0) - 1).view_as(rest)
        node, step = rest[pairs.segment].nonzero(as_tuple=True)
        column = frequency[pairs.segment[node], step]
        entries = pairs.vectors.detach()[node, step]
        shape = (len(pairs.vectors), self._num_rest)
        self._vectors = csr_matrix(node, column, entries, shape)
        order = torch.argsort(column, stable=True)
        self._transposed = csr_matrix(column[order], node[order], entries[order], (shape[1], shape[0]))

    def __deepcopy__(self, memo: dict[int, Any]) -> "RaggedBasis":
        return self  # it does not change, and PyTorch cannot copy sparse tensors

    def transform(self, signal: Tensor) -> Tensor:
        parts = self._large.transformed(signal)
        if self._num_rest or not parts:
            parts.append(constant_product(signal, self._transposed, self._vectors))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def inverse(self, spectrum: Tensor) -> Tensor:
        large, rest = spectrum.split([len(self._large.values), self._num_rest])
        if self._large.are_all:
            return self._large.inverse(large)
        signal = constant_product(rest, self._vectors, self._transposed)
        if not self._large.vectors:
            return signal
        return signal.index_copy(0, self._large.nodes, self._large.inverse(large).to(signal.dtype))


class _LargeBlocks(NamedTuple):
    is_large: Tensor  # [component]
    nodes: Tensor  # of large components, one after the other
    are_all: bool  # whether these are all nodes, in order
    values: Tensor  # [frequency]
    vectors: list[Tensor]  # [node, step] each

    def transformed(self, signal: Tensor) -> list[Tensor]:
        rows = signal if self.are_all else signal.index_select(0, self.nodes)
        heights = [len(block) for block in self.vectors]
        return [_dense_product(block.mT, part) for block, part in zip(self.vectors, rows.split(heights), strict=True)]

    def inverse(self, spectrum: Tensor) -> Tensor:
        """On their nodes."""
        widths = [block.shape[1] for block in self.vectors]
        parts = zip(self.vectors, spectrum.split(widths), strict=True)
        rows = [_dense_product(block, part) for block, part in parts]
        return rows[0] if len(rows) == 1 else torch.cat(rows)


def _large_blocks(pairs: RitzPairs) -> _LargeBlocks:
    assert pairs.segment is not None
    size = torch.bincount(pairs.segment, minlength=len(pairs.values))
    is_large = size >= LARGE
    nodes = torch.argsort(pairs.segment, stable=True)  # by component
    nodes = nodes[is_large[pairs.segment[nodes]]]
    blocks = pairs.vectors.detach()[nodes].split(size[is_large].tolist()) if len(nodes) else ()
    ranks = pairs.rank[is_large].tolist()
    values = [row[:rank] for row, rank in zip(pairs.values[is_large], ranks, strict=True)]
    return _LargeBlocks(
        is_large,
        nodes,
        are_all=len(nodes) > 0 and torch.equal(nodes, torch.arange(len(pairs.segment), device=nodes.device)),
        values=torch.cat([pairs.values.new_zeros(0), *values]),
        vectors=[block[:, :rank].contiguous() for block, rank in zip(blocks, ranks, strict=True)],
    )


def _dense_product(matrix: Tensor, signal: Tensor) -> Tensor:
    """In the type of the matrix, which is data, as `constant_product` has it."""
    with torch.autocast(signal.device.type, enabled=False):
        return matrix @ signal.to(matrix.dtype)


def _existing(pairs: RitzPairs) -> Tensor:
    """Which pairs are not padding, `[graph, step]`."""
    return torch.arange(pairs.values.shape[-1], device=pairs.values.device) < pairs.rank.unsqueeze(-1)


def csr_matrix(row: Tensor, column: Tensor, entries: Tensor, shape: tuple[int, int]) -> Tensor:
    """A CSR matrix from entries sorted by row."""
    count = torch.bincount(row, minlength=shape[0])
    return torch.sparse_csr_tensor(row_pointers(count).int(), column.int(), entries, shape, check_invariants=False)


def constant_product(signal: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
    """matrix @ signal with a gradient for the signal; the matrix is data, sparse, and its transpose is at hand."""
    return _ConstantProduct.apply(signal, matrix, transpose)


class _ConstantProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, signal: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.matrices = matrix, transpose
        ctx.signal_type = signal.dtype
        with torch.autocast(signal.device.type, enabled=False):
            return csr_product(matrix, signal.to(matrix.dtype))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        matrix, transpose = ctx.matrices
        return constant_product(grad, transpose, matrix).to(ctx.signal_type), None, None
