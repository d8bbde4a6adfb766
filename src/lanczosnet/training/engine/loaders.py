"""Loaders: data on the device, and the steps of an epoch as indices into it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from lanczosnet.batching.buckets import Buckets, Counts
from lanczosnet.batching.host_features import HostFeatures
from lanczosnet.batching.padded import pair_order, pair_width
from lanczosnet.graphs import PackedGraphs
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.training.engine.devices import block_bytes, exact_matmul
from lanczosnet.training.engine.host_features import with_features_placed
from lanczosnet.training.engine.precision import default_type_of, in_precision_of
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.tasks import targets_of

CHECKED_AT_ONCE = 1024
ALIGNED_TO = 4  # numbers of a row on a GPU, 16 bytes
# Whether two graphs of a batch share a block on a GPU, where the model allows it: three tenths less arithmetic for
# molecules, at the price of a few more kernels and shapes. On an H200 an epoch of LanczosNet on QM8 takes 0.217 s in
# place of 0.235 s; `benchmarks/qm8.py --alone` compares.
PAIRED = True


Shape = int | Counts | None
Shapes = Sequence[Shape]


class Share(NamedTuple):
    """Which of how many processes takes its part of every batch."""

    process: int
    num_processes: int


WHOLE = Share(0, 1)


class Step(NamedTuple):
    """One process' share of a batch."""

    inputs: Any  # what the model takes
    rows: Tensor | None  # which of its outputs are wanted; None for all
    y: Tensor  # their targets, [item, target]
    batch_y: Tensor  # the targets of the whole batch, of which other processes may have the rest
    copies: int = 1  # how often the inputs hold the items, one copy after the other; `rows` are those of the first


class Loader(ABC):
    """Items of a data set, on a device."""

    is_fixed = True  # whether the shapes of a step depend on its number of items and on `shapes` alone
    y: Tensor | None

    def reordered(self, items: Tensor, batch_size: int) -> Tensor:
        """The same items in the same batches, in the order that costs a step least; on the host where it changes."""
        return items

    def shapes(self, items: Tensor, batch_size: int) -> list[Shape]:
        """For each batch of these items, in this order and on the host, what `step` has to know."""
        return [None]

    def num_steps(self, num_items: int, batch_size: int) -> int:
        return 1

    def of_all(self, items: Tensor, output: Tensor) -> Tensor:
        """The outputs of all these items, where processes have computed different ones."""
        return output

    @abstractmethod
    def step(self, items: Tensor, shape: Shape = None, copies: int = 1) -> Step:
        """These items, which are numbered on the device; nothing waits for the host where shapes are fixed."""

    @abstractmethod
    def steps(
        self, items: Tensor, batch_size: int, share: Share = WHOLE, copies: int = 1, shapes: Shapes | None = None
    ) -> Iterator[Step]:
        """These items in batches, in this order; so many copies of them at once if there are, else one.

        What `shapes` says of the batches may be left out, at the price of more padding.
        """


def loader_for(
    model: nn.Module,
    data: Data | PackedGraphs,
    device: torch.device,
    copies: int = 1,
    host_features: bool | None = None,
) -> Loader:
    """All data on the device, with whatever the model can compute before it is trained.

    `copies` of one graph side by side, in which noise differs, are one forward pass for as many views of its nodes.
    With `host_features` those of one graph stay on the host; None leaves it to `with_features_placed`.
    """
    if not isinstance(data, PackedGraphs):
        data = with_features_placed(model, data, device, host_features)
    elif host_features:
        raise TrainingError("only features of one graph can stay on the host, not of many: leave host_features out")
    data = in_precision_of(model, data)
    with exact_matmul(), default_type_of(model):
        if isinstance(data, PackedGraphs):
            return GraphLoader(model, data, device)
        return NodeLoader(model, data, device, copies)


class NodeLoader(Loader):
    """Nodes of one graph, all of them in every step; what does not depend on parameters is prepared once."""

    def __init__(self, model: nn.Module, data: Data, device: torch.device, copies: int = 1) -> None:
        on_device = copy(data).to(device)  # PyG moves the object it is asked to move
        self.inputs = {1: prepared(model, on_device, validate=True)}
        self.is_fixed = not isinstance(data.get("x"), HostFeatures)  # a copy to the device waits for the host
        if copies > 1 and self.is_fixed and not isinstance(data, StoredGraph):  # which is too large for several at once
            side_by_side = Batch.from_data_list([on_device] * copies)
            self.inputs[copies] = prepared(model, side_by_side, validate=False)
        self.y = targets_of(on_device) if "y" in data else None

    def step(self, items: Tensor, shape: Shape = None, copies: int = 1) -> Step:
        assert self.y is not None
        y = self.y.index_select(0, items)
        return self._step(items, y, y, copies)

    def steps(
        self, items: Tensor, batch_size: int, share: Share = WHOLE, copies: int = 1, shapes: Shapes | None = None
    ) -> Iterator[Step]:
        assert self.y is not None
        items = items.to(self.y.device)
        own = items[share.process :: share.num_processes]
        yield self._step(own, self.y[own], self.y[items], copies)

    def _step(self, items: Tensor, y: Tensor, batch_y: Tensor, copies: int) -> Step:
        copies = copies if copies in self.inputs else 1
        return Step(self.inputs[copies], items, y, batch_y, copies)


