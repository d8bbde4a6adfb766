"""Predictions for all nodes of a stored graph, by one process or by many, written block by block."""

import csv
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.format import open_memmap
from torch import Tensor

from lanczosnet._extras import require
from lanczosnet.backends.determinism import deterministic_algorithms
from lanczosnet.backends.processes import Processes
from lanczosnet.batching.shard import shard_of
from lanczosnet.files import atomic_write
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.stored_graph import StoredGraph
from lanczosnet.training.engine.host_features import with_features_placed
from lanczosnet.training.engine.loaders import prepared
from lanczosnet.training.engine.precision import at_least_single, default_type_of, in_precision_of
from lanczosnet.training.engine.shard_loader import check_shareable
from lanczosnet.training.predict import scaling_of
from lanczosnet.training.serialization import TrainedModel
from lanczosnet.training.tasks import Classification, Task

ROWS = 2**17  # of a block
FORMATS = (".npy", ".parquet", ".csv")


def predict_stored(trained: TrainedModel, data: StoredGraph, out: Path, processes: Processes, prefix: str = "") -> None:
    """Write a row per node: to npy the values, to Parquet and CSV also names of classes and probabilities.

    All processes make the call, each computes its nodes, and the first one writes the file.
    """
    if out.suffix not in FORMATS:
        raise DataError(f"predictions are written as {', '.join(FORMATS)}, not as {out.suffix!r}", file=out)
    out.parent.mkdir(parents=True, exist_ok=True)
    files = [out.with_name(f".{out.name}.{kind}.npy") for kind in ("values", "probabilities")]
    try:
        _compute(trained, data, processes, files)
        if processes.rank == 0:
            _write(out, trained.task, files, prefix)
        processes.total(torch.zeros(1))  # nobody goes on before the file is there
    finally:
        if processes.rank == 0:
            for file in files:
                with suppress(FileNotFoundError):
                    file.unlink()


def _compute(trained: TrainedModel, data: StoredGraph, processes: Processes, files: list[Path]) -> None:
    task, shape = trained.task, (int(data.num_nodes or 0), len(trained.task.targets))
    number = np.float64 if next(trained.network.parameters()).dtype == torch.float64 else np.float32
    value_type = np.int64 if isinstance(task, Classification) else number
    if processes.rank == 0:
        for file, dtype in zip(files, (value_type, number), strict=True):
            open_memmap(file, "w+", dtype, shape)
    nodes, output = _outputs(trained, data, processes)
    processes.total(torch.zeros(1))  # the files are there
    values, probabilities = (open_memmap(file, "r+") for file in files)
    for begin in range(0, len(nodes), ROWS):
        rows, part = nodes[begin : begin + ROWS].numpy(), output[begin : begin + ROWS]
        values[rows] = task.predicted(part).numpy()
        if isinstance(task, Classification):
            tables = task.probabilities(part)
            probabilities[rows] = torch.stack([table.amax(1) for table in tables], 1).numpy()
    for array in (values, probabilities):
        array.flush()
    processes.total(torch.zeros(1))  # all rows are written


@torch.no_grad()
def _outputs(trained: TrainedModel, data: StoredGraph, processes: Processes) -> tuple[Tensor, Tensor]:
    """The nodes of this process, and what the network makes of them."""
    network = trained.network.eval()
    weight = next(network.parameters())
    nodes = torch.arange(data.num_nodes)
    graph: Any = in_precision_of(network, copy(data)) if processes.size == 1 else None
    if processes.size > 1:
        check_shareable(network)
        graph = shard_of(data, processes, weight.dtype, weight.device)
        nodes = graph.shard.nodes
    graph.x = _features(trained, data, graph.x)
    if processes.size == 1:
        graph = with_features_placed(network, graph, weight.device)
    with deterministic_algorithms(weight.device), default_type_of(network):
        return nodes, at_least_single(network(prepared(network, graph.to(weight.device), validate=True))).cpu()


def _features(trained: TrainedModel, data: StoredGraph, x: Tensor) -> Tensor:
    """In the order that the model knows, and scaled as it was trained."""
    names, found = getattr(trained.config.data, "features", None), data.get("features")
    if names and found and list(names) != list(found):
        if sorted(names) != sorted(found):
            raise DataError(f"the features are {', '.join(found)}", remedy=f"The model needs {', '.join(names)}")
        x = x[:, [list(found).index(name) for name in names]]
    scaling = scaling_of(trained.config.data)
    return scaling(x) if scaling else x


def _write(out: Path, task: Task, files: list[Path], prefix: str) -> None:
    with atomic_write(out) as temporary:
        if out.suffix == ".npy":
            files[0].replace(temporary)
        elif out.suffix == ".csv":
            _write_csv(temporary, task, files, prefix)
        else:
            _write_parquet(temporary, task, files, prefix)


def _blocks(task: Task, files: list[Path], prefix: str) -> Iterator[dict[str, Any]]:
    values, probabilities = (np.load(file, mmap_mode="r") for file in files)
    for begin in range(0, len(values), ROWS):
        rows = slice(begin, begin + ROWS)
        columns: dict[str, Any] = {"item": np.arange(begin, begin + len(values[rows]))}
        for place, target in enumerate(task.targets):
            if isinstance(task, Classification):
                columns[prefix + target] = np.array(task.classes[place])[values[rows, place]]
                columns[f"{prefix}{target}_probability"] = np.array(probabilities[rows, place])
            else:
                columns[prefix + target] = np.array(values[rows, place])
        yield columns


def _write_csv(path: Path, task: Task, files: list[Path], prefix: str) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        for number, columns in enumerate(_blocks(task, files, prefix)):
            if number == 0:
                writer.writerow(columns)
            writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _write_parquet(path: Path, task: Task, files: list[Path], prefix: str) -> None:
    require("pyarrow", to="to write Parquet")
    import pyarrow as pa
    from pyarrow import parquet

    writer: Any = None
    for columns in _blocks(task, files, prefix):
        table = pa.table(columns)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
