"""One graph from the user's own tables: features and labels per node, and an edge list or nearest neighbours."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.knn import knn_graph

if TYPE_CHECKING:
    import pandas as pd

FORMATS = (".csv", ".parquet", ".npz")


def node_table(
    nodes: str | Path,
    edges: str | Path | None = None,
    *,
    id: str | None = None,  # noqa: A002 - the user's word for it
    label: str | None = None,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    task: str = "classification",
    k: int = 10,
) -> Data:
    """A graph from a node table (CSV, Parquet or npz) and an edge list, or the `k` nearest neighbours of its rows.

    Nodes: the column `id` names them (default: a column called id, else the row numbers from 0), `label` is what is to
    be learnt (default: a column called label or y, else none), `features` are the inputs (default: all other columns).
    An npz holds arrays `x`, and if wanted `y`, `id` and `edge_index`. Edges: two columns of node ids, the first two
    of the table or those called source and target, and if wanted a column of weights. The graph is made undirected;
    self-loops go, repeated edges are merged (weights averaged). A missing label is -1 (classes) or NaN (numbers), and
    `labelled` says where there is one.
    """
    nodes = Path(nodes)
    if task not in ("classification", "regression"):
        raise DataError(f"there is no task {task!r}; known are classification and regression")
    table = _read(nodes)
    ids, id_column = _ids(nodes, table, id)
    target = _label_column(nodes, table, label)
    columns = _feature_columns(nodes, table, features, leave_out={id_column, target})
    x = torch.stack([_numbers(nodes, name, table[name], missing=False) for name in columns], dim=1)
    data = Data(x=x, name=nodes.stem, features=columns)
    if target is not None:
        data.update(_labels(nodes, target, table[target], task) | {"targets": [target]})
    source = edges or (nodes if _brings_edges(nodes) else None)
    if source is None:
        data.edge_index, data.neighbours = knn_graph(x, k), k
    else:
        data.update(_edges(Path(source), ids, weight))
    return data


def _read(path: Path) -> "pd.DataFrame":
    import pandas as pd

    readers: dict[str, Any] = {".csv": _read_csv, ".parquet": _read_parquet, ".npz": _read_npz}
    if path.suffix not in readers:
        raise DataError(f"a table ends in {', '.join(FORMATS)}", file=path, remedy="Convert it to one of these")
    if not path.is_file():
        raise DataError("there is no such file", file=path, remedy="Check the path")
    try:
        table: pd.DataFrame = readers[path.suffix](path)
    except DataError:
        raise
    except ImportError as error:
        raise DataError(
            "reading Parquet needs pyarrow", file=path, remedy="Install it with `pip install 'lanczosnet[parquet]'`"
        ) from error
    except Exception as error:  # every reader has its own ways to fail on a damaged file
        raise DataError(
            f"the table cannot be read ({error})", file=path, remedy="The file is truncated or of another format"
        ) from error
    if table.empty:
        raise DataError("there is no usable row", file=path, remedy="A table needs a header and one row per item")
    return table


def _read_csv(path: Path) -> "pd.DataFrame":
    import pandas as pd

    return pd.read_csv(path)


def _read_parquet(path: Path) -> "pd.DataFrame":
    import pandas as pd

    return pd.read_parquet(path)


def _read_npz(path: Path) -> "pd.DataFrame":
    """`x`, `y` and `id` as columns; pickled objects inside are refused by NumPy."""
    import pandas as pd

    with np.load(path, allow_pickle=False) as arrays:
        if "x" not in arrays.files:
            raise DataError(f"there is no array x, only {', '.join(arrays.files)}", file=path, remedy="Save it as x")
        x = arrays["x"].reshape(len(arrays["x"]), -1)
        columns = {f"x{i}": x[:, i] for i in range(x.shape[1])}
        for key in ("y", "id"):
            if key in arrays.files:
                if len(arrays[key]) != len(x):
                    raise DataError(
                        f"x has {len(x)} rows, {key} has {len(arrays[key])}", file=path, remedy="Make them equal"
                    )
                columns[key] = arrays[key]
    return pd.DataFrame(columns)


def _ids(path: Path, table: "pd.DataFrame", column: str | None) -> tuple["pd.Index", str | None]:
    import pandas as pd

    column = column or ("id" if "id" in table else None)
    if column is None:
        return pd.RangeIndex(len(table)), None
    _require(path, table, column)
    ids = pd.Index(table[column])
    if ids.has_duplicates:
        row = int(np.flatnonzero(ids.duplicated())[0])
        raise DataError(
            f"node id {str(ids[row])!r} stands there a second time", file=path, row=row + 2, remedy="Ids must differ"
        )
    return ids, column


def _label_column(path: Path, table: "pd.DataFrame", column: str | None) -> str | None:
    if column is not None:
        _require(path, table, column)
        return column
    return next((name for name in ("label", "y") if name in table), None)


def _feature_columns(
    path: Path, table: "pd.DataFrame", columns: Sequence[str] | None, leave_out: set[str | None]
) -> list[str]:
    names = [name for name in table if name not in leave_out] if columns is None else list(columns)
    if not names:
        raise DataError("there is no feature column", file=path, remedy="Add at least one column of numbers")
    for name in names:
        _require(path, table, name)
    return names


def _numbers(path: Path, name: str, column: "pd.Series", *, missing: bool) -> Tensor:
    import pandas as pd

    numbers = np.array(pd.to_numeric(column, errors="coerce"), dtype=np.float64)
    wrong = ~np.isfinite(numbers)
    if missing:
        wrong &= column.notna().to_numpy()
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"{name} is {str(column.iloc[row])!r}, which is not a number",
            file=path,
            row=row + 2,
            remedy="Correct it, or name the columns to use",
        )
    return torch.from_numpy(numbers).float()


def _labels(path: Path, name: str, column: "pd.Series", task: str) -> dict[str, Any]:
    known = torch.from_numpy(column.notna().to_numpy().copy())
    if not known.any():
        raise DataError(f"no row has a label in {name!r}", file=path, remedy="At least some rows need one")
    if task == "regression":
        return {"y": _numbers(path, name, column, missing=True), "labelled": known}
    classes = sorted(column.dropna().unique())
    code = {value: i for i, value in enumerate(classes)}
    y = torch.tensor([code.get(value, -1) for value in column])
    return {"y": y, "labelled": known, "classes": [str(value) for value in classes]}


def _edges(path: Path, ids: "pd.Index", weight: str | None) -> dict[str, Tensor]:
    ends, weights = _edge_ends(path, weight)
    numbers = np.stack([ids.get_indexer(end) for end in ends])
    if (numbers < 0).any():
        row = int(np.flatnonzero((numbers < 0).any(axis=0))[0])
        end = next(end[row] for end, number in zip(ends, numbers, strict=True) if number[row] < 0)
        raise DataError(
            f"the edge leads to node {str(end)!r}, which does not exist",
            file=path,
            row=row + 2,
            remedy="Remove the edge, or add the node to the node table",
        )
    edge_index = torch.from_numpy(numbers.astype(np.int64))
    edge_index, weights = remove_self_loops(edge_index, weights)
    if weights is None:
        return {"edge_index": to_undirected(edge_index, num_nodes=len(ids))}
    edge_index, weights = to_undirected(edge_index, weights, num_nodes=len(ids), reduce="mean")
    return {"edge_index": edge_index, "edge_weight": weights}


def _edge_ends(path: Path, weight: str | None) -> tuple[list[Any], Tensor | None]:
    if path.suffix == ".npz":
        return _npz_edges(path)
    table = _read(path)
    if len(table.columns) < 2:
        raise DataError("an edge list needs two columns", file=path, remedy="One row per edge: source,target")
    names = ("source", "target") if {"source", "target"} <= set(table.columns) else tuple(table.columns[:2])
    weight = weight or ("weight" if "weight" in table else None)
    if weight is not None:
        _require(path, table, weight)
    weights = None if weight is None else _numbers(path, weight, table[weight], missing=False)
    return [table[name].to_numpy() for name in names], weights


def _brings_edges(path: Path) -> bool:
    if path.suffix != ".npz":
        return False
    with np.load(path, allow_pickle=False) as arrays:
        return "edge_index" in arrays.files


def _npz_edges(path: Path) -> tuple[list[Any], Tensor | None]:
    with np.load(path, allow_pickle=False) as arrays:
        if "edge_index" not in arrays.files or arrays["edge_index"].ndim != 2 or len(arrays["edge_index"]) != 2:
            raise DataError("there is no array edge_index of shape [2, edges]", file=path, remedy="Save one")
        weights = torch.from_numpy(arrays["edge_weight"]).float() if "edge_weight" in arrays.files else None
        return list(arrays["edge_index"]), weights


def _require(path: Path, table: "pd.DataFrame", column: str) -> None:
    if column not in table:
        known = ", ".join(map(str, table.columns))
        raise DataError(
            f"there is no column {column!r}", file=path, remedy=f"The columns are {known}; name one of them"
        )
