"""Many small graphs in a few long tensors, and batches of them without a loop.

Nodes of all graphs lie one after another, edges too; pointers say where each graph begins. A batch is a gather
(`lanczosnet.backends.arrays`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from lanczosnet.backends.arrays import arrays_for
from lanczosnet.graphs.errors import DataError

CHUNK = 32  # batches gathered at once while iterating


@dataclass(frozen=True, eq=False, repr=False)
class PackedGraphs(Sequence[Data]):
    """A sequence of PyG `Data` objects, packed.

    `edge_index` is `[edge, end]`, numbered within each graph; `node`, `edge` and `graph` hold the attributes by name,
    first axis nodes, edges or graphs. What belongs to the set but not to a batch (target names, SMILES, row numbers,
    scaffolds) is in `about`, and can be read as an attribute.
    """

    name: str
    node_ptr: Tensor
    edge_ptr: Tensor
    edge_index: Tensor
    node: dict[str, Tensor]
    edge: dict[str, Tensor]
    graph: dict[str, Tensor]
    about: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    def __getattr__(self, key: str) -> Any:
        if key != "about" and key in self.about:
            return self.about[key]
        raise AttributeError(f"{type(self).__name__} has no attribute {key!r}")

    def __repr__(self) -> str:
        nodes, edges = int(self.node_ptr[-1]), int(self.edge_ptr[-1])
        return f"PackedGraphs({self.name}, {len(self)} graphs, {nodes} nodes, {edges} edges)"

    @property
    def device(self) -> torch.device:
        return self.node_ptr.device

    @property
    def y(self) -> Tensor:
        """The targets of all graphs, `[graph, target]`."""
        return self.graph["y"]

    def to(self, device: torch.device | str) -> "PackedGraphs":
        """The same graphs with all tensors on a device."""
        return replace(
            self,
            node_ptr=self.node_ptr.to(device),
            edge_ptr=self.edge_ptr.to(device),
            edge_index=self.edge_index.to(device),
            node={key: value.to(device) for key, value in self.node.items()},
            edge={key: value.to(device) for key, value in self.edge.items()},
            graph={key: value.to(device) for key, value in self.graph.items()},
        )

    def __getitem__(self, index: Any) -> Any:
        """The graph at a number, or a list of graphs for a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[int(index)]
        nodes = slice(int(self.node_ptr[i]), int(self.node_ptr[i + 1]))
        edges = slice(int(self.edge_ptr[i]), int(self.edge_ptr[i + 1]))
        return Data(
            edge_index=self.edge_index[edges].t().contiguous(),
            **({} if self.node else {"num_nodes": nodes.stop - nodes.start}),
            **{key: value[nodes] for key, value in self.node.items()},
            **{key: value[edges] for key, value in self.edge.items()},
            **{key: value[i : i + 1] for key, value in self.graph.items()},
        )

    def batch(self, graphs: Tensor | Sequence[int]) -> Batch:
        """The graphs of these numbers as one PyG `Batch`, equal to `Batch.from_data_list` of them."""
        numbers = self._numbers(graphs)
        columns, node_ptr, edge_ptr = self._gather(numbers, len(numbers))
        return self._as_batch(columns, node_ptr, edge_ptr)

    def batches(
        self, batch_size: int, order: Tensor | Sequence[int] | None = None, drop_last: bool = False
    ) -> Iterator[Batch]:
        """Batches of the graphs in the given order (a permutation or a part of a split); all of them by default."""
        order = torch.arange(len(self)) if order is None else self._numbers(order)
        order = order[: len(order) // batch_size * batch_size] if drop_last else order
        for chunk in order.split(batch_size * CHUNK):
            yield from self._cut(len(chunk), batch_size, *self._gather(chunk, batch_size))

    def _numbers(self, graphs: Tensor | Sequence[int]) -> Tensor:
        """Of graphs that are named by their numbers, or by a mask over all of them."""
        numbers = torch.as_tensor(graphs)
        if numbers.dtype != torch.bool:
            return numbers if numbers.numel() else numbers.long()
        if numbers.shape != (len(self),):
            raise DataError(f"a mask over these {len(self)} graphs has that length, but this one {len(numbers)}")
        return numbers.nonzero().squeeze(1)

    def _gather(self, graphs: Tensor, batch_size: int) -> tuple[dict[str, Any], Any, Any]:
        """The attributes of these graphs one after another, nodes numbered within each batch, and their pointers."""
        xp, store = self._arrays
        graphs = xp.array(graphs)
        nodes, node_ptr, sizes = _ranges(xp, store["node_begin"], store["node_count"], graphs)
        edges, edge_ptr, degrees = _ranges(xp, store["edge_begin"], store["edge_count"], graphs)
        number, offset = xp.arange(len(graphs)), node_ptr[:-1]
        if batch_size < len(graphs):
            first = number // batch_size * batch_size  # the number of the first graph in each graph's batch
            number, offset = number - first, offset - node_ptr[first]
        rows = {"node": nodes, "edge": edges, "graph": graphs}
        columns = {key: xp.take(store[key], rows[level]) for key, level in self._levels.items()}
        columns["edge_index"] = xp.transposed_sum(columns["edge_index"], xp.repeat(offset, degrees))
        for key in self._renumbered:
            level = self._levels[key]
            columns[key] += offset if level == "graph" else xp.repeat(offset, sizes if level == "node" else degrees)
        columns["batch"] = xp.repeat(number, sizes)
        return columns, node_ptr, edge_ptr

    def _cut(
        self, total: int, batch_size: int, columns: dict[str, Any], node_ptr: Any, edge_ptr: Any
    ) -> Iterator[Batch]:
        """Cut gathered graphs into batches; nothing is copied."""
        starts = [*range(0, total, batch_size), total]
        cuts = {"node": node_ptr[starts].tolist(), "edge": edge_ptr[starts].tolist(), "graph": starts}
        levels = self._levels | {"batch": "node"}
        for k in range(len(starts) - 1):
            here = {level: slice(*cuts[level][k : k + 2]) for level in cuts}
            part = {key: columns[key][here[level]] for key, level in levels.items() if key != "edge_index"}
            part["edge_index"] = columns["edge_index"][:, here["edge"]]
            pointed = slice(starts[k], starts[k + 1] + 1)
            yield self._as_batch(part, node_ptr[pointed] - here["node"].start, edge_ptr[pointed] - here["edge"].start)

    def _as_batch(self, columns: dict[str, Any], node_ptr: Any, edge_ptr: Any) -> Batch:
        """A PyG batch as its collate function makes it, including what `to_data_list` needs.

        A copy of a blank batch, its storage filled at once: `Batch(...)` costs more than the gather.
        """
        tensor = self._arrays[0].tensor
        count = len(node_ptr) - 1
        numbers, zeros = _numbers(count)
        slices = {"node": tensor(node_ptr), "edge": tensor(edge_ptr), "graph": numbers}
        batch = _BLANK.__copy__()
        batch._store._mapping = {key: tensor(column) for key, column in columns.items()} | {"ptr": slices["node"]}
        vars(batch._store).update(
            _num_graphs=count,
            _slice_dict={key: slices[level] for key, level in self._levels.items()},
            _inc_dict=dict.fromkeys(self._levels, zeros)
            | dict.fromkeys(["edge_index", *self._renumbered], slices["node"][:-1]),
        )
        return batch

    @cached_property
    def _levels(self) -> dict[str, str]:
        """The first axis of every attribute."""
        groups = {"node": self.node, "edge": self.edge, "graph": self.graph}
        return {"edge_index": "edge"} | {key: level for level, group in groups.items() for key in group}

    @cached_property
    def _renumbered(self) -> list[str]:
        """Attributes that hold node numbers, which PyG knows by their names."""
        return [key for key in self._levels if "index" in key and key != "edge_index"]

    @cached_property
    def _arrays(self) -> tuple[Any, dict[str, Any]]:
        """The array functions for this device, and all tensors as its arrays."""
        xp = arrays_for(self.device)
        tensors = {
            "node_begin": self.node_ptr[:-1],
            "node_count": self.node_ptr.diff(),
            "edge_begin": self.edge_ptr[:-1],
            "edge_count": self.edge_ptr.diff(),
            "edge_index": self.edge_index,
        }
        return xp, {key: xp.array(value) for key, value in (tensors | self.node | self.edge | self.graph).items()}


def pack(graphs: Sequence[Data], name: str = "graphs", **about: Any) -> PackedGraphs:
    """Pack PyG `Data` objects that all have the same attributes."""
    if not graphs:
        raise DataError("there are no graphs to pack")
    keys = set(graphs[0].keys()) - {"num_nodes"}
    for i, data in enumerate(graphs):
        if set(data.keys()) - {"num_nodes"} != keys:
            differing = ", ".join(sorted((set(data.keys()) - {"num_nodes"}) ^ keys))
            raise DataError(f"graph {i} does not have the attributes of graph 0: {differing}")
    if "edge_index" not in keys:
        raise DataError("the graphs have no edge_index")
    levels = {key: _level(key, graphs) for key in sorted(keys - {"edge_index"})}
    groups: dict[str, dict[str, Tensor]] = {"node": {}, "edge": {}, "graph": {}}
    for key, level in levels.items():
        values = [data[key] for data in graphs]
        _check_alike(key, values)
        groups[level][key] = torch.cat([v.view(1) if v.dim() == 0 else v for v in values])
    return PackedGraphs(
        name=name,
        node_ptr=_pointers([data.num_nodes for data in graphs]),
        edge_ptr=_pointers([data.num_edges for data in graphs]),
        edge_index=torch.cat([data.edge_index for data in graphs], dim=1).t().contiguous(),
        **groups,
        about=about,
    )


def _check_alike(key: str, values: Sequence[Tensor]) -> None:
    """Rows of one attribute have one shape, and are all whole numbers or all real."""
    for i, value in enumerate(values):
        if value.shape[1:] != values[0].shape[1:] or value.is_floating_point() != values[0].is_floating_point():
            found = ", ".join(f"graph {n} has {_described(values[n])}" for n in (0, i))
            raise DataError(f"attribute {key!r} differs between graphs: {found}", remedy="Make them alike")


def _described(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def _level(key: str, graphs: Sequence[Data]) -> str:
    """The axis of an attribute: the one whose length it has in every graph."""
    for i, data in enumerate(graphs):
        if not isinstance(data[key], Tensor):
            raise DataError(
                f"attribute {key!r} of graph {i} is a {type(data[key]).__name__}, not a tensor",
                remedy=f"Leave it out of every graph (del data.{key}), or make it a tensor",
            )
    node_numbers = "index" in key and all(data[key].dim() == 1 for data in graphs)
    if any(word in key for word in ("index", "face", "batch")) and not node_numbers:
        raise DataError(
            f"attribute {key!r} cannot be packed", remedy="PyG renumbers attributes of this name; rename it"
        )
    lengths = [data[key].size(0) if data[key].dim() else 1 for data in graphs]
    sizes = {"graph": [1] * len(graphs), "node": [d.num_nodes for d in graphs], "edge": [d.num_edges for d in graphs]}
    order = ("edge", "graph", "node") if key.startswith("edge") else ("graph", "node", "edge")
    level = next((level for level in order if sizes[level] == lengths), None)
    if level is None:
        raise DataError(f"attribute {key!r} has neither one row per node, nor per edge, nor per graph")
    return level


def _pointers(counts: list[int]) -> Tensor:
    return torch.tensor([0, *counts]).cumsum(0)


def _ranges(xp: Any, begin: Any, count: Any, graphs: Any) -> tuple[Any, Any, Any]:
    """Numbers of all rows of the graphs, the pointers of the result, and each graph's length."""
    lengths = xp.take(count, graphs)
    pointers = xp.pointers(lengths)
    rows = xp.repeat(xp.take(begin, graphs) - pointers[:-1], lengths)
    rows += xp.arange(len(rows))
    return rows, pointers, lengths


_BLANK = Batch()


@cache
def _numbers(count: int) -> tuple[Tensor, Tensor]:
    return torch.arange(count + 1), torch.zeros(count, dtype=torch.long)
