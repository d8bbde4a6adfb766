"""The benchmarks of node classification in `node_sets`: one reader for each published format.

Every graph is made undirected, without repeated edges and self-loops, as the papers do. Splits are masks
`[node, split]`, as in PyG. `data.metric` names the customary metric.

| format | file | splits |
|---|---|---|
| `heterophilous` (Platonov et al. 2023) | npz: `node_features`, `node_labels`, `edges`, masks `[split, node]` | ten |
| `gnn-benchmark` (Shchur et al. 2018) | npz: CSR arrays `adj_*` and `attr_*`, `labels` | none |
| `wikics` (Mernyei and Cangea 2020) | JSON: `features`, `labels`, `links`, masks | twenty, one test set |
| `city` (City-Networks, Liang et al. 2025) | tar.gz of tensors | one: 10 / 10 / 80 % |

A `gnn-benchmark` file may also have the arrays `edges`, `feature_data`, `feature_indices`, `feature_indptr` and
`node_labels`. Its words are read as present or absent, whatever their counts.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from lanczosnet.files.json_text import parsed_json
from lanczosnet.graphs.data_sets.download import available
from lanczosnet.graphs.data_sets.node_sets import NODE_FILES, NODE_SETS, Format, NodeSet
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.archives import npz_names, read_npz, read_tensors

MASKS = ("train_mask", "val_mask", "test_mask")


class RawGraph(NamedTuple):
    """What a file holds: features, edges `[2, edge]` in one direction or both, labels, and masks."""

    x: Tensor
    edge_index: Tensor
    y: Tensor
    masks: dict[str, Tensor]


def node_graph(name: str, *, data_dir: str | Path | None = None) -> Data:
    """One benchmark by its name in `NODE_SETS`; its file is downloaded if it is not there."""
    file = NODE_FILES[name]
    # A copy that is there is checked while it is read, not once before.
    path = next(iter(file.found(data_dir)), None) or available(file, name, data_dir)
    return read_node_graph(path, NODE_SETS[name])


def read_node_graph(path: Path, known: NodeSet) -> Data:
    """The graph in a file; an error if it does not have the published numbers of nodes, edges, features and classes."""
    remedy = f"The file is damaged or another one: delete it and run `lanczosnet data fetch {known.name}`"
    try:
        raw = _READERS[known.format](path, known)
        edge_index = _undirected(raw, known)
        _check_labels_and_masks(raw, known)
    except DataError as error:
        raise DataError(str(error), file=path, remedy=remedy) from error
    except Exception as error:  # a damaged archive fails in any way at all
        raise DataError(f"the file cannot be read ({error!r})", file=path, remedy=remedy) from error
    masks = {key: mask.bool().contiguous() for key, mask in raw.masks.items()}
    x = raw.x.float().contiguous()
    return Data(x=x, edge_index=edge_index, y=raw.y.long(), name=known.name, metric=known.metric, **masks)


def _heterophilous(path: Path, known: NodeSet) -> RawGraph:
    masks = {f"{part}_mask": f"{part}_masks" for part in ("train", "val", "test")}
    names = ("node_features", "node_labels", "edges", *masks.values())
    arrays = {name: torch.from_numpy(array) for name, array in read_npz(path, names, known.largest).items()}
    _check_shape(arrays["node_features"].shape, known)
    pairs = arrays["edges"].long().t()
    return RawGraph(
        arrays["node_features"], pairs, arrays["node_labels"], {key: arrays[name].t() for key, name in masks.items()}
    )


def _gnn_benchmark(path: Path, known: NodeSet) -> RawGraph:
    has_edges = "edges" in npz_names(path)
    prefix, labels = ("feature", "node_labels") if has_edges else ("attr", "labels")
    sparse = [f"{prefix}_{part}" for part in ("data", "indices", "indptr")]
    adjacency = ["edges"] if has_edges else [f"adj_{part}" for part in ("data", "indices", "indptr")]
    shape = f"{prefix}_shape"
    arrays = read_npz(path, [*sparse, *adjacency, shape, labels], known.largest)
    held = tuple(arrays[shape].tolist())
    # Rows are nodes in all files, but some files have the transposed shape.
    _check_shape(held if held[0] == len(arrays[f"{prefix}_indptr"]) - 1 else held[::-1], known)
    x = torch.from_numpy(_csr([arrays[name] for name in sparse], known.nodes, known.features).toarray())
    x[x > 0] = 1
    pairs = arrays["edges"].T if has_edges else _ends([arrays[name] for name in adjacency], known.nodes)
    return RawGraph(x, torch.from_numpy(np.asarray(pairs)).long(), torch.from_numpy(arrays[labels]), {})


def _csr(parts: list[np.ndarray], rows: int, columns: int) -> scipy.sparse.csr_matrix:
    """Checked before it is made dense."""
    values, indices, offsets = parts
    matrix = scipy.sparse.csr_matrix((values.astype(np.float32), indices, offsets), shape=(rows, columns))
    matrix.check_format(full_check=True)
    return matrix


def _ends(parts: list[np.ndarray], nodes: int) -> np.ndarray:
    matrix = _csr(parts, nodes, nodes).tocoo()
    return np.stack([matrix.row, matrix.col])


def _wikics(path: Path, known: NodeSet) -> RawGraph:
    if path.stat().st_size > known.largest:
        raise DataError(f"the file has {path.stat().st_size:,} bytes, more than the {known.largest:,} expected")
    content = parsed_json(path.read_text(encoding="utf-8"))
    x = torch.tensor(content["features"], dtype=torch.float)
    _check_shape(x.shape, known)
    pairs = [(source, target) for source, targets in enumerate(content["links"]) for target in targets]
    masks = {key: torch.tensor(content[f"{key}s"]).t() for key in ("train_mask", "val_mask", "stopping_mask")}
    masks["test_mask"] = torch.tensor(content["test_mask"])
    return RawGraph(x, torch.tensor(pairs).view(-1, 2).t(), torch.tensor(content["labels"]), masks)


def _city(path: Path, known: NodeSet) -> RawGraph:
    files = {
        "x": "node_features_augmented.pt",
        "edge_index": "edge_indices.pt",
        "y": "10-chunk_16-hop_node_labels.pt",
        "train_mask": "train_mask.pt",
        "val_mask": "valid_mask.pt",
        "test_mask": "test_mask.pt",
    }
    tensors = read_tensors(path, files.values(), known.largest)
    x, edge_index, y, *masks = (tensors[name] for name in files.values())
    _check_shape(x.shape, known)
    return RawGraph(x, edge_index.long(), y, dict(zip(MASKS, masks, strict=True)))


_READERS: dict[Format, Callable[[Path, NodeSet], RawGraph]] = {
    "heterophilous": _heterophilous,
    "gnn-benchmark": _gnn_benchmark,
    "wikics": _wikics,
    "city": _city,
}


def _check_shape(shape: tuple[int, ...], known: NodeSet) -> None:
    if tuple(shape) != (known.nodes, known.features):
        expected = f"{known.nodes:,} nodes with {known.features:,} features"
        raise DataError(f"the features have the shape {tuple(shape)}, published are {expected}")


def _undirected(raw: RawGraph, known: NodeSet) -> Tensor:
    """Both directions of every edge.

    Some authors count self-loops among the edges, and some count half of what the file holds.
    """
    ends = raw.edge_index
    if ends.dim() != 2 or len(ends) != 2 or ends.numel() == 0:
        raise DataError(f"the edges have the shape {tuple(ends.shape)}, not one pair of nodes each")
    if int(ends.min()) < 0 or int(ends.max()) >= known.nodes:
        raise DataError(f"an edge leads to node {int(ends.max())}, the nodes are 0 to {known.nodes - 1}")
    with_loops = to_undirected(ends, num_nodes=known.nodes)
    edge_index, _ = remove_self_loops(with_loops)
    edges = edge_index.size(1) // 2
    loops = with_loops.size(1) - edge_index.size(1)
    if known.edges not in (edges, edges + loops, ends.size(1) // 2):
        raise DataError(f"the graph has {edges:,} undirected edges, published are {known.edges:,}")
    return edge_index.contiguous()


def _check_labels_and_masks(raw: RawGraph, known: NodeSet) -> None:
    y = raw.y
    if y.shape != (known.nodes,) or int(y.min()) != 0 or int(y.max()) != known.classes - 1:
        raise DataError(f"the labels are not one of {known.classes} classes for each of {known.nodes:,} nodes")
    for key, mask in raw.masks.items():
        if mask.dim() not in (1, 2) or len(mask) != known.nodes:
            raise DataError(f"{key} has the shape {tuple(mask.shape)}, not [node, split] for {known.nodes:,} nodes")
