"""A graph folder as PyG `Data` whose tensors share the memory of the mapped files."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from lanczosnet.graphs.formats.graph_folder import GraphFolder, open_graph, write_graph
from lanczosnet.schemas.graph_arrays import ARRAYS

NAMES = {"features": "x", "labels": "y"}
FACTS = ("name", "task", "targets", "units", "classes", "features", "metric")


class StoredGraph(Data):
    """A `Data` with the rows of its adjacency, `row_pointer` and `column`, in place of a list of edges.

    `edge_index` is made when it is asked for, in the order of the rows; nothing in `LanczosNet` asks for it.
    """

    @property
    def edge_index(self) -> Tensor | None:
        pointer = self["row_pointer"]
        nodes = torch.arange(len(pointer) - 1, device=pointer.device)
        row = nodes.repeat_interleave(pointer.diff(), output_size=len(self["column"]))
        return torch.stack([row, self["column"].long()])

    @property
    def num_edges(self) -> int:
        return len(self["column"])


def stored_graph(path: str | Path) -> StoredGraph:
    """Open a folder that `lanczosnet data convert` made. Nothing is read but the manifest."""
    return as_data(open_graph(path))


def as_data(folder: GraphFolder) -> StoredGraph:
    tensors = {NAMES.get(name, name): torch.from_numpy(array) for name, array in folder.arrays.items()}
    facts: dict[str, Any] = {key: folder.about[key] for key in FACTS if key in folder.about}
    facts.setdefault("name", folder.path.name)
    facts |= {"folder": str(folder.path), "fingerprint": folder.fingerprint}  # the folder is for messages
    return StoredGraph(num_nodes=folder.num_nodes, **tensors, **facts)


def store_graph(data: Data, path: str | Path) -> None:
    """Write a graph that fits into memory as a folder: undirected, weights of repeated edges averaged."""
    num_nodes = int(data.num_nodes or 0)
    edge_index, weight = remove_self_loops(data.edge_index, data.get("edge_weight"))
    if weight is None:
        edge_index = to_undirected(edge_index, num_nodes=num_nodes)
    else:
        edge_index, weight = to_undirected(edge_index, weight, num_nodes=num_nodes, reduce="mean")
    count = torch.bincount(edge_index[0], minlength=num_nodes)
    column_type = np.int32 if num_nodes < 2**31 else np.int64
    arrays = {
        "row_pointer": torch.cat([count.new_zeros(1), count.cumsum(0)]).numpy(),
        "column": edge_index[1].numpy().astype(column_type),
    }
    given = {name: data.get(NAMES.get(name, name)) for name in ARRAYS.keys() - arrays.keys()}
    given["edge_weight"] = weight
    arrays |= {name: value.cpu().numpy() for name, value in given.items() if isinstance(value, Tensor)}
    write_graph(path, arrays, {key: data[key] for key in FACTS if key in data})
