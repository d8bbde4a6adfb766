"""Node features that a device has no memory for: they stay on the host, and are multiplied chunk by chunk."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lanczosnet.backends.autograd import first_order
from lanczosnet.backends.host_memory import from_host
from lanczosnet.batching.chunks import row_ranges

CHUNK_BYTES = 2**26


@dataclass(frozen=True)
class Noise:
    """Dropout of single features, drawn anew for every product from a number."""

    p: float
    seed: int

    def on(self, chunk: Tensor, first: int) -> Tensor:
        """The rows from `first` on, with the same noise at every call."""
        generator = torch.Generator(chunk.device).manual_seed(self.seed + first)
        kept = torch.empty_like(chunk).bernoulli_(1.0 - self.p, generator=generator)
        return chunk * kept.div_(1.0 - self.p)


@dataclass(frozen=True, eq=False)
class HostFeatures:
    """`[node, channel]` on the host, perhaps memory-mapped, that behave as if they were on a device."""

    rows: Tensor
    device: torch.device  # of weights and products
    dtype: torch.dtype
    noise: Noise | None = None
    kept_nodes: Tensor | None = None  # factors of products, [node, 1]

    @property
    def shape(self) -> torch.Size:
        return self.rows.shape

    def __len__(self) -> int:
        return len(self.rows)

    def dim(self) -> int:
        return self.rows.dim()

    def is_floating_point(self) -> bool:
        return True

    def double(self) -> "HostFeatures":
        return replace(self, dtype=torch.float64)

    def dropped(self, kept_nodes: Tensor, p: float) -> "HostFeatures":
        """With factors of whole nodes, and dropout of single features."""
        noise = Noise(p, int(torch.randint(2**60, ()))) if p else None
        return replace(self, noise=noise, kept_nodes=kept_nodes)

    def __matmul__(self, weights: Tensor) -> Tensor:
        """`[node, channel] @ [channel, out]`, under autocast in its type; gradients reach the weights."""
        kind = self.device.type
        if torch.is_autocast_enabled(kind):
            weights = weights.to(torch.get_autocast_dtype(kind))
        found: Tensor = _ChunkedProduct.apply(weights, self)
        return found if self.kept_nodes is None else found * self.kept_nodes.to(found.dtype)

    def chunks(self, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
        """Some rows after others, on the device."""
        bytes_of_row = max(1, self.rows.shape[1] * dtype.itemsize)
        for rows in row_ranges(len(self), CHUNK_BYTES // bytes_of_row):
            chunk = from_host(self.rows[rows], self.device, dtype)
            yield rows, chunk if self.noise is None else self.noise.on(chunk, rows.start)


class _ChunkedProduct(torch.autograd.Function):
    """X W; for the gradient of W every chunk travels again."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, features: HostFeatures) -> Tensor:
        ctx.features = features
        found = weights.new_empty(len(features), weights.shape[1])
        with torch.autocast(features.device.type, enabled=False):
            for rows, chunk in features.chunks(weights.dtype):
                torch.mm(chunk, weights, out=found[rows])
        return found

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        features: HostFeatures = ctx.features
        kind = torch.promote_types(grad.dtype, torch.float32)  # in which chunks are added up
        total = torch.zeros(features.shape[1], grad.shape[1], dtype=kind, device=grad.device)
        for rows, chunk in features.chunks(grad.dtype):
            total += chunk.mT @ grad[rows]
        return total.to(grad.dtype), None
