"""What determinism costs on a GPU: `python benchmarks/determinism.py`.

The deterministic sparse product against PyTorch's non-deterministic one, and against one pass over all numbers at copy
bandwidth; then training on one graph, where PyTorch's own deterministic operations take part.
"""

import argparse
import sys
import time
from functools import cache

import torch
from lanczos import random_graph
from measure import cuda_time, show
from torch_geometric.data import Data

from lanczosnet.affinity import SparseOperator
from lanczosnet.backends.determinism import deterministic_algorithms
from lanczosnet.experiments.hyperparameters.row import published_form
from lanczosnet.graphs import split
from lanczosnet.models import MODELS
from lanczosnet.training import Trial, architecture_for, fit_concurrent, recipe, task_of
from lanczosnet.training.engine.devices import fabric_for

CLASSES, SEEDS = 3, (0, 1, 2)


def products(S: SparseOperator) -> list[list[str]]:
    """One row for every number of channels."""
    return [product(S, channels) for channels in (1, 16, 64, 256)]


def product(S: SparseOperator, channels: int) -> list[str]:
    x = torch.randn(S.num_nodes, channels, device=S.device)
    x = x.squeeze(1) if channels == 1 else x
    free = cuda_time(lambda: S @ x)
    with deterministic_algorithms(S.device):
        ordered = cuda_time(lambda: S @ x)
    moved = 8 * len(S.values) + 4 * S.num_nodes + 8 * x.numel()  # columns and values, row pointers, signal in and out
    limit = moved / copy_bandwidth()
    return [f"{S.num_nodes:,}", f"{len(S.values):,}", f"{channels}", f"{1e6 * ordered:.0f}"] + [
        f"{ordered / other:.2f}" for other in (free, limit)
    ]


@cache
def copy_bandwidth() -> float:
    """Bytes per second, read and written."""
    source = torch.empty(2**28, device="cuda")
    target = torch.empty_like(source)
    return 2 * 4 * source.numel() / cuda_time(lambda: target.copy_(source))


def training(data: Data, name: str, epochs: int) -> list[str]:
    """Three seeds side by side, deterministic and not: the best of three times each, of which the first is cold."""
    chosen = recipe("paper", "node", {"epochs": epochs, "stop_window": 0})
    best = {}
    for deterministic in (True, False) * 3:
        fabric = fabric_for("cuda", deterministic=deterministic)
        trials = []
        for seed in SEEDS:
            parts = split(data, "uniform", fraction=0.05, seed=seed)
            task = task_of(data, parts.train)
            options = {**published_form(name), "hidden_channels": 64, "num_layers": 2, "dropout": 0.5}
            trials.append(Trial(architecture_for(data, task, name, options).build(seed), parts, task, seed))
        begin = time.perf_counter()
        fit_concurrent(trials, data, chosen, fabric=fabric)
        seconds = time.perf_counter() - begin
        best[deterministic] = min(seconds, best.get(deterministic, seconds))
    return [name, f"{best[True]:.2f}", f"{best[True] / best[False]:.2f}"]


def documents(num_nodes: int, num_words: int) -> Data:
    """A random graph with as many edges and words as a citation network."""
    S = random_graph(num_nodes, 2 * num_nodes)
    edges = torch.stack([S.row, S.column]).long()
    edges = edges[:, edges[0] != edges[1]]
    generator = torch.Generator().manual_seed(0)
    words = (torch.rand(num_nodes, num_words, generator=generator) < 0.05).float()
    return Data(x=words, edge_index=edges, y=torch.randint(CLASSES, (num_nodes,), generator=generator))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=100)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this measures determinism on a CUDA device, and there is none")
    rows = []
    for num_nodes, num_edges in ((20_000, 45_000), (200_000, 1_000_000), (1_000_000, 10_000_000)):
        rows += products(random_graph(num_nodes, num_edges).to("cuda"))
    columns = ["nodes", "entries", "channels", "deterministic, us", "/ PyTorch's", "/ copy bandwidth"]
    show("Sparse product, float32", columns, rows)
    data = documents(20_000, 500)
    title = f"Training three seeds, {arguments.epochs} epochs, {data.num_nodes:,} nodes, {data.num_edges:,} edges"
    show(
        title,
        ["", "deterministic, s", "/ non-deterministic"],
        [training(data, name, arguments.epochs) for name in MODELS],
    )


if __name__ == "__main__":
    main()
