"""Graphs of all sizes as padded blocks of a few widths: a large graph costs the small ones nothing.

Blocks of one width would make every molecule as large as the largest. A bucket holds graphs up to its width; the widths
are those with the fewest entries in all blocks. Batches are filled bucket by bucket, so that nearly all have one width,
and shapes are the same in every epoch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor
from torch_geometric.data import Batch

from lanczosnet.batching.padded import PaddedBatch, joined_blocks
from lanczosnet.graphs import PackedGraphs

MOST_BUCKETS = 4
MULTIPLE = 4  # of which widths are: on a GPU, products want rows to be aligned
WIDEST = 512  # nodes: beyond, dense products cost more than sparse ones save
MOST_WASTE = 3.0  # entries of blocks per entry of the graphs in them; with more, graphs stay sparse
AT_ONCE = 1024  # graphs that are prepared at a time

Counts = tuple[int, ...]  # graphs of a batch in every bucket


@dataclass(frozen=True, eq=False)
class Buckets:
    """Blocks of rising widths, and where every graph is."""

    blocks: Sequence[PaddedBatch]
    bucket: Tensor  # [graph], on the host
    place: Tensor  # [graph], in its bucket

    def counts(self, graphs: Tensor) -> Counts | None:
        """What `gather` has to know of graphs, which are on the host; None if they are not in the order of buckets."""
        bucket = self.bucket[graphs]
        if bool((bucket.diff() < 0).any()):
            return None
        return tuple(torch.bincount(bucket, minlength=len(self.blocks)).tolist())

    def order(self, graphs: Tensor) -> Tensor:
        """How to put graphs, which are on the host, in the order of buckets."""
        return self.bucket[graphs].argsort(stable=True)

    def reordered(self, graphs: Tensor, batch_size: int) -> Tensor:
        """The same graphs, so that nearly every batch has one bucket; full batches in random order if these were."""
        ordered = graphs[self.order(graphs)]
        num_full = len(graphs) // batch_size
        full = ordered[: num_full * batch_size].view(num_full, batch_size)
        return torch.cat([full[graphs[:num_full].argsort()].flatten(), ordered[num_full * batch_size :]])

    def gather(self, graphs: Tensor, counts: Counts) -> PaddedBatch:
        """The blocks of these graphs, in the order of buckets and so many of each, as wide as the last needs."""
        places = self.place.index_select(0, graphs).split(counts)
        pairs = zip(self.blocks, places, strict=True)
        return joined_blocks([blocks.gather(place, same_shape=True) for blocks, place in pairs if len(place)])


def buckets_of(
    graphs: PackedGraphs, num_operators: int, most_bytes: int, padded: Callable[[Batch], PaddedBatch | None]
) -> Buckets | None:
    """None where graphs are too large, operators would take more memory than that, or blocks cannot be joined."""
    sizes = graphs.node_ptr.diff().cpu()
    if not len(sizes) or not 0 < int(sizes.max()) <= WIDEST:
        return None
    widths = torch.tensor(bucket_widths(sizes))
    bucket = torch.searchsorted(widths, sizes)
    num_entries = int(widths[bucket].square().sum())
    is_small = 4 * num_entries * max(num_operators, 1) <= most_bytes
    if not is_small or num_entries > MOST_WASTE * int(sizes.square().sum()):
        return None
    members = [(bucket == number).nonzero().squeeze(1) for number in range(len(widths))]
    parts = _parts(padded(graphs.batch(part)) for each in members for part in each.split(AT_ONCE))
    if parts is None:
        return None
    numbers = iter(parts)
    blocks = [
        joined_blocks(list(islice(numbers, len(each.split(AT_ONCE)))), int(width))
        for each, width in zip(members, widths, strict=True)
    ]
    place = torch.zeros_like(bucket)
    for each in members:
        place[each] = torch.arange(len(each))
    return Buckets(blocks, bucket, place.to(graphs.device))


def _parts(found: Iterable[PaddedBatch | None]) -> list[PaddedBatch] | None:
    """All of them; None at the first that is no part of a batch with others."""
    parts: list[PaddedBatch] = []
    for part in found:
        if part is None or not part.can_join:
            return None
        parts.append(part)
    return parts


def bucket_widths(sizes: Tensor, most: int = MOST_BUCKETS) -> list[int]:
    """At most so many widths, with the fewest entries in the blocks of graphs of these sizes."""
    widths, counts = (-(-sizes.clamp(min=1) // MULTIPLE) * MULTIPLE).unique(return_counts=True)
    below = [0, *counts.cumsum(0).tolist()]
    area = [int(width) ** 2 for width in widths]
    # best[end] are the fewest entries of the first `end` sizes, and the last places of their buckets.
    best: list[tuple[int, list[int]]] = [(0, [])] + [
        (below[end] * area[end - 1], [end]) for end in range(1, len(below))
    ]
    for _ in range(most - 1):
        best = [best[0], *(min(_cuts(best, below, area, end)) for end in range(1, len(below)))]
    return [int(widths[end - 1]) for end in best[-1][1]]


def _cuts(
    best: Sequence[tuple[int, list[int]]], below: Sequence[int], area: Sequence[int], end: int
) -> Iterator[tuple[int, list[int]]]:
    """The ways to end with a bucket more."""
    for begin in range(end):
        entries, ends = best[begin]
        yield entries + (below[end] - below[begin]) * area[end - 1], [*ends, end]
