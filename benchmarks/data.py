"""QM8 from file to batch, as ratios within one run: `python benchmarks/data.py [--data-dir FOLDER] [--workers 2]`.

Featurising on two cores against reading the cache, and an epoch of packed batches of 64 molecules against PyG's
`DataLoader` over the same molecules in the same order, as a list of `Data` (the quickest it can do) and as an in-memory
data set (how it is mostly used). A single batch, gathered on its own, is shown beside them.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import torch
from measure import best_times, show, verdict
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader

from lanczosnet.graphs import PackedGraphs, load
from lanczosnet.graphs.data_sets import sources
from lanczosnet.graphs.data_sets.qm8 import CACHE

BATCH_SIZE = 64
NUM_BATCHES = 32


class InMemory(InMemoryDataset):
    """The molecules as PyG stores them."""

    def __init__(self, graphs: list[Data]) -> None:
        super().__init__()
        self.data, self.slices = self.collate(graphs)


def wall_time(folder: Path, workers: int) -> float:
    begin = time.perf_counter()
    load("qm8", data_dir=folder, workers=workers)
    return time.perf_counter() - begin


def featurising_against_the_cache(csv: Path, workers: int) -> PackedGraphs:
    # Away from the user's own cache, which would answer in place of the files here.
    with tempfile.TemporaryDirectory() as name, patch.dict(os.environ, {"XDG_CACHE_HOME": name}):
        folder = Path(name)
        (folder / "qm8").mkdir()
        (folder / "qm8" / "qm8.csv").symlink_to(csv.resolve())
        featurise = wall_time(folder, workers)
        cached = min(wall_time(folder, workers) for _ in range(5))
        size = (folder / CACHE).stat().st_size / 2**20
        graphs = load("qm8", data_dir=folder)
    rows = [
        [f"featurise, {workers} processes", f"{featurise:.2f} s", ""],
        [f"read the cache ({size:.1f} MiB)", f"{cached:.3f} s", verdict(featurise / cached, 20)],
    ]
    show(f"QM8, {len(graphs):,} molecules", ["", "time", "times faster than featurising"], rows)
    return graphs


def batches_against_the_loader(graphs: PackedGraphs) -> None:
    torch.set_num_threads(1)
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))[: BATCH_SIZE * NUM_BATCHES]
    singles = [graphs[i] for i in order]
    from_list, from_memory = (DataLoader(data, batch_size=BATCH_SIZE) for data in (singles, InMemory(singles)))
    chosen = order.split(BATCH_SIZE)
    check_equal(graphs.batches(BATCH_SIZE, order), iter(from_list))
    times = best_times(
        {
            "PyG DataLoader, list of Data": lambda: exhaust(iter(from_list)),
            "PyG DataLoader, InMemoryDataset": lambda: exhaust(iter(from_memory)),
            "packed, batches(64, order)": lambda: exhaust(graphs.batches(BATCH_SIZE, order)),
            "packed, batch(numbers) one by one": lambda: exhaust(graphs.batch(part) for part in chosen),
        },
        repeats=15,
    )
    from_list_time, from_memory_time, epoch, single = times.values()
    ours = [[verdict(from_list_time / t, 20), verdict(from_memory_time / t, 20)] for t in (epoch, single)]
    ratios = [["", ""], ["", ""], *ours]
    rows = [
        [name, f"{1e6 * seconds / NUM_BATCHES:.0f} us", *ratio]
        for (name, seconds), ratio in zip(times.items(), ratios, strict=True)
    ]
    show(f"A batch of {BATCH_SIZE} molecules", ["", "time", "faster than list", "than InMemoryDataset"], rows)


def check_equal(left: Iterator[Batch], right: Iterator[Batch]) -> None:
    for one, other in zip(left, right, strict=True):
        assert all(torch.equal(one[key], other[key]) for key in other.keys())  # noqa: SIM118 - not a dictionary


def exhaust(batches: Iterator[Batch]) -> None:
    for _ in batches:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="where qm8/qm8.csv lies; else LANCZOSNET_DATA")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    graphs = featurising_against_the_cache(sources.QM8.checked("qm8", options.data_dir), options.workers)
    batches_against_the_loader(graphs)


if __name__ == "__main__":
    main()
