"""The graph Fourier transform and its inverse (section 2), on Ritz pairs or a full eigenbasis."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lanczosnet.affinity import Padding
from lanczosnet.affinity.csr_product import ConstantMatrix
from lanczosnet.affinity.operator import full_precision_product
from lanczosnet.affinity.padding import SignalLayout
from lanczosnet.backends import operation
from lanczosnet.backends.processes import Processes
from lanczosnet.krylov import RitzPairs

LARGE = 512  # nodes of a component whose vectors are worth a product of their own


@operation
def block_coefficients(vectors: Tensor, signal: Tensor) -> Tensor:
    """V^T X of one large block: `[node, step]`, `[node, channel]` -> `[step, channel]`."""
    return vectors.mT @ signal


@operation
def block_signal(vectors: Tensor, coefficients: Tensor) -> Tensor:
    """V Y, whose gradient is the former."""
    return vectors @ coefficients


class SpectralBasis(ABC):
    """V, which takes signals into the frequencies of graphs or components, and back."""

    values: Tensor  # Ritz values, those of all graphs in one row, [frequency]

    @abstractmethod
    def project(self, signal: Tensor) -> Tensor:
        """V^T X: `[..., node, channel]` -> `[frequency, channel]`, or `[..., step, channel]` of a dense batch."""

    @abstractmethod
    def lift(self, coefficients: Tensor) -> Tensor:
        """V Y: the other way round, zero on nodes that the basis does not know."""


def spectral_basis(pairs: RitzPairs, processes: Processes | None = None, num_shared: int = 0) -> SpectralBasis:
    """The basis of some Ritz pairs: one graph, a padded batch, or ragged graphs and components; or what a process has
    of one graph."""
    if processes is not None:
        from lanczosnet.filters.sharded_basis import ShardedBasis  # which builds on this module

        return ShardedBasis(pairs, processes, num_shared)
    if pairs.segment is not None:
        return RaggedBasis(pairs)
    if pairs.vectors.dim() == 2:
        return DenseBasis(pairs.vectors, values=pairs.values)
    existing = _existing(pairs).flatten().nonzero().squeeze(1)
    return DenseBasis(pairs.vectors, values=pairs.values.flatten()[existing], existing=existing)


def fourier_transform(pairs: RitzPairs, signal: Tensor) -> Tensor:
    """Y = U^T X."""
    return spectral_basis(pairs).project(signal)


def inverse_fourier_transform(pairs: RitzPairs, spectrum: Tensor) -> Tensor:
    """X = U Y."""
    return spectral_basis(pairs).lift(spectrum)


class DenseBasis(SpectralBasis):
    """Dense vectors `[..., node, step]` of one graph or of padded blocks.

    Args:
        vectors: V; None for the identity.
        padding: how signals are padded to blocks; None if they have the layout of the vectors.
        values: Ritz values of the steps that exist, where V has any.
        existing: the steps that are not padding, among all blocks' `[frequency]`; None to keep all where they are.
            A fifth of the steps of a batch of molecules are padding, and what follows costs in proportion.
    """

    def __init__(
        self,
        vectors: Tensor | None,
        padding: SignalLayout | None = None,
        *,
        values: Tensor | None = None,
        existing: Tensor | None = None,
    ) -> None:
        self.vectors, self.padding, self.existing = vectors, padding, existing
        if values is not None:
            self.values = values

    def project(self, signal: Tensor) -> Tensor:
        blocks = signal if self.padding is None else self.padding.pad(signal)
        if self.vectors is None:
            return blocks
        coefficients = full_precision_product(self.vectors.mT, blocks)
        return coefficients if self.existing is None else coefficients.flatten(0, 1).index_select(0, self.existing)

    def lift(self, coefficients: Tensor) -> Tensor:
        if self.existing is not None and self.vectors is not None:
            num_blocks, _, num_steps = self.vectors.shape
            coefficients = Padding(num_blocks, num_steps, self.existing).pad(coefficients)
        blocks = coefficients if self.vectors is None else self.vectors @ coefficients.to(self.vectors.dtype)
        return blocks if self.padding is None else self.padding.unpad(blocks)


class RaggedBasis(SpectralBasis):
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
        # Only the rows of small blocks: cuSPARSE is very slow where nearly all rows are empty.
        self._rest_nodes = (~self._large.is_large[pairs.segment]).nonzero().squeeze(1)
        segment = pairs.segment[self._rest_nodes]
        row, step = rest[segment].nonzero(as_tuple=True)
        column = frequency[segment[row], step]
        entries = pairs.vectors.detach()[self._rest_nodes[row], step]
        self._rest = ConstantMatrix(row, column, entries, (len(segment), self._num_rest))

    def __deepcopy__(self, memo: dict[int, Any]) -> "RaggedBasis":
        return self  # it does not change, and PyTorch cannot copy sparse tensors

    def project(self, signal: Tensor) -> Tensor:
        parts = self._large.projected(signal)
        if not parts:
            return self._rest.transposed_product(signal)
        if self._num_rest:
            parts.append(self._rest.transposed_product(signal.index_select(0, self._rest_nodes)))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def lift(self, coefficients: Tensor) -> Tensor:
        large, rest = coefficients.split([len(self._large.values), self._num_rest])
        if self._large.are_all:
            return self._large.lifted(large)
        small = self._rest.product(rest)
        if not self._large.vectors:
            return small
        signal = small.new_zeros(len(self._large.nodes) + len(small), small.shape[1])
        signal = signal.index_copy(0, self._rest_nodes, small)
        return signal.index_copy(0, self._large.nodes, self._large.lifted(large).to(signal.dtype))


class _LargeBlocks(NamedTuple):
    is_large: Tensor  # [component]
    nodes: Tensor  # of large components, one after the other
    are_all: bool  # whether these are all nodes, in order
    values: Tensor  # [frequency]
    vectors: list[Tensor]  # [node, step] each

    def projected(self, signal: Tensor) -> list[Tensor]:
        if not self.vectors:
            return []
        rows = signal if self.are_all else signal.index_select(0, self.nodes)
        parts = zip(self.vectors, rows.split([len(block) for block in self.vectors]), strict=True)
        with torch.autocast(signal.device.type, enabled=False):
            return [block_coefficients(block, part.to(block.dtype)) for block, part in parts]

    def lifted(self, coefficients: Tensor) -> Tensor:
        """On their nodes."""
        widths = [block.shape[1] for block in self.vectors]
        parts = zip(self.vectors, coefficients.split(widths), strict=True)
        with torch.autocast(coefficients.device.type, enabled=False):
            rows = [block_signal(block, part.to(block.dtype)) for block, part in parts]
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


def _existing(pairs: RitzPairs) -> Tensor:
    """Which pairs are not padding, `[graph, step]`."""
    return torch.arange(pairs.values.shape[-1], device=pairs.values.device) < pairs.rank.unsqueeze(-1)
