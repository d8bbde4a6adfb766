"""One large graph, in one run: `python benchmarks/large.py [--device cuda] [--nodes N]`.

Ratios to plain Lanczos, to bare products with S and to PyG's GCN, and six graphs of one size whose components differ.
On the CPU everything runs on one thread and only ratios mean anything.

`--whole` goes through all of a training on graphs of the sizes that docs/large.md names, `--hundred-million` through
one of 100 million nodes. `--part 100` takes a hundredth of every size, for a rehearsal.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from measure import Function, best_times, cuda_time, show, verdict
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCN

from lanczosnet import LanczosNet
from lanczosnet.affinity import SparseOperator, adjacency, connected_components, normalized
from lanczosnet.krylov import component_ritz_pairs, lanczos, start

DEGREE, STEPS, CHANNELS = 10, 20, 16
# Nodes, random edges, channels: the sizes of docs/large.md.
WHOLE = {"cuda": [(2_400_000, 61_000_000, 64), (10_000_000, 100_000_000, 64)], "cpu": [(1_000_000, 5_000_000, 16)]}
HUNDRED_MILLION = (100_000_000, 700_000_000, 16)
NODES_AT_A_TIME = 2**22


def seconds(functions: dict[str, Function], device: str) -> dict[str, float]:
    if device == "cuda":
        return {name: cuda_time(function, 5) for name, function in functions.items()}
    return best_times(functions, 2)


def edges_of(ends: Tensor) -> Tensor:
    return torch.cat([ends, ends.flip(0)], 1)


def random_ends(first: int, end: int, count: int, seed: int = 0) -> Tensor:
    return torch.randint(first, end, (2, count), generator=torch.Generator().manual_seed(seed))


def six_graphs(num_nodes: int) -> dict[str, Tensor]:
    """Of about equally many nodes and edges."""
    edges, crumbs = num_nodes * DEGREE // 2, num_nodes // 20
    whole, most = random_ends(0, num_nodes, edges), random_ends(0, num_nodes - crumbs, edges)
    ring = torch.arange(num_nodes)
    joined = torch.stack([ring, (ring + 1) % num_nodes])
    tiny = torch.arange(num_nodes - crumbs, num_nodes - 1, 2)
    hub = torch.stack([torch.zeros(num_nodes // 2, dtype=torch.long), torch.arange(num_nodes // 2)])
    return {
        "one component": torch.cat([whole, joined], 1),
        "nodes alone": torch.cat([random_ends(0, num_nodes - 3, edges), joined[:, : num_nodes - 4]], 1),
        "many nodes alone": torch.cat([most, joined[:, : num_nodes - crumbs - 1]], 1),
        "tiny components": torch.cat([most, joined[:, : num_nodes - crumbs - 1], torch.stack([tiny, tiny + 1])], 1),
        "a hub": torch.cat([whole[:, : edges - num_nodes // 2], joined, hub], 1),
        "two halves": torch.cat(
            [random_ends(0, num_nodes // 2, edges // 2), random_ends(num_nodes // 2, num_nodes, edges // 2)], 1
        ),
    }


def operator_of(ends: Tensor, num_nodes: int, device: str) -> SparseOperator:
    S = normalized(adjacency(edges_of(ends).to(device), num_nodes=num_nodes, validate=False))
    assert isinstance(S, SparseOperator)
    return S


def products(S: SparseOperator, vector: Tensor, count: int) -> None:
    for _ in range(count):
        vector = S @ vector


def pairs_against_lanczos(num_nodes: int, device: str) -> None:
    rows, slowest, fastest = [], 0.0, float("inf")
    for name, ends in six_graphs(num_nodes).items():
        S = operator_of(ends, num_nodes, device)
        vector, components = start.ones(S), connected_components(S)
        functions: dict[str, Callable[[], object]] = {
            "products": lambda S=S, vector=vector: products(S, vector, STEPS),
            "lanczos": lambda S=S, vector=vector: lanczos(S, vector, STEPS),
            "pairs": lambda S=S, components=components: component_ritz_pairs(S, STEPS, components=components),
            "components": lambda S=S: connected_components(S),
        }
        times = seconds(functions, device)
        slowest, fastest = max(slowest, times["pairs"]), min(fastest, times["pairs"])
        ratios = [times["lanczos"] / times["products"], times["components"] / times["lanczos"]]
        cells = [f"{ratio:.2f}" for ratio in ratios]
        rows.append([name, *cells, verdict(times["pairs"] / times["lanczos"], 1.3, at_most=True)])
    columns = ["graph", f"Lanczos / {STEPS} products", "components / Lanczos", "Ritz pairs / Lanczos"]
    show(f"{STEPS} Ritz pairs of {num_nodes:,} nodes, mean degree {DEGREE}, float32", columns, rows)
    print("slowest / fastest Ritz pairs:", verdict(slowest / fastest, 1.3, at_most=True))


def step_against_gcn(num_nodes: int, device: str) -> None:
    x = torch.randn(num_nodes, CHANNELS, generator=torch.Generator().manual_seed(1)).to(device)
    rows = []
    for name, ends in six_graphs(num_nodes).items():
        edge_index = edges_of(ends).to(device)
        ours = LanczosNet(CHANNELS, CHANNELS, CHANNELS, num_steps=STEPS).to(device)
        theirs = GCN(CHANNELS, CHANNELS, 2).to(device)
        prepared = ours.prepare(operator_data(x, edge_index))
        times = seconds(
            {
                "ours": lambda ours=ours, prepared=prepared: ours(prepared).square().mean().backward(),
                "gcn": lambda theirs=theirs, e=edge_index: theirs(x, e).square().mean().backward(),
            },
            device,
        )
        rows.append([name, f"{times['ours'] / times['gcn']:.2f}"])
    show("A training step with two layers of 16 channels", ["graph", "LanczosNet / PyG's GCN"], rows)


def operator_data(x: Tensor, edge_index: Tensor) -> Data:
    return Data(x=x, edge_index=edge_index, num_nodes=len(x))


def ring_and_random_edges(num_nodes: int, num_edges: int, device: str) -> Tensor:
    """Connected, in both directions."""
    source = torch.Generator(device).manual_seed(0)
    ring = torch.arange(num_nodes, device=device)
    ends = torch.randint(num_nodes, (2, num_edges), device=device, generator=source)
    return edges_of(torch.cat([ends, torch.stack([ring, (ring + 1) % num_nodes])], 1))


class Stopwatch:
    """Seconds of single calls, with what a GPU has queued, and the peak of its memory."""

    def __init__(self, device: str) -> None:
        self.is_gpu = device == "cuda"
        if self.is_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def __call__(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
        """Seconds, and what the function returns."""
        self._wait()
        begin = time.perf_counter()
        found = function(*arguments, **options)
        self._wait()
        return time.perf_counter() - begin, found

    def _wait(self) -> None:
        if self.is_gpu:
            torch.cuda.synchronize()

    @property
    def peak(self) -> str:
        return f"{torch.cuda.max_memory_allocated() / 1e9:.1f} GB" if self.is_gpu else ""


def whole(num_nodes: int, num_edges: int, channels: int, device: str) -> list[str]:
    """Preparation, Lanczos, pairs and a training step, beside bare products and PyG's GCN."""
    edge_index = ring_and_random_edges(num_nodes, num_edges, device)
    x = torch.randn(num_nodes, channels, device=device)
    gcn = seconds_of_gcn(x, edge_index, device)
    watch = Stopwatch(device)
    S = normalized(adjacency(edge_index, num_nodes=num_nodes, validate=False))
    assert isinstance(S, SparseOperator)
    vector, components = start.ones(S), connected_components(S)
    ours = LanczosNet(channels, channels, channels, num_steps=STEPS).to(device)
    data = operator_data(x, edge_index)
    prepared = ours.prepare(data)
    prepare, _ = watch(ours.prepare, data)
    times = seconds(
        {
            "products": lambda: products(S, vector, STEPS),
            "lanczos": lambda: lanczos(S, vector, STEPS, validate=False),
            "pairs": lambda: component_ritz_pairs(S, STEPS, components=components),
            "step": lambda: ours(prepared).square().mean().backward(),
        },
        device,
    )
    ratios = [times["lanczos"] / times["products"], times["pairs"] / times["lanczos"]]
    size = [f"{num_nodes:,}", f"{edge_index.shape[1] + num_nodes:,}"]
    shown = [f"{prepare:.3f} s", f"{1e3 * times['step']:.0f} ms", f"{1e3 * times['products']:.1f} ms"]
    against_gcn = f"{times['step'] / gcn:.2f}" if gcn else "GCN: out of memory"
    return [*size, *shown, *(f"{ratio:.2f}" for ratio in ratios), against_gcn, watch.peak]


