"""Many small graphs as padded blocks of one shape, worked out once: a batch is then the same rows of a few tensors.

On a GPU the shapes of a batch depend on its size alone, and nothing in it asks the device for a number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_type_hints

import torch
from torch import Tensor
from torch_geometric.data import Batch

from lanczosnet.affinity import Padding
from lanczosnet.backends import operation
from lanczosnet.backends.autograd import first_order
from lanczosnet.backends.registry import static_shapes
from lanczosnet.batching.from_data import DENSE_UP_TO
from lanczosnet.batching.graph_batch import GraphBatch
from lanczosnet.graphs import PackedGraphs

# The operators of a data set may take this many bytes: QM8's take less than one GiB, whatever the network.
MOST_BYTES = 2**31


def pair_order(sizes: Tensor) -> Tensor:
    """How to put graphs of so many nodes, `[..., graph]`, so that their pairs need the least width.

    The smallest graph shares its block with the largest, and so on: the first half rises, and its partners follow.
    """
    first, second = sizes.argsort(stable=True, dim=-1).tensor_split(2, -1)
    return torch.cat([first, second.flip(-1)], -1)


def pair_width(sizes: Tensor) -> Tensor:
    """How wide the blocks of these graphs in pairs must be, an even number of them: `[..., graph]` -> `[...]`."""
    first, second = sizes.chunk(2, -1)
    return (first + second).amax(-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class PaddedBatch(GraphBatch):
    """What a network needs of graphs besides its parameters.

    The annotations name the axes of a tensor: the first one is the graph, and those of nodes are as long as the largest
    graph has nodes.
    """

    x: Annotated[Tensor, "graph node"]  # types, or features [graph, node, feature]; zero on padding
    mask: Annotated[Tensor, "graph node"]  # one on nodes and zero on padding
    descriptors: Annotated[Tensor | None, "graph"] = None  # that the graphs bring themselves, [graph, descriptor]
    rows: Tensor | None = None  # where nodes are among all places, [row]; None where padding is carried along
    pair_mask: Tensor | None = None  # where two graphs share a block: one on nodes of each by itself, [graph, node]

    can_join: ClassVar[bool] = False  # whether blocks of other widths may be padded and join them (`buckets`)
    can_pair: ClassVar[bool] = False  # whether two graphs that share no entry of an operator may share a block
    widest_pair: ClassVar[int] = 2 * DENSE_UP_TO  # nodes, beyond which that would not pay

    def __len__(self) -> int:
        return len(self.mask)

    @property
    def nodes(self) -> Tensor:
        nodes = self.x.flatten(0, 1)
        return nodes if self.rows is None else nodes.index_select(0, self.rows)

    @property
    def padding(self) -> Padding:
        num_graphs, width = self.mask.shape
        return Padding(num_graphs, width, self.rows)

    def gather(self, graphs: Tensor, *, same_shape: bool | None = None) -> Self:
        """The blocks of the graphs of these numbers.

        Their shapes depend on how many there are alone where `same_shape` says so, by default on a GPU; else, on a
        CPU, where a shape may be asked for and arithmetic counts, they are as wide as the largest of these graphs.
        """
        if static_shapes(self.mask) if same_shape is None else same_shape:
            return self._with({key: value.index_select(0, graphs) for key, value in self.tensors().items()})
        mask = self.mask.index_select(0, graphs)
        width = max(int(mask.sum(1).max()), 1)
        rows = mask[:, :width].flatten().nonzero().squeeze(1)
        cut = {key: _cut(getattr(self, key), names, width) for key, names in self._present().items()}
        return self._with({key: value.index_select(0, graphs) for key, value in cut.items()}, rows=rows)

    def shape_of(self, graphs: Tensor) -> int | None:
        """What `gather_as` has to know of a batch besides its size; None where `gather` does. On the host."""
        return None

    def gather_as(self, graphs: Tensor, shape: int) -> Self:
        """Like `gather` of one shape, with less padding than any batch of so many graphs might need."""
        return self.gather_pairs(graphs, shape)

    def gather_pairs(self, graphs: Tensor, width: int) -> Self:
        """The same in half as many blocks of this width: every graph of the first half with one of the second.

        The nodes of the second graph run backwards from the end of the block, which has to be wide enough for every
        pair (`pair_width`) and not narrower than blocks of one graph. In the right order (`pair_order`), batches of the
        mean size leave little room for padding. Outputs are in the order of `graphs`.
        """
        axes = [(key, names) for key, names in self._present().items() if key != "descriptors"]
        tensors = {key: block_pairs(getattr(self, key), graphs, _grown(names), width) for key, names in axes}
        descriptors = None if self.descriptors is None else self.descriptors.index_select(0, graphs)
        return self._with(tensors, pair_mask=self.mask.index_select(0, graphs), descriptors=descriptors)

    def widened(self, multiple: int) -> Self:
        """With so much more padding that rows are a multiple as long: on a GPU, products want them to be aligned."""
        width = self.mask.shape[1]
        return self.grown({"node": width + -width % multiple})

    def lengths(self) -> dict[str, int]:
        """Of the axes that may be padded."""
        axes = [(names, getattr(self, key).shape) for key, names in self._present().items()]
        found = [pair for names, shape in axes for pair in zip(names, shape, strict=False)]
        return {name: length for name, length in found if name in ("node", "step")}

    def grown(self, lengths: Mapping[str, int]) -> Self:
        """With these axes padded to these lengths."""
        axes = self._present()
        return self._with({key: _pad(value, axes[key], lengths) for key, value in self.tensors().items()})

    def _with(self, tensors: dict[str, Tensor], **others: Any) -> Self:
        changes: dict[str, Any] = {**tensors, **others}
        return replace(self, **changes)

    def tensors(self) -> dict[str, Tensor]:
        """All that has a row for every graph."""
        return {key: getattr(self, key) for key in self._present()}

    def _present(self) -> dict[str, list[str]]:
        """The axes of those tensors that there are."""
        return {key: names for key, names in _axes(type(self)).items() if getattr(self, key) is not None}

    def spectra(self, network: Any, features: Tensor) -> Sequence[Any]:
        return network.operators(self, features)

    def readout(self, readout: Any, x: Tensor) -> Tensor:
        return read_blocks(self.padding.pad(x), readout, self.mask if self.pair_mask is None else self.pair_mask)


@operation
def read_blocks(x: Tensor, readout: Any, mask: Tensor) -> Tensor:
    """`[block, node, channel]` and `[graph, node]` -> `[graph, out_channels]`; two graphs may share a block."""
    apart = x if len(mask) == len(x) else _Apart.apply(x, mask.shape[1])
    return readout.padded(apart.flatten(0, 1), mask)


def _axes(kind: Any) -> dict[str, list[str]]:
    """The names of the axes of every tensor that has a row for every graph."""
    hints = get_type_hints(kind, include_extras=True).items()
    return {key: hint.__metadata__[0].split() for key, hint in hints if hasattr(hint, "__metadata__")}


def _cut(value: Tensor, axes: Sequence[str], width: int) -> Tensor:
    for place, axis in enumerate(axes):
        value = value.narrow(place, 0, width) if axis == "node" else value
    return value


def _pad(value: Tensor, axes: Sequence[str], lengths: Mapping[str, int]) -> Tensor:
    # Axes that the annotation leaves out are features, the last ones.
    named = zip(axes, value.shape, strict=False)
    extras = [lengths.get(axis, size) - size for axis, size in named] + [0] * (value.dim() - len(axes))
    return torch.nn.functional.pad(value, [end for width in reversed(extras) for end in (0, width)])


Blocks = TypeVar("Blocks", bound=PaddedBatch)


def joined_blocks(parts: Sequence[Blocks], width: int = 0) -> Blocks:
    """Blocks of several widths as one batch, in blocks as wide as the widest or as that."""
    if len(parts) == 1 and parts[0].mask.shape[1] >= width:
        return parts[0]
    every = [part.lengths() for part in parts]
    longest = {name: max(lengths[name] for lengths in every) for name in every[0]}
    longest["node"] = max(longest["node"], width)
    tensors = [part.grown(longest).tensors() for part in parts]
    return parts[0]._with({key: torch.cat([held[key] for held in tensors]) for key in tensors[0]})


def _grown(axes: Sequence[str]) -> list[int]:
    """The axes on which two graphs that share a block stand one after the other."""
    return [place for place, axis in enumerate(axes) if axis in ("node", "step")]


@operation
def block_pairs(table: Tensor, graphs: Tensor | None, grown: Sequence[int], width: int) -> Tensor:
    """The second half of these graphs, or of all, backwards behind the first, on the axes that grow to this width."""
    value = table if graphs is None else table.index_select(0, graphs)
    first, second = value.chunk(2)
    shape = [width if place in grown else size for place, size in enumerate(first.shape)]
    both = front = back = value.new_zeros(shape)
    for place in grown:
        size = value.shape[place]
        front, back = front.narrow(place, 0, size), back.narrow(place, width - size, size)
    front.copy_(first)
    back.add_(second.flip(tuple(grown)))  # neither graph has anything where the other one has
    return both


class _Apart(torch.autograd.Function):
    """Two graphs of every block one by one again, with so many rows each: `[block, node, channel]` -> `[graph, ...]`.

    Backwards their gradients share blocks as the graphs do, which is one CUDA kernel where PyTorch's own way takes six.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, num_rows: int) -> Tensor:
        ctx.width = x.shape[1]
        return torch.cat([x[:, :num_rows], x[:, -num_rows:].flip(1)])

    @staticmethod
    @first_order
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return block_pairs(grad, None, [1], ctx.width), None


def fit_in_blocks(graphs: PackedGraphs, num_operators: int) -> bool:
    """Whether the graphs are small enough, and so few that their dense operators are no burden on the memory."""
    if len(graphs) == 0:
        return False
    width = int(graphs.node_ptr.diff().max())
    return 0 < width <= DENSE_UP_TO and 4 * len(graphs) * max(num_operators, 1) * width**2 <= MOST_BYTES


def all_graphs(graphs: PackedGraphs) -> Batch:
    return graphs.batch(torch.arange(len(graphs)))
