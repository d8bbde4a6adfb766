"""The Krylov space of one large graph, which can be extended, and compressed to its leading Ritz vectors.

S Q = Q H + beta q e^T, with H tridiagonal until the first compression. The steps are those of Algorithm 1, but most
vectors are made orthogonal to all earlier ones in batches, by products of matrices. A batch is as long as the
orthogonality that it loses allows: below the square root of the rounding error, the loss changes H by no more than the
rounding error (Simon, Math. Comp. 1984). It is measured in every batch, and vectors that lost more are computed again.
"""

import math

import torch
from torch import Tensor

from lanczosnet.krylov.inner_product import InnerProduct, WholeInnerProduct, project
from lanczosnet.krylov.iteration import Breakdown, Product, inverse, orthogonalized, unit

SMALL_GRAPH = 2**15  # nodes
FEW_PAIRS = 64
LONGEST_BATCH = 32
MOST_DEFLATED = 8  # directions in which orthogonality is lost: those of converged Ritz vectors
NODES_AT_A_TIME = 2**16  # that a rotation holds twice


class KrylovSpace:
    """Q as rows of `block[:size]`, H, and the next vector in row `size`."""

    def __init__(
        self, product: Product, start: Tensor, inner: InnerProduct, breakdown: Breakdown, capacity: int
    ) -> None:
        """The start vector has unit length, or is zero."""
        self.product, self.inner, self.breakdown = product, inner, breakdown
        self.size = self.anchor = 0  # rows before the anchor are Ritz vectors, each coupled to the anchor's
        self.block = start.new_empty(capacity + 1, len(start))
        self.block[0] = start
        self.diagonal, self.off_diagonal = start.new_zeros(2, capacity, dtype=torch.float64)
        self.coupling = self.diagonal[:0]
        self.lengths: list[float] = []  # of the residuals of the last batch
        self.batch = 2
        self.limit = math.sqrt(torch.finfo(start.dtype).eps) / 4
        self.deflated = self.block[:0]
        self.threshold: Tensor | None = None
        self.is_exhausted = not bool(inner.total(start.count_nonzero()))

    @property
    def capacity(self) -> int:
        return len(self.diagonal)

    def basis(self) -> Tensor:
        """`[step, node]`, without room for more."""
        found = self.block[: self.size]
        return found if len(self.block) <= self.size + 1 else found.clone()

    def reserve(self, capacity: int) -> None:
        """Make room for so many vectors."""
        block, diagonal, off_diagonal = self.block, self.diagonal, self.off_diagonal
        self.block = block.new_empty(capacity + 1, block.shape[1])
        self.block[: self.size + 1] = block[: self.size + 1]
        self.diagonal, self.off_diagonal = diagonal.new_zeros(2, capacity)
        self.diagonal[: self.size], self.off_diagonal[: self.size] = diagonal[: self.size], off_diagonal[: self.size]

    def extend(self, size: int) -> None:
        """To so many vectors, or all that there are."""
        while self.size < size and not self.is_exhausted:
            batch = min(self.batch, size - self.size)
            for place in range(self.size, self.size + batch):
                self._step(place, everything=False)
            kept = self._orthogonalize(batch)
            if kept == 0:  # one step of the plain algorithm
                self._step(self.size, everything=True)
                kept, self.lengths = 1, self.off_diagonal[self.size : self.size + 1].tolist()
            self.size += kept
            self._end_at_breakdown(kept)

    def _step(self, place: int, *, everything: bool) -> None:
        """The vector after that in row `place`."""
        first = 0 if everything or place == self.anchor else place - 1
        image = self.product(self.block[place])
        if self.threshold is None:
            self.threshold = self.breakdown.threshold(image, self.inner)
        residual, overlap = orthogonalized(image, self.block[first : place + 1], self.inner)
        if len(self.deflated):
            residual = self.inner.without(residual, self.deflated, self.inner.project(self.deflated, residual))
        length = self.inner.norm(residual)
        goes_on = length > self.threshold
        torch.mul(residual, inverse(length, goes_on).to(residual.dtype), out=self.block[place + 1])
        self.diagonal[place] = overlap[-1]
        self.off_diagonal[place] = length * goes_on

    def _orthogonalize(self, batch: int) -> int:
        """Clean the new vectors, and return how many of them were clean enough for it."""
        known, new = self.block[: self.size + 1], self.block[self.size + 1 : self.size + 1 + batch]
        # With earlier vectors.
        overlap = self.inner.total(project(new, self.block[: self.size + batch].mT)).tril(self.size)
        lost = torch.linalg.vector_norm(overlap, dim=1).double() / self.limit
        facts = torch.cat([lost, self.off_diagonal[self.size : self.size + batch]]).tolist()  # the host waits once
        loss, self.lengths = facts[:batch], facts[batch:]
        kept = next((place for place, each in enumerate(loss) if not each <= 1.0), batch)
        self._adapt(overlap[-1, : self.size + 1], batch, kept, loss[-1])
        new, overlap = new[:kept], overlap[:kept]
        new.addmm_(overlap[:, : self.size + 1], known, alpha=-1)
        new -= overlap[:, self.size + 1 : self.size + kept] @ new[:-1]
        return kept

    def _adapt(self, lost: Tensor, batch: int, kept: int, loss: float) -> None:
        """Choose the length of the next batch by what this one lost."""
        if loss > 0.1 and batch < LONGEST_BATCH and len(self.deflated) < MOST_DEFLATED:
            self._deflate(lost)
        if kept < batch:
            self.batch = max(kept, 1)
        elif batch == self.batch:
            self.batch = min(2 * batch if loss < 0.01 else batch + 1, LONGEST_BATCH)

    def _deflate(self, coefficients: Tensor) -> None:
        """Keep what follows orthogonal to this direction, step by step."""
        direction = unit(coefficients @ self.block[: self.size + 1], self.inner)
        direction = unit(orthogonalized(direction, self.deflated, self.inner)[0], self.inner)
        self.deflated = torch.cat([self.deflated, direction.unsqueeze(0)])

    def _end_at_breakdown(self, count: int) -> None:
        """Of the last so many steps."""
        is_last = [length == 0.0 for length in self.lengths[:count]]
        if any(is_last):
            self.size += is_last.index(True) + 1 - count
            self.diagonal[self.size :] = self.off_diagonal[self.size :] = 0.0
            self.is_exhausted = True

    def projected(self) -> Tensor:
        """H, `[step, step]`, in float64."""
        beta = self.off_diagonal[: max(self.size - 1, 0)]
        H = self.diagonal[: self.size].diag() + beta.diag(1) + beta.diag(-1)
        if self.anchor and self.size > self.anchor:
            H[self.anchor, : self.anchor] = H[: self.anchor, self.anchor] = self.coupling
        return H

    def compress(self, num_pairs: int) -> Tensor:
        """Keep the Ritz vectors of largest modulus, in place, and return their Ritz values, which fall."""
        values, rotation = torch.linalg.eigh(self.projected())
        chosen = values.abs().topk(min(num_pairs, self.size)).indices.sort(descending=True).values
        values, rotation, residual = values[chosen], rotation[:, chosen], self.off_diagonal[self.size - 1 : self.size]
        turn = rotation.mT.to(self.block.dtype)
        for part in self.block[: self.size].split(NODES_AT_A_TIME, 1):
            part[: len(chosen)] = turn @ part
        self.block[len(chosen)] = self.block[self.size]
        self.coupling = rotation[-1:].squeeze(0) * residual
        self.size = self.anchor = len(chosen)
        self.diagonal[: self.size], self.off_diagonal[: self.size] = values, 0.0
        self.deflated = self.block[:0]
        return values


def has_long_basis(start: Tensor, num_steps: int, inner: InnerProduct) -> bool:
    """Whether batches pay: on one large graph, and hundreds of steps."""
    return (
        isinstance(inner, WholeInnerProduct) and start.dim() == 1 and len(start) > SMALL_GRAPH and num_steps > FEW_PAIRS
    )


def iterate_in_batches(
    product: Product, start: Tensor, num_steps: int, inner: InnerProduct, breakdown: Breakdown
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What `adjoint.lanczos_iteration` returns."""
    space = KrylovSpace(product, start, inner, breakdown, num_steps)
    space.extend(num_steps)
    space.block[space.size + (not space.is_exhausted) :] = 0.0
    diagonal, off_diagonal = space.diagonal.to(start.dtype), space.off_diagonal.to(start.dtype)
    return space.block, diagonal, off_diagonal, torch.tensor(space.size, device=start.device)
