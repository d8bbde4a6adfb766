"""Two graphs into one block as one Triton kernel for a tensor.

PyTorch's operations gather the graphs, fill a block with zeros, copy one graph, turn the other around and add it: five
kernels, each over sooner than it is started.
"""

from collections.abc import Sequence

import triton
import triton.language as tl
from torch import Tensor

SIZE = 1024  # numbers of a block that one program makes


def block_pairs(table: Tensor, graphs: Tensor | None, grown: Sequence[int], width: int) -> Tensor:
    """`batching.padded.block_pairs` of a tensor of at most four axes on a GPU."""
    num_pairs = len(table if graphs is None else graphs) // 2
    shape = [width if place in grown else size for place, size in enumerate(table.shape)]
    found = table.new_empty([num_pairs, *shape[1:]])
    if found.numel():
        grid = (num_pairs, triton.cdiv(found[0].numel(), SIZE))
        numbers = table if graphs is None else graphs.contiguous()  # without numbers nothing reads them
        _pair[grid](table, numbers, found, width, GATHERS=graphs is not None, **_sizes(table, grown))
    return found


def _sizes(table: Tensor, grown: Sequence[int]) -> dict[str, int | bool]:
    """Of three axes beside that of graphs; those that are not there have one place."""
    sizes: dict[str, int | bool] = {"GRAPH": table.stride(0), "SIZE": SIZE, "num_warps": 4}
    for place, name in enumerate("ABC", start=1):
        exists = place < table.dim()
        sizes[name] = table.shape[place] if exists else 1
        sizes[f"STRIDE_{name}"] = table.stride(place) if exists else 0
        sizes[f"GROWS_{name}"] = place in grown
    return sizes


# The width is not a constant, since batches have several: one compilation serves all of them.
@triton.jit(do_not_specialize=["width"])
def _pair(  # type: ignore[no-untyped-def]
    table, graphs, found, width,
    GRAPH: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
    STRIDE_A: tl.constexpr, STRIDE_B: tl.constexpr, STRIDE_C: tl.constexpr,
    GROWS_A: tl.constexpr, GROWS_B: tl.constexpr, GROWS_C: tl.constexpr, GATHERS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    pair, num_pairs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    at = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    wide_a, wide_b, wide_c = width if GROWS_A else A, width if GROWS_B else B, width if GROWS_C else C
    a, b, c = at // (wide_b * wide_c), at // wide_c % wide_b, at % wide_c
    exists = a < wide_a
    first, second = pair, pair + num_pairs
    if GATHERS:
        first, second = tl.load(graphs + first), tl.load(graphs + second)
    inside = exists & (a < A) & (b < B) & (c < C)
    place = first * GRAPH + a * STRIDE_A + b * STRIDE_B + c * STRIDE_C
    value = tl.load(table + place, mask=inside, other=0)
    last = width - 1  # the second graph runs backwards from here
    a, b, c = last - a if GROWS_A else a, last - b if GROWS_B else b, last - c if GROWS_C else c
    inside = exists & (a < A) & (b < B) & (c < C)
    place = second * GRAPH + a * STRIDE_A + b * STRIDE_B + c * STRIDE_C
    value += tl.load(table + place, mask=inside, other=0)
    tl.store(found + pair * (wide_a * wide_b * wide_c) + at, value, mask=exists)
