"""Ritz pairs of large graphs, in one run: `python benchmarks/ritz_pairs.py [--device cuda] [--nodes N] [--quick]`.

Ratios to bare products with S and to plain Lanczos; on the CPU everything runs on one thread.
"""

import argparse

import scipy.sparse
import scipy.sparse.csgraph
import torch
from lanczos import random_graph
from measure import Function, best_times, cuda_time, show, verdict
from torch import Tensor

from lanczosnet.affinity import SparseOperator, adjacency, connected_components, normalized
from lanczosnet.krylov import component_ritz_pairs, lanczos, start

DEGREE = 10


def seconds(functions: dict[str, Function], device: str, repeats: int) -> dict[str, float]:
    if device == "cuda":
        return {name: cuda_time(function, repeats) for name, function in functions.items()}
    return best_times(functions, repeats)


def products(S: SparseOperator, vector: Tensor, count: int) -> None:
    for _ in range(count):
        vector = S @ vector


def hundreds_of_steps(sizes: list[int], num_steps: int, device: str) -> None:
    rows = []
    for num_nodes in sizes:
        S = random_graph(num_nodes, num_nodes * DEGREE // 2, device)
        vector = start.ones(S)
        times = seconds(
            {
                "lanczos": lambda S=S, vector=vector: lanczos(S, vector, num_steps),
                "products": lambda S=S, vector=vector: products(S, vector, num_steps),
            },
            device,
            1,
        )
        overlap = _gram(lanczos(S, vector, num_steps).basis) - torch.eye(num_steps, dtype=torch.float64, device=device)
        ratio = verdict(times["lanczos"] / times["products"], 3, at_most=True)
        rows.append([f"{num_nodes:,}", ratio, verdict(overlap.norm().item() * 1e5, 1, at_most=True)])
    title = f"{num_steps} Lanczos steps, mean degree {DEGREE}, float32"
    show(title, ["nodes", f"lanczos / {num_steps} products", "1e5 ||Q^T Q - I||_F"], rows)


def _gram(basis: Tensor) -> Tensor:
    parts = (part.double() for part in basis.split(2**16))
    return sum(part.mT @ part for part in parts)


def one_component(num_nodes: int, device: str) -> None:
    S = random_graph(num_nodes, num_nodes * DEGREE // 2, device)
    vector, components = start.ones(S), connected_components(S)
    rows = []
    for steps in (20, 100):
        times = seconds(
            {
                "lanczos": lambda steps=steps: lanczos(S, vector, steps),
                "pairs": lambda steps=steps: component_ritz_pairs(S, 20, search_steps=steps),
                "known": lambda steps=steps: component_ritz_pairs(S, 20, search_steps=steps, components=components),
            },
            device,
            2,
        )
        ratios = (times[name] / times["lanczos"] for name in ("pairs", "known"))
        rows.append([str(steps), *(verdict(ratio, 1.3, at_most=True) for ratio in ratios)])
    title = f"20 Ritz pairs of a graph of {num_nodes:,} nodes, {components[1]} components"
    show(title, ["search_steps", "pairs / lanczos", "with known components"], rows)


def any_components(num_nodes: int, device: str) -> None:
    """Six graphs with as many nodes and edges."""
    graphs = {name: build(num_nodes) for name, build in GRAPHS.items()}
    operators = {
        name: normalized(adjacency(torch.cat([e, e.flip(0)], 1).to(device), num_nodes=num_nodes, validate=False))
        for name, e in graphs.items()
    }
    times = seconds(
        {name: lambda S=S: component_ritz_pairs(S, 20) for name, S in operators.items()}
        | {f"{name}, lanczos": lambda S=S: lanczos(S, None, 20) for name, S in operators.items()},
        device,
        3,
    )
    fastest = min(times[name] for name in graphs)
    rows = []
    for name, S in operators.items():
        alone = times[name] / times[f"{name}, lanczos"]
        count = connected_components(S)[1]
        rows.append([name, f"{count:,}", verdict(times[name] / fastest, 1.3, at_most=True), f"{alone:.2f}"])
    title = f"20 Ritz pairs, components found included, {num_nodes:,} nodes each"
    show(title, ["graph", "components", "pairs / pairs of the fastest", "pairs / lanczos"], rows)


def _random(num_nodes: int, num_edges: int) -> Tensor:
    """Random edges along a path, so that the graph is connected."""
    path = torch.arange(num_nodes - 1)
    generator = torch.Generator().manual_seed(0)
    others = torch.randint(0, num_nodes, (2, num_edges - num_nodes + 1), generator=generator)
    return torch.cat([torch.stack([path, path + 1]), others], 1)


def _beside(parts: list[Tensor], sizes: list[int]) -> Tensor:
    firsts = [sum(sizes[:place]) for place in range(len(sizes))]
    return torch.cat([part + first for part, first in zip(parts, firsts, strict=True)], 1)


def _with_crumbs(num_nodes: int) -> Tensor:
    """Thousands of paths of two to twelve nodes."""
    sizes = [2 + place % 11 for place in range(num_nodes // 200)]
    giant = num_nodes - sum(sizes)
    edges = num_nodes * DEGREE // 2 - sum(sizes) + len(sizes)
    node = torch.arange(sum(sizes) - 1)
    is_last = torch.zeros(sum(sizes), dtype=torch.bool)
    is_last[torch.tensor(sizes).cumsum(0) - 1] = True
    node = node[~is_last[:-1]]
    return torch.cat([_random(giant, edges), torch.stack([node, node + 1]) + giant], 1)


def _hub(num_nodes: int) -> Tensor:
    node = torch.arange(1, num_nodes)
    star = torch.stack([torch.zeros_like(node), node])
    return torch.cat([star, _random(num_nodes, num_nodes * DEGREE // 2 - len(node))], 1)


def _four(num_nodes: int) -> Tensor:
    size = num_nodes // 4
    return _beside([_random(size, size * DEGREE // 2)] * 4, [size] * 4)


GRAPHS = {
    "one component": lambda n: _random(n, n * DEGREE // 2),
    "and three isolated nodes": lambda n: _random(n - 3, n * DEGREE // 2),
    "a tenth of the nodes isolated": lambda n: _random(n - n // 10, n * DEGREE // 2),
    "thousands of tiny components": _with_crumbs,
    "a hub with all nodes": _hub,
    "four components": _four,
}


def against_scipy(num_nodes: int) -> None:
    S = random_graph(num_nodes, num_nodes * DEGREE // 2)
    csr = scipy.sparse.csr_array((S.values.numpy(), S.column.numpy(), S.row_pointer.numpy()), shape=S.shape)
    times = best_times(
        {
            "ours": lambda: connected_components(S),
            "scipy": lambda: scipy.sparse.csgraph.connected_components(csr, directed=False),
        },
        3,
    )
    ratio = verdict(times["scipy"] / times["ours"], 1)
    show(f"Connected components, {num_nodes:,} nodes, one thread", ["", "SciPy / ours"], [["time", ratio]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="small sizes: a rehearsal, not a measurement")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    num_nodes = 50_000 if arguments.quick else arguments.nodes
    one_component(num_nodes, arguments.device)
    any_components(num_nodes, arguments.device)
    if arguments.device == "cpu":
        against_scipy(num_nodes)
    hundreds_of_steps([num_nodes // 5, num_nodes], 100 if arguments.quick else 400, arguments.device)


if __name__ == "__main__":
    main()
