"""One large graph, in one run: `python benchmarks/large.py [--device cuda] [--nodes N]`.

Ratios to plain Lanczos, to bare products with S and to PyG's GCN, and six graphs of one size whose components differ.
On the CPU everything runs on one thread and only ratios mean anything.
"""

import argparse
from collections.abc import Callable

import torch
from measure import Function, best_times, cuda_time, show, verdict
from torch import Tensor
from torch_geometric.nn import GCN

from lanczosnet import LanczosNet
from lanczosnet.affinity import SparseOperator, adjacency, connected_components, normalized
from lanczosnet.krylov import component_ritz_pairs, lanczos, start

DEGREE, STEPS, CHANNELS = 10, 20, 16


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


def operator_data(x: Tensor, edge_index: Tensor) -> object:
    from torch_geometric.data import Data

    return Data(x=x, edge_index=edge_index, num_nodes=len(x))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    pairs_against_lanczos(options.nodes, options.device)
    step_against_gcn(options.nodes, options.device)
