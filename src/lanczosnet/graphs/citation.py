"""The citation networks Cora, Citeseer and Pubmed from the Planetoid files."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, index_to_mask, remove_self_loops

from lanczosnet.graphs import sources
from lanczosnet.graphs.download import available
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.pickles import read_pickle


def citation(
    name: str, *, data_dir: str | Path | None = None, normalize: bool | Literal["sum", "length"] = True
) -> Data:
    """One citation network with the public split as masks, equal to PyG's `Planetoid` tensor for tensor.

    `normalize` divides every feature row by its sum, as published, or by its length. Citeseer's 15 nodes that the files
    leave out get zero features and, as everywhere, class 0; `labelled` is False there, and no split but the public one
    can draw them.
    """
    if normalize not in (True, False, "sum", "length"):
        raise DataError(f"normalize must be True or 'sum', 'length' or False, but is {normalize!r}")
    paths = {part: available(file, name, data_dir) for part, file in sources.planetoid(name).items()}
    data = read_planetoid(paths)
    if normalize:
        data.x = rows_of_unit_length(data.x) if normalize == "length" else normalize_rows(data.x)
    data.name = name
    return data


def read_planetoid(paths: dict[str, Path]) -> Data:
    """The network in the eight files, given by their suffix (`x`, `tx`, `allx`, `y`, `ty`, `ally`, `graph`, ...)."""
    content = {part: read_pickle(path) for part, path in paths.items() if part != "test.index"}
    test = _read_index(paths["test.index"])
    first, last = int(test.min()), int(test.max())
    x, y = _dense(content["allx"]), _dense(content["ally"])
    if first != len(x):
        raise DataError(f"the test nodes begin at {first}, the others end at {len(x)}", file=paths["test.index"])
    # The rows of tx and ty belong to the test nodes in the order of the index file; nodes it leaves out stay zero.
    x = torch.cat([x, x.new_zeros(last - first + 1, x.size(1))])
    y = torch.cat([y, y.new_zeros(last - first + 1, y.size(1))])
    x[test], y[test] = _dense(content["tx"]), _dense(content["ty"])
    data = Data(x=x, edge_index=_edge_index(content["graph"], len(x), paths["graph"]), y=y.argmax(dim=1))
    num_train = len(_dense(content["y"]))
    data.train_mask = index_to_mask(torch.arange(num_train), size=len(x))
    data.val_mask = index_to_mask(torch.arange(num_train, num_train + 500), size=len(x))
    data.test_mask = index_to_mask(test, size=len(x))
    data.labelled = y.sum(dim=1) > 0
    return data


def normalize_rows(x: Tensor) -> Tensor:
    """Features whose rows sum to one; rows of zeros stay."""
    return x / x.sum(dim=-1, keepdim=True).clamp(min=1.0)


def rows_of_unit_length(x: Tensor) -> Tensor:
    """Rows of zeros stay."""
    return torch.nn.functional.normalize(x, dim=-1)


def _read_index(path: Path) -> Tensor:
    try:
        return torch.from_numpy(np.loadtxt(path, dtype=np.int64))
    except ValueError as error:
        raise DataError(f"not a list of node numbers ({error})", file=path, remedy="Fetch the file again") from error


def _dense(matrix: Any) -> Tensor:
    return torch.from_numpy(np.asarray(matrix.todense() if hasattr(matrix, "todense") else matrix)).float()


def _edge_index(neighbours: dict[int, list[int]], num_nodes: int, path: Path) -> Tensor:
    """Both directions of every edge, in the order PyG gives them; duplicates and self-loops removed."""
    lengths = [len(targets) for targets in neighbours.values()]
    rows = torch.tensor(list(neighbours)).repeat_interleave(torch.tensor(lengths))
    columns = torch.tensor([target for targets in neighbours.values() for target in targets])
    edge_index = torch.stack([rows, columns])
    if int(edge_index.max()) >= num_nodes or int(edge_index.min()) < 0:
        raise DataError(f"an edge leads to node {int(edge_index.max())} of {num_nodes}", file=path)
    edge_index, _ = remove_self_loops(edge_index)
    return coalesce(edge_index, num_nodes=num_nodes, sort_by_row=False)
