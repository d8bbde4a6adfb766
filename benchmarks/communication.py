"""What processes that share a graph tell each other: `python benchmarks/communication.py [--data-dir FOLDER]`.

A product needs the values of a process' halo, the neighbours that others have. Tables: the halos of contiguous ranges
of nodes; the bytes that a process receives in a training step of LanczosNet, counted in processes that exchange them by
gloo beside those of the formula; and the formula for a graph that 64 GPUs hold.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from measure import show
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

PARTS = (2, 4, 8, 16, 32, 64)
MEASURED = (2, 4)
REAL = {"pubmed": "Pubmed", "amazon-photo": "Photo", "coauthor-cs": "CS"}
SIDE, DEGREE = 512, 16  # of the grid; of the random graph
LAYERS, SCALE, PAIRS, CHANNELS, NUMBER = 3, 2, 20, 64, 4  # SCALE is the largest short one; NUMBER is bytes of float32
PRODUCTS = 2 * SCALE * LAYERS  # of a step, forward and backward
SUMS = {"sums": "coefficients of Ritz pairs", "weights": "gradients"}
LARGE = 100_000_000  # nodes of the graph of the last table
SECOND = 50e9  # bytes that a GPU receives in one, with 400 Gbit/s


def graphs(data_dir: Path | None) -> Iterator[tuple[str, sp.csr_matrix]]:
    """By name and order of their nodes."""
    from lanczosnet.graphs import load

    for name, title in REAL.items():
        try:
            data = load(name, data_dir=data_dir)
        except (ValueError, OSError) as error:
            print(f"{title} is left out: {error}", file=sys.stderr)
            continue
        matrix = _matrix(data.edge_index.numpy(), data.num_nodes)
        yield title, matrix
        yield f"{title}, reverse Cuthill-McKee", _reordered(matrix)
    grid, random = _grid(), np.random.default_rng(0)
    yield f"grid {SIDE} x {SIDE}, row by row", grid
    yield (
        f"grid {SIDE} x {SIDE}, reverse Cuthill-McKee",
        _ordered(grid, reverse_cuthill_mckee(grid, symmetric_mode=True)),
    )
    yield f"grid {SIDE} x {SIDE}, shuffled", _ordered(grid, random.permutation(SIDE**2))
    ends = random.integers(0, SIDE**2, (2, SIDE**2 * DEGREE // 2))
    yield f"random graph, mean degree {DEGREE}", _matrix(ends, SIDE**2)


def _grid() -> sp.csr_matrix:
    node = np.arange(SIDE**2).reshape(SIDE, SIDE)
    right, below = np.stack([node[:, :-1], node[:, 1:]]), np.stack([node[:-1], node[1:]])
    return _matrix(np.concatenate([right.reshape(2, -1), below.reshape(2, -1)], 1), SIDE**2)


def _matrix(ends: np.ndarray, num_nodes: int) -> sp.csr_matrix:
    """Both directions of every edge, once, without self-loops."""
    left, right = ends[:, ends[0] != ends[1]]
    both = np.concatenate([left, right]), np.concatenate([right, left])
    matrix = sp.csr_matrix((np.ones(len(both[0]), np.float32), both), (num_nodes, num_nodes))
    matrix.data[:] = 1.0
    return matrix


def _reordered(matrix: sp.csr_matrix) -> sp.csr_matrix:
    return _ordered(matrix, reverse_cuthill_mckee(matrix, symmetric_mode=True))


def _ordered(matrix: sp.csr_matrix, order: np.ndarray) -> sp.csr_matrix:
    return matrix[order][:, order].tocsr()


def halos(matrix: sp.csr_matrix, parts: int) -> tuple[Tensor, Tensor]:
    """Nodes of the ranges that processes have, and neighbours that others have, `[process]` each."""
    from lanczosnet.batching.shard import balanced_bounds

    bounds = balanced_bounds(torch.from_numpy(matrix.indptr.astype(np.int64)), parts).tolist()
    found = []
    for first, end in pairwise(bounds):
        column = matrix.indices[matrix.indptr[first] : matrix.indptr[end]]
        found.append(len(np.unique(column[(column < first) | (column >= end)])))
    return torch.tensor(bounds).diff(), torch.tensor(found)


def step_bytes(halo: float) -> float:
    """Of a step: a row of the halo for every product, forward and backward."""
    return halo * CHANNELS * NUMBER * PRODUCTS


def table_of_halos(found: dict[str, sp.csr_matrix]) -> None:
    rows = []
    for name, matrix in found.items():
        shares = []
        for parts in PARTS:
            nodes, halo = halos(matrix, parts)
            shares.append(f"{100 * float(halo.sum() / nodes.sum()):.1f}")
        rows.append([name, f"{matrix.shape[0]:,}", f"{matrix.nnz:,}", *shares])
    columns = ["nodes in the order of", "nodes", "entries", *map(str, PARTS)]
    show("Halo of all processes by their nodes, in percent, for so many processes", columns, rows)


def table_of_bytes(found: dict[str, sp.csr_matrix], folder: Path) -> None:
    """Of the process that receives most."""
    rows = []
    for number, (name, matrix) in enumerate(found.items()):
        if "reverse" in name or "shuffled" in name:  # the same network on the same graph
            continue
        formula = [step_bytes(float(halos(matrix, parts)[1].max())) / 1e6 for parts in PARTS]
        counted = [max(each["halo"] for each in measured(folder / str(number), matrix, parts)) for parts in MEASURED]
        rows.append([name, *(f"{each / 1e6:.2f}" for each in counted), *(f"{each:.2f}" for each in formula)])
    columns = ["nodes in the order of", *(f"{parts} counted" for parts in MEASURED), *map(str, PARTS)]
    what = f"{LAYERS} layers of {CHANNELS} channels, short scales up to {SCALE}"
    show(f"MB that one process receives in a step, {what}: counted, and by the formula", columns, rows)


def measured(folder: Path, matrix: sp.csr_matrix, processes: int) -> list[dict[str, Any]]:
    """What every process counts."""
    from lanczosnet.graphs.formats.graph_folder import write_graph

    folder.mkdir(exist_ok=True)
    arrays = {
        "row_pointer": matrix.indptr.astype(np.int64),
        "column": matrix.indices.astype(np.int32),
        "features": np.random.default_rng(0).standard_normal((matrix.shape[0], 8), dtype=np.float32),
        "labels": np.arange(matrix.shape[0]) % 4,
    }
    write_graph(folder, arrays, {"task": "classification", "targets": ["class"], "classes": [list("0123")]})
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command = [sys.executable, *launcher, __file__, "--count", str(folder)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return [json.loads((folder / f"{processes}-{rank}.json").read_text()) for rank in range(processes)]


def count(folder: Path) -> None:
    """What a process does: one step, in which it counts what it is sent."""
    from lanczosnet.backends.processes import leave, processes_here
    from lanczosnet.graphs import load
    from lanczosnet.models import LanczosNet
    from lanczosnet.training.engine.devices import fabric_for
    from lanczosnet.training.engine.shard_loader import ShardLoader

    fabric = fabric_for("cpu")
    processes = processes_here()
    model = LanczosNet(8, CHANNELS, 4, LAYERS, num_steps=PAIRS)
    loader = ShardLoader(model, load(folder), fabric.device, processes)
    found = {"halo": 0, "sums": 0}
    exchange, reduced = processes.exchange, processes._reduced

    def counted_exchange(rows: Tensor, sent: Any, received: Any) -> Any:
        others = sum(received) - received[processes.rank]
        found["halo"] += others * rows[:1].nbytes if len(rows) else others * rows.element_size() * rows.shape[1]
        return exchange(rows, sent, received)

    def counted_reduced(part: Tensor, how: Any) -> Tensor:
        found["sums"] += part.nbytes
        return reduced(part, how)

    processes.exchange, processes._reduced = counted_exchange, counted_reduced  # type: ignore[method-assign]
    model(loader.inputs).square().sum().backward()
    found["weights"] = sum(parameter.nbytes for parameter in model.parameters())
    (folder / f"{fabric.world_size}-{fabric.global_rank}.json").write_text(json.dumps(found))
    leave()


def table_of_64(found: dict[str, sp.csr_matrix]) -> None:
    """On paper, for orders whose halos follow a formula; beside it what this finds for the graphs above."""
    rows = []
    for name, share in (("grid", grid_share), ("random", random_share)):
        title, matrix = next((key, value) for key, value in found.items() if key.startswith(name))
        nodes, halo = halos(matrix, PARTS[-1])
        check = f"{100 * share(matrix.shape[0], PARTS[-1]):.1f} for {100 * float(halo.sum() / nodes.sum()):.1f}"
        for parts in (4, 16, PARTS[-1]):
            own = share(LARGE, parts)
            received = step_bytes(own * LARGE / parts)
            seconds = received / SECOND
            cells = [f"{100 * own:.1f}", f"{received / 1e9:.2f}", f"{1e3 * seconds:.1f}", check]
            rows.append([title, str(parts), *cells])
    columns = ["graph", "GPUs", "halo, %", "GB a step", "ms at 50 GB/s", "formula for found, above"]
    show(f"On paper: {LARGE:,} nodes", columns, rows)


def grid_share(num_nodes: int, parts: int) -> float:
    """A range is a band of the grid; all but the first and last have two neighbouring bands."""
    return 2 * (parts - 1) / math.sqrt(num_nodes)


def random_share(num_nodes: int, parts: int) -> float:
    """A node elsewhere is in the halo unless none of its edges leads here."""
    return (parts - 1) * (1 - math.exp(-DEGREE / parts))


def tell_sums(folder: Path) -> None:
    facts = json.loads(next(folder.glob("0/*-0.json")).read_text())
    sizes = [f"{facts[key] / 1e6:.3f} MB of {what}" for key, what in SUMS.items()]
    print(f"Besides, {' and '.join(sizes)} are summed over all processes in a step, whatever their number.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count:
        count(options.count)
    else:
        found = dict(graphs(options.data_dir))
        table_of_halos(found)
        with tempfile.TemporaryDirectory() as name:
            table_of_bytes(found, Path(name))
            tell_sums(Path(name))
        table_of_64(found)