def seconds_of_gcn(x: Tensor, edge_index: Tensor, device: str) -> float | None:
    """Of a step of PyG's GCN, which makes a message of every edge; None where they do not fit."""
    model = GCN(x.shape[1], x.shape[1], 2).to(device)
    try:
        return seconds({"gcn": lambda: model(x, edge_index).square().mean().backward()}, device)["gcn"]
    except torch.OutOfMemoryError:
        return None


def hundred_million(num_nodes: int, num_edges: int, channels: int, device: str) -> None:
    """Pairs, their orthogonality, and training steps with activations that are computed twice."""
    watch = Stopwatch(device)
    edge_index = ring_and_random_edges(num_nodes, num_edges, device)
    S = normalized(adjacency(edge_index, num_nodes=num_nodes, validate=False))
    assert isinstance(S, SparseOperator)
    pairs, (_, vectors, *_) = watch(component_ritz_pairs, S, STEPS)
    gram = sum(part.double().T @ part.double() for part in vectors.split(NODES_AT_A_TIME))
    error = (gram - torch.eye(STEPS, device=device, dtype=torch.float64)).abs().max()
    facts = [("nodes and entries", f"{num_nodes:,}, {edge_index.shape[1] + num_nodes:,}")]
    facts += [(f"{STEPS} Ritz pairs with components", f"{pairs:.2f} s"), ("V^T V - I", f"{error:.1e}")]
    del S, vectors
    network = LanczosNet(channels, channels, channels, 2, num_steps=STEPS, checkpoint_activations=True).to(device)
    data = operator_data(torch.randn(num_nodes, channels, device=device), edge_index)
    prepare, batch = watch(network.prepare, data, validate=False)
    del data, edge_index
    optimizer = torch.optim.Adam(network.parameters())

    def epoch() -> None:
        optimizer.zero_grad()
        network(batch).square().mean().backward()
        optimizer.step()

    steps = [watch(epoch)[0] for _ in range(2)]
    facts += [("prepare", f"{prepare:.2f} s"), ("a training epoch", f"{min(steps):.2f} s"), ("peak", watch.peak)]
    show("Two layers of LanczosNet with 16 channels", ["", ""], [[*fact] for fact in facts])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--hundred-million", action="store_true")
    parser.add_argument("--part", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.whole:
        sizes = [(n // options.part, m // options.part, channels) for n, m, channels in WHOLE[options.device]]
        columns = ["nodes", "entries", "prepare", "step", f"{STEPS} products", "Lanczos / products", "pairs / Lanczos"]
        columns += ["step / GCN", "peak"]
        show("LanczosNet with two layers, twenty pairs", columns, [whole(*size, options.device) for size in sizes])
    if options.hundred_million:
        num_nodes, num_edges, channels = HUNDRED_MILLION
        hundred_million(num_nodes // options.part, num_edges // options.part, channels, options.device)
    if not (options.whole or options.hundred_million):
        pairs_against_lanczos(options.nodes, options.device)
        step_against_gcn(options.nodes, options.device)
