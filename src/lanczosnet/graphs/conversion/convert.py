"""The conversion step by step. Each step notes what it has done; the manifest is written last."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lanczosnet.files import lock, sha256_of
from lanczosnet.graphs.conversion.arrays import ArrayFile
from lanczosnet.graphs.conversion.edges import EdgeColumns, RowFiles, count_nodes, write_rows
from lanczosnet.graphs.conversion.ids import NodeIds
from lanczosnet.graphs.conversion.journal import Journal
from lanczosnet.graphs.conversion.nodes import NodeTable, write_array, write_labelled, write_mask
from lanczosnet.graphs.conversion.sources import Sources, is_ogb_folder, node_numbers, ogb_sources
from lanczosnet.graphs.conversion.tables import TableReader, open_table
from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.columns import no_such_column
from lanczosnet.graphs.formats.graph_folder import GraphFolder, is_graph_folder, open_graph, write_manifest
from lanczosnet.schemas.graph_arrays import ARRAYS

WORK = ".conversion"  # in the folder, until it is finished

# `on_step(text)` begins a step, and the function that it returns takes the share of the step that is done.
OnStep = Callable[[str], Callable[[float], None]]


def convert(
    edges: str | Path,
    out: str | Path,
    *,
    overwrite: bool = False,
    on_step: OnStep = lambda text: lambda share: None,
    **options: Any,
) -> GraphFolder:
    """Write a graph folder from files of any size.

    A conversion that was killed goes on when it is called again with the same files and options.

    Args:
        edges: a table of edges (CSV, CSV with gzip, Parquet, a folder of Parquet files, or npy `[2, edge]`), or a
            folder of the Open Graph Benchmark. Nodes are numbered from 0, or have the ids of the node table.
        out: the folder to write.
        overwrite: replace a graph folder that is there.
        on_step: called with the name of every step; what it returns is called with the share that is done.
        **options: of `Sources`: `nodes`, `features`, `labels`, `masks`, `num_nodes`, `weight`, `label`, `split`,
            `id`, `columns`, `task`.
    """
    edges, out = Path(edges).expanduser(), Path(out).expanduser()
    if is_graph_folder(out) and not overwrite:
        raise DataError("there is a graph already", file=out, remedy="Pass overwrite=True, or name another folder")
    work = out / WORK
    work.mkdir(parents=True, exist_ok=True)
    with lock(work / "folder"):
        sources = ogb_sources(edges, work) if is_ogb_folder(edges) else Sources(edges)
        for key, value in options.items():
            if value is not None:
                setattr(sources, key, value)
        sources.__post_init__()
        _Conversion(sources, out, work, on_step).run()
    shutil.rmtree(work, ignore_errors=True)
    return open_graph(out)


class _Conversion:
    def __init__(self, sources: Sources, out: Path, work: Path, on_step: OnStep) -> None:
        self.sources, self.out, self.work, self.on_step = sources, out, work, on_step
        self.edges = _edge_columns(sources)
        self.nodes = _node_table(sources)
        self.journal = Journal(work / "journal.json", sources.identity())
        (out / "manifest.json").unlink(missing_ok=True)  # unfinished, from here on
        if not self.journal.facts:
            for name in ARRAYS:
                (out / f"{name}.npy").unlink(missing_ok=True)

    def run(self) -> None:
        num_nodes = self._num_nodes()
        about = self._write_nodes(num_nodes)
        self._write_edges(num_nodes)
        checksums = {}
        written = [name for name in ARRAYS if (self.out / f"{name}.npy").exists()]
        advance = self.on_step("computing checksums")
        for place, name in enumerate(written):
            checksums[name] = sha256_of(self.out / f"{name}.npy")
            advance((place + 1) / len(written))
        write_manifest(self.out, checksums, about)

    def _num_nodes(self) -> int:
        known = self.journal.get("nodes_counted")
        if known is None:
            known = self._counted()
            if known < 1:
                raise DataError("there are no nodes", file=self.sources.edges)
            self.journal.note("nodes_counted", known)
        return int(known)

    def _counted(self) -> int:
        counts = {}
        if self.sources.num_nodes is not None:
            counts["num_nodes"] = self.sources.num_nodes
        if self.nodes is not None:
            counts[str(self.nodes.table.path)] = self.nodes.table.num_rows()
        if self.sources.features is not None:
            counts[str(self.sources.features)] = ArrayFile(self.sources.features).shape[0]
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{count:,} in {name}" for name, count in counts.items())
            raise DataError(f"the numbers of nodes differ: {found}", file=self.sources.edges)
        if counts:
            return int(next(iter(counts.values())))
        return count_nodes(self.edges, self.on_step("counting nodes"))

    def _write_nodes(self, num_nodes: int) -> dict[str, Any]:
        sources = self.sources
        about: dict[str, Any] = {"name": sources.name or self.out.name}
        arrays = {"features": sources.features, "labels": sources.labels}
        for name, path in arrays.items():
            if path is not None:
                about |= self._write_array(name, path, num_nodes)
        if self.nodes is not None:
            about |= self._write_table(self.nodes)
        for part, path in sources.masks.items():
            self._write_mask(part, path, num_nodes)
        if (self.out / "labels.npy").exists():
            write_labelled(self.out, sources.task)
            about["task"] = sources.task
        return about

    def _write_array(self, name: str, path: Path, num_nodes: int) -> dict[str, Any]:
        advance = self.on_step(f"copying {name}")
        if path.suffix != ".npy":  # one column without a header, as OGB has it
            table = open_table(path, header=False)
            labels = NodeTable(table, [], table.names[0], None, self.sources.task)
            found = self._write_table(labels)
            return found | {"targets": ["label"]}
        classes = write_array(name, path, num_nodes, self.sources.task, self.out, self.journal, advance)
        if name != "labels":
            return {}
        return {"classes": [str(number) for number in range(classes)]} if classes else {}

    def _write_table(self, nodes: NodeTable) -> dict[str, Any]:
        nodes.find_classes(self.on_step("counting classes"))
        nodes.write(self.out, self.journal, self.on_step("copying nodes"))
        about: dict[str, Any] = {"features": list(nodes.features)} if nodes.features else {}
        if nodes.label is not None:
            about["targets"] = [nodes.label]
        return about | ({"classes": nodes.classes} if nodes.classes else {})

    def _write_mask(self, part: str, path: Path, num_nodes: int) -> None:
        advance = self.on_step(f"copying the mask {part}")
        array = ArrayFile(path) if path.suffix == ".npy" else None
        if array is not None and array.dtype == np.bool_:
            write_array(f"{part}_mask", path, num_nodes, self.sources.task, self.out, self.journal, advance)
        else:
            numbers = node_numbers(path) if array is None else array.part(slice(None))
            write_mask(part, numbers, num_nodes, self.out, path)

    def _write_edges(self, num_nodes: int) -> None:
        if self.nodes is not None and self.nodes.id is not None:
            self.edges = self.edges._replace(ids=NodeIds.of(self.nodes.table, self.nodes.id))
        files = RowFiles(self.work, num_nodes, self.edges.weight is not None)
        files.scatter(self.edges, self.journal, self.on_step("reading edges"))
        write_rows(files, self.out, self.journal, self.on_step("sorting edges"))


def _edge_columns(sources: Sources) -> EdgeColumns:
    """As `load` chooses them: source, target and weight in whatever case, or the first two columns."""
    table = open_table(sources.edges, header=sources.header)
    known = {name.lower(): name for name in reversed(table.names)}
    weight = sources.weight or known.get("weight")
    if weight is not None and weight not in table.names:
        raise no_such_column(sources.edges, weight, table.names, "weight")
    if {"source", "target"} <= known.keys():
        return EdgeColumns(table, known["source"], known["target"], weight)
    names = [name for name in table.names if name != weight][:2]
    if len(names) < 2:
        raise DataError("an edge list needs two columns", file=sources.edges, remedy="One row per edge: source,target")
    if sources.header and any(name.strip().lstrip("-").isdecimal() for name in names):
        raise DataError(
            f"the first line ({','.join(table.names)}) looks like an edge, but must name the columns",
            file=sources.edges,
            row=1,
            remedy="Put the line `source,target` before it",
        )
    return EdgeColumns(table, names[0], names[1], weight)


def _node_table(sources: Sources) -> NodeTable | None:
    if sources.nodes is None:
        return None
    table = open_table(sources.nodes, header=sources.header)
    label = _column(table, sources.label, ("label", "y"), "label")
    split = _column(table, sources.split, ("split",), "split")
    node_id = _column(table, sources.id, ("id",), "id")
    if sources.labels is not None:
        label = None
    features = sources.columns
    if features is None:
        features = [] if sources.features else [name for name in table.names if name not in (label, split, node_id)]
    for name in features:
        _column(table, name, (), "features")
    node_id = None if node_id in features else node_id  # it was asked for as a feature
    return NodeTable(table, features, label, split, sources.task, node_id)


def _column(table: TableReader, name: str | None, usual: tuple[str, ...], option: str) -> str | None:
    if name is None:
        return next((column for column in usual if column in table.names), None)
    if name not in table.names:
        raise no_such_column(table.path, name, table.names, option)
    return name
