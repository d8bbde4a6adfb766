"""One graph from the user's own tables: features and labels per node, and an edge list or nearest neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from lanczosnet._extras import require
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.columns import LARGEST, LARGEST_FEATURE, csv_rows, names_listed, no_such_column, row_of
from lanczosnet.graphs.formats.table_files import brings_edges, npz_edges, read_csv, read_table
from lanczosnet.graphs.knn import knn_graph
from lanczosnet.schemas.limits import check_limit
from lanczosnet.schemas.record import shown

if TYPE_CHECKING:
    import pandas as pd


def node_table(
    nodes: str | Path,
    edges: str | Path | None = None,
    *,
    id: str | None = None,  # noqa: A002 - the user's word for it
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    split_column: str | None = None,
    task: str = "classification",
    k: int = 10,
) -> Data:
    """A graph from a node table (CSV, Parquet or npz) and an edge list, or the `k` nearest neighbours of its rows.

    Nodes: the column `id` names them (default: a column called id, else the row numbers from 0), `label` is what is to
    be learnt (default: a column called label or y, else none), `features` (one name or several) are the inputs
    (default: all other columns). `split_column` holds train, val or test of every node, kept as `parts`. An npz holds
    arrays `x`, and if wanted `y`, `id` and `edge_index`. Edges: two columns of node ids, the first two of the table or
    those called source and target, and if wanted a column of weights; the first line of a CSV must name the columns.
    Ids are compared as text unless all of them are numbers. The graph is made undirected; self-loops go, repeated edges
    are merged (weights averaged). A missing label is -1 (classes) or NaN (numbers), and `labelled` says where there is
    one.
    """
    require("pandas", to="to read tables")
    nodes = Path(nodes)
    if task not in ("classification", "regression"):
        raise DataError(f"there is no task {task!r}; known are classification and regression")
    table = read_table(nodes)
    ids = _ids(nodes, table, id)
    target = _label_column(nodes, table, label)
    parts = None if split_column is None else _require(nodes, table, split_column, "split_column")
    columns = _feature_columns(nodes, table, features, leave_out={ids.column, target, parts})
    x = _features(nodes, table, columns)
    data = Data(x=x, name=nodes.stem, features=columns)
    if parts is not None:
        data.parts = [None if cell != cell else cell for cell in table[parts]]
    if target is not None:
        data.update(_labels(nodes, target, table[target], task) | {"targets": [target]})
    source = edges or (nodes if brings_edges(nodes) else None)
    if source is None:
        data.edge_index, data.neighbours = knn_graph(x, k), k
    else:
        data.update(_edges(Path(source), ids, weight))
    return data


@dataclass(frozen=True)
class _Ids:
    """Node ids from one column of a file, or other numbers of nodes."""

    path: Path
    column: str | None
    values: "pd.Index"

    @property
    def are_numbers(self) -> bool:
        from pandas.api.types import is_numeric_dtype

        return is_numeric_dtype(self.values)

    def as_text(self) -> "pd.Index":
        """As they stand in the file: 01 is not 1."""
        import pandas as pd

        if self.path.suffix == ".csv" and self.column is not None:
            return pd.Index(read_csv(self.path, dtype=str)[self.column])
        return self.values.astype(str)

    def positions(self, wanted: "_Ids") -> np.ndarray:
        """Where the wanted ids stand among these, -1 for those that do not; as text where either file has text."""
        if self.are_numbers == wanted.are_numbers:
            return self.values.get_indexer(wanted.values)
        return self.as_text().get_indexer(wanted.as_text())


def _ids(path: Path, table: "pd.DataFrame", column: str | None) -> _Ids:
    import pandas as pd

    column = column or ("id" if "id" in table else None)
    if column is None:
        return _Ids(path, None, pd.RangeIndex(len(table)))
    column = _require(path, table, column, "id")
    ids = pd.Index(table[column])
    if ids.hasnans:
        position = int(np.flatnonzero(ids.isna())[0])
        raise DataError("the node has no id", file=path, row=row_of(path, position), remedy="Every node needs one")
    if ids.has_duplicates:
        position = int(np.flatnonzero(ids.duplicated())[0])
        raise DataError(
            f"node id {str(ids[position])!r} is repeated",
            file=path,
            row=row_of(path, position),
            remedy="Ids must differ",
        )
    return _Ids(path, column, ids)


def _label_column(path: Path, table: "pd.DataFrame", column: str | None) -> str | None:
    if column is not None:
        return _require(path, table, column, "label")
    return next((name for name in ("label", "y") if name in table), None)


def _feature_columns(
    path: Path, table: "pd.DataFrame", columns: str | Sequence[str] | None, leave_out: set[str | None]
) -> list[str]:
    if columns is None:
        names = [name for name in table if name not in leave_out]
        _refuse_molecules(path, table, names)
    else:
        names = names_listed(columns)
    if not names:
        raise DataError("there is no feature column", file=path, remedy="Add at least one column of numbers")
    for name in names:
        _require(path, table, name, "features")
    return names


def _refuse_molecules(path: Path, table: "pd.DataFrame", names: list[str]) -> None:
    """A CSV of molecules comes here if its column of SMILES is not written as expected."""
    from pandas.api.types import is_numeric_dtype

    for name in names:
        if str(name).lower() == "smiles" and not is_numeric_dtype(table[name]):
            raise DataError(
                f"the column {name!r} is not one of numbers",
                file=path,
                remedy=f"If these are molecules, pass smiles={name!r} (on the command line `--data-set smiles={name}`)",
            )


def _features(path: Path, table: "pd.DataFrame", columns: list[str]) -> Tensor:
    """`[node, feature]`, all at once where they are good numbers."""
    if all(dtype.kind in "biuf" for dtype in table.dtypes[columns] if hasattr(dtype, "kind")):
        values = table[columns].to_numpy(dtype=np.float64)
        if bool((np.abs(values) <= LARGEST_FEATURE).all()):
            return torch.from_numpy(values.astype(np.float32, order="C"))
    numbers = [_numbers(path, name, table[name], missing=False, most=LARGEST_FEATURE) for name in columns]
    return torch.stack(numbers, dim=1)


def _numbers(path: Path, name: str, column: "pd.Series", *, missing: bool, most: float = LARGEST) -> Tensor:
    import pandas as pd

    numbers = np.array(pd.to_numeric(column, errors="coerce"), dtype=np.float64)
    wrong = ~(np.abs(numbers) <= most)  # a NaN is not
    if missing:
        wrong &= column.notna().to_numpy()
    if wrong.any():
        position = int(np.flatnonzero(wrong)[0])
        too_large = np.isfinite(numbers[position])
        raise DataError(
            f"{name} is {shown(str(column.iloc[position]))}, which is {'too large' if too_large else 'not a number'}",
            file=path,
            row=row_of(path, position),
            remedy=f"Numbers reach {most:.1e} here: use another unit, or a logarithm"
            if too_large
            else "Correct it, or name the columns to use",
        )
    return torch.from_numpy(numbers).float()


def _labels(path: Path, name: str, column: "pd.Series", task: str) -> dict[str, Any]:
    known = torch.from_numpy(column.notna().to_numpy().copy())
    if not known.any():
        raise DataError(f"no row has a label in {name!r}", file=path, remedy="At least some rows need one")
    if task == "regression":
        return {"y": _numbers(path, name, column, missing=True), "labelled": known}
    classes = sorted(column.dropna().unique())
    check_limit("CLASSES", len(classes), f"{path}: classes of {shown(name)}")
    code = {value: i for i, value in enumerate(classes)}
    y = torch.tensor([code.get(value, -1) for value in column])
    return {"y": y, "labelled": known, "classes": _class_names(classes, some_missing=not bool(known.all()))}


def _class_names(classes: list[Any], *, some_missing: bool) -> list[str]:
    """Where a label is missing, pandas turns the integers beside it into floats; their names stay integers."""
    were_integers = some_missing and all(isinstance(value, float | np.floating) for value in classes)
    were_integers = were_integers and all(float(value).is_integer() for value in classes)
    return [str(int(value) if were_integers else value) for value in classes]


def _edges(path: Path, ids: _Ids, weight: str | None) -> dict[str, Tensor]:
    ends, weights = _edge_ends(path, ids, weight)
    numbers = np.stack([ids.positions(end) for end in ends])
    if (numbers < 0).any():
        position = int(np.flatnonzero((numbers < 0).any(axis=0))[0])
        end = next(end.values[position] for end, found in zip(ends, numbers, strict=True) if found[position] < 0)
        raise DataError(
            f"the edge leads to node {str(end)!r}, which does not exist",
            file=path,
            row=row_of(path, position),
            remedy="Remove the edge, or add the node to the node table",
        )
    edge_index = torch.from_numpy(numbers.astype(np.int64))
    edge_index, weights = remove_self_loops(edge_index, weights)
    if weights is None:
        return {"edge_index": to_undirected(edge_index, num_nodes=len(ids.values))}
    edge_index, weights = to_undirected(edge_index, weights, num_nodes=len(ids.values), reduce="mean")
    return {"edge_index": edge_index, "edge_weight": weights}


def _edge_ends(path: Path, ids: _Ids, weight: str | None) -> tuple[list[_Ids], Tensor | None]:
    import pandas as pd

    if path.suffix == ".npz":
        return _npz_edges(path)
    table = read_table(path)
    # Some programs write Source,Target,Weight; where a table has both, what is written as here counts.
    known = {str(name).lower(): name for name in reversed(table.columns)} | {name: name for name in table.columns}
    weight = known.get("weight") if weight is None else _require(path, table, weight, "weight")
    if {"source", "target"} <= known.keys():
        names = [known["source"], known["target"]]
    else:
        names = [name for name in table.columns if name != weight][:2]
        if len(names) < 2:
            raise DataError("an edge list needs two columns", file=path, remedy="One row per edge: source,target")
        if path.suffix == ".csv":
            _refuse_edge_as_header(path, ids)
    weights = None if weight is None else _numbers(path, weight, table[weight], missing=False, most=LARGEST_FEATURE)
    return [_Ids(path, name, pd.Index(table[name])) for name in names], weights


def _refuse_edge_as_header(path: Path, ids: _Ids) -> None:
    """A first line with a number or the id of a node is an edge, which would be lost if it were taken for names."""
    row, header = next(csv_rows(path))
    if any(_is_number(cell) or cell in ids.values for cell in header[:2]):
        raise DataError(
            f"the first line ({','.join(header)}) looks like an edge, but must name the columns",
            file=path,
            row=row,
            remedy="Put the line `source,target` (and the name of each further column) before it, or in its place if "
            "these are names",
        )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _npz_edges(path: Path) -> tuple[list[_Ids], Tensor | None]:
    import pandas as pd

    ends, weights = npz_edges(path)
    return [_Ids(path, None, pd.Index(end)) for end in ends], None if weights is None else torch.from_numpy(weights)


def _require(path: Path, table: "pd.DataFrame", column: str, option: str) -> str:
    """The column's name, which the command line may have read as a number."""
    if column in table:
        return column
    if str(column) in table:
        return str(column)
    raise no_such_column(path, column, list(table.columns), option)