class GraphLoader(Loader):
    """Graphs on the device, with all that does not depend on parameters worked out once where the model can do so.

    `blocks` are then all graphs as padded blocks, and a batch is the same rows of its tensors. Else the graphs are
    packed, and a batch is gathered from them and prepared in every step.
    """

    def __init__(self, model: nn.Module, data: PackedGraphs, device: torch.device) -> None:
        self.model = model
        self.graphs = data.to(device)
        self.blocks = _blocks(model, self.graphs)
        self.buckets = _buckets(model, self.graphs) if self.blocks is None else None
        if self.blocks is None and self.buckets is None:
            self.graphs = _with_precomputed(model, self.graphs)
            for numbers in torch.arange(len(data)).split(CHECKED_AT_ONCE):  # checked here, so not again in every step
                prepared(model, self.graphs.batch(numbers), validate=True)
        self.y = self.graphs.graph.get("y")
        self.same_shape = device.type != "cpu"  # of all batches of so many graphs; a CPU would rather leave padding out
        self.sizes = data.node_ptr.diff().cpu()

    @property
    def is_fixed(self) -> bool:  # type: ignore[override]
        return self.same_shape and not (self.blocks is None and self.buckets is None)

    def reordered(self, items: Tensor, batch_size: int) -> Tensor:
        """Graphs of one bucket in one batch, and those that are to share a block half a batch apart, the smallest graph
        with the largest and so on."""
        if self.buckets is not None:
            return self.buckets.reordered(items.cpu(), batch_size)
        if not self._in_pairs:
            return items
        batches = _equal_batches(items.cpu(), batch_size)
        sorted_batches = [batch.gather(1, pair_order(self.sizes[batch])).flatten() for batch in batches]
        return torch.cat([items[:0].cpu(), *sorted_batches])

    def shapes(self, items: Tensor, batch_size: int) -> list[Shape]:
        """The width of blocks that two graphs share, or what the blocks know of a batch; None where neither matters."""
        items = items.cpu()
        if self.buckets is not None:
            return [self.buckets.counts(batch) for batch in items.split(batch_size)]
        if self._in_pairs:
            batches = _equal_batches(items, batch_size)
            return [width for batch in batches for width in self._pair_widths(self.sizes[batch])]
        return [self.blocks.shape_of(batch) if self.is_fixed else None for batch in items.split(batch_size)]

    @property
    def _in_pairs(self) -> bool:
        return PAIRED and self.is_fixed and self.blocks is not None and self.blocks.can_pair

    def _pair_widths(self, sizes: Tensor) -> list[Shape]:
        """For sizes `[batch, graph]`; None where one is left over, or pairs are under one block or as wide as two."""
        if sizes.shape[1] % 2:
            return [None] * len(sizes)
        alone, most = self.blocks.mask.shape[1], min(2 * self.blocks.mask.shape[1] - 1, self.blocks.widest_pair)
        widths = [width + -width % ALIGNED_TO for width in pair_width(sizes).tolist()]
        return [width if alone <= width <= most else None for width in widths]

    def step(self, items: Tensor, shape: Shape = None, copies: int = 1) -> Step:
        assert self.y is not None
        ((inputs, rows),) = self._inputs([items], len(items), [shape])
        y = self.y.view(len(self.y), -1).index_select(0, items)
        return Step(inputs, rows, y, y)

    def steps(
        self, items: Tensor, batch_size: int, share: Share = WHOLE, copies: int = 1, shapes: Shapes | None = None
    ) -> Iterator[Step]:
        assert self.y is not None
        process, num_processes = share
        if batch_size % num_processes:
            raise TrainingError(f"batch_size must be a multiple of the {num_processes} processes, but is {batch_size}")
        y = self.y.view(len(self.y), -1)
        items = items.to(y.device)
        wholes = items.split(batch_size)
        # A process whose part of the last batch is empty computes a graph whose loss does not count.
        parts = [whole[process::num_processes] if len(whole) > process else whole[:1] for whole in wholes]
        all_inputs = self._inputs(parts, batch_size // num_processes, shapes or [None] * len(parts))
        for (inputs, rows), part, whole in zip(all_inputs, parts, wholes, strict=True):
            part_y = y[part]
            if len(whole) <= process:
                part_y = torch.full_like(part_y, -1 if not part_y.is_floating_point() else float("nan"))
            yield Step(inputs, rows, part_y, part_y if num_processes == 1 else y[whole])

    def _inputs(self, shares: list[Tensor], batch_size: int, shapes: Shapes) -> Iterator[tuple[Any, Tensor | None]]:
        """What the model takes for the graphs of each share, and which of its outputs are theirs; None for all."""
        if self.buckets is not None:
            return (self._of_buckets(self.buckets, *each) for each in zip(shares, shapes, strict=True))
        if self.blocks is not None:
            return ((self._gathered(*each), None) for each in zip(shares, shapes, strict=True))
        order = torch.cat(shares) if shares else torch.zeros(0, dtype=torch.long)
        batches = self.graphs.batches(batch_size, order)
        return ((prepared(self.model, batch, validate=False), None) for batch in batches)

    def _of_buckets(self, buckets: Buckets, graphs: Tensor, shape: Shape) -> tuple[Any, Tensor | None]:
        if isinstance(shape, tuple):
            return buckets.gather(graphs, shape), None
        order = buckets.order(graphs.cpu())
        counts = buckets.counts(graphs.cpu()[order])
        assert counts is not None
        order = order.to(graphs.device)
        return buckets.gather(graphs[order], counts), order.argsort()

    def _gathered(self, graphs: Tensor, shape: Any) -> Any:
        if shape is None:
            return self.blocks.gather(graphs, same_shape=self.same_shape)
        return self.blocks.gather_as(graphs, shape)

    def num_steps(self, num_items: int, batch_size: int) -> int:
        return -(-num_items // batch_size)


def _equal_batches(items: Tensor, batch_size: int) -> list[Tensor]:
    """The full batches and, if there is one, the smaller last one: `[batch, item]` each, to be treated at once."""
    end = len(items) - len(items) % batch_size
    parts = (items[:end].reshape(end // batch_size, batch_size), items[end:].unsqueeze(0))
    return [part for part in parts if part.numel()]


def prepared(model: nn.Module, data: Any, *, validate: bool) -> Any:
    prepare = getattr(model, "prepare", None)
    with default_type_of(model):
        return data if prepare is None else prepare(data, validate=validate)


def _blocks(model: nn.Module, graphs: PackedGraphs) -> Any:
    """All graphs as padded blocks, checked; None where the model does not have them or the graphs do not fit."""
    prepare_all = getattr(model, "prepare_all", None)
    on_cpu = graphs.device.type == "cpu"
    is_worth_it = not on_cpu or getattr(model, "blocks_on_cpu", True)
    blocks = prepare_all(graphs, validate=True) if prepare_all is not None and is_worth_it else None
    return blocks if blocks is None or on_cpu else blocks.widened(ALIGNED_TO)


def _buckets(model: nn.Module, graphs: PackedGraphs) -> Buckets | None:
    """Graphs of which some are too large for blocks of one width, on a GPU; on a CPU sparse batches cost less."""
    prepare_buckets = getattr(model, "prepare_buckets", None)
    if prepare_buckets is None or graphs.device.type == "cpu":
        return None
    found: Buckets | None = prepare_buckets(graphs, block_bytes(graphs.device))
    return found


def _with_precomputed(model: nn.Module, graphs: PackedGraphs) -> PackedGraphs:
    """What the model's `transform` adds to every graph, computed for all graphs at once.

    What has a row per component, as the Ritz values of molecules in several parts, is put on all of its nodes. With any
    other number of rows it is left out: the model then computes it in every step.
    """
    transform = getattr(model, "transform", None)
    if transform is None or len(graphs) == 0:
        return graphs
    everything = graphs.batch(torch.arange(len(graphs)))
    before = set(everything.keys())
    after = _on_nodes(transform(everything), before, len(graphs))
    sizes = {int(graphs.node_ptr[-1]): "node", len(graphs): "graph"}
    groups: dict[str, dict[str, Tensor]] = {"node": {}, "graph": {}}
    for key, value in after.items():
        level = sizes.get(len(value))
        if level is None:
            return graphs
        renumber = value - everything.ptr[:-1][everything.batch] if "index" in key else value
        groups[level][key] = renumber
    return replace(graphs, node=graphs.node | groups["node"], graph=graphs.graph | groups["graph"])


def _on_nodes(data: Any, before: set[str], num_graphs: int) -> dict[str, Tensor]:
    """What was added; of several components per graph, what has a row for each of them has it on every node."""
    added: dict[str, Tensor] = {key: data[key] for key in data.keys() if key not in before}  # noqa: SIM118
    if "component_index" not in added:
        return added
    first, component = added["component_index"].unique(return_inverse=True)
    are_several = len(first) not in (num_graphs, len(component))
    return {
        key: value[component] if are_several and len(value) == len(first) else value for key, value in added.items()
    }
