"""Seconds a run of node classification, against PyG's GCN in the same loop: `python benchmarks/nodes.py [DATA ...]`.

Every network trains with the recipe `modern` on 20 labels of every class, or on the public masks where there are some.
GCN is PyG's, two layers of 64 channels, once as a matrix in CSR form, the fastest that PyG has, and once as a list of
edges. Seconds are of processor time on a CPU, whole runs with preparation; ratios are within one run, and the runs of
the networks take turns. `--data-dir` says where files lie; without any, a random graph of Photo's size stands in.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measure import show, verdict
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_undirected

from lanczosnet.graphs import load
from lanczosnet.training import JobSpec
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.job import Job, job_of
from lanczosnet.training.loop import Trial, fit_concurrent

NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "LanczosNet": ("lanczosnet", {}),
    "LanczosNet, plain": ("lanczosnet", {"block": "plain"}),
    "AdaLanczosNet": ("adalanczosnet", {}),
    "residual GCN": ("gcn", {"block": "residual"}),
}
PEER, EDGES = "GCN (PyG, CSR)", "GCN (PyG, edges)"
AT_MOST = 3.0  # times the peer


class PlainGCN(nn.Module):
    """As in PyG's examples; S is normalised once, as a matrix or as edges with weights."""

    def __init__(self, in_channels: int, out_channels: int, as_matrix: bool) -> None:
        super().__init__()
        self.first = GCNConv(in_channels, 64, normalize=False)
        self.second = GCNConv(64, out_channels, normalize=False)
        self.dropout = nn.Dropout(0.5)
        self.as_matrix = as_matrix

    def prepare(self, data: Data, *, validate: bool = True) -> "Prepared":
        edges, weight = gcn_norm(data.edge_index, None, data.num_nodes)
        if not self.as_matrix:
            return Prepared(data.x, edges, weight)
        size = (data.num_nodes, data.num_nodes)
        return Prepared(data.x, torch.sparse_coo_tensor(edges.flip(0), weight, size).coalesce().to_sparse_csr(), None)

    def forward(self, graph: "Prepared") -> Tensor:
        hidden = self.dropout(self.first(graph.x, graph.edges, graph.weight).relu())
        return self.second(hidden, graph.edges, graph.weight)


class Prepared:
    """Features and S. A class of its own, so that nothing on the way takes it for a batch of tensors."""

    def __init__(self, x: Tensor, edges: Tensor, weight: Tensor | None) -> None:
        self.x, self.edges, self.weight = x, edges, weight


def random_graph() -> Data:
    """Of Photo's size."""
    source = torch.Generator().manual_seed(0)
    edges = to_undirected(torch.randint(7_650, (2, 119_081), generator=source))
    x = (torch.rand(7_650, 745, generator=source) < 0.35).float()
    return Data(x=x, edge_index=edges, y=torch.randint(8, (7_650,), generator=source), name="random")


def job(data: Data, model: str, settings: dict[str, Any]) -> Job:
    masked = "train_mask" in data
    spec = JobSpec(data.name, model, settings=settings, split=None if masked else "20-per-class")
    if masked and data.train_mask.dim() == 2:
        data = data.clone().update({key: data[key][:, 0] for key in ("train_mask", "val_mask", "test_mask")})
    return job_of(spec, data)


def runs(data: Data, epochs: int, device: str) -> dict[str, Callable[[], object]]:
    fabric = fabric_for(device)

    def run(network: Callable[[], nn.Module], like: Job) -> Callable[[], object]:
        return lambda: fit_concurrent(
            [Trial(network(), like.split, like.task, 0)], like.data, like.recipe, fabric=fabric
        )

    jobs = {name: job(data, model, {**more, "epochs": epochs}) for name, (model, more) in NETWORKS.items()}
    found = {name: run(each.architecture.build, each) for name, each in jobs.items()}
    like = jobs["residual GCN"]
    sizes = (data.x.shape[1], like.task.out_channels)
    found[PEER] = run(lambda: PlainGCN(*sizes, as_matrix=True), like)
    found[EDGES] = run(lambda: PlainGCN(*sizes, as_matrix=False), like)
    return found


def seconds(function: Callable[[], object], device: str) -> float:
    clock = time.perf_counter if device == "cuda" else time.process_time
    begin = clock()
    function()
    return clock() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", help="data sets by name; a random graph where none is given")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*[Ss]parse.*")
    torch.set_num_threads(1)
    for data in [load(name, data_dir=options.data_dir) for name in options.data] or [random_graph()]:
        functions = runs(data, options.epochs, options.device)
        best = dict.fromkeys(functions, float("inf"))
        for _ in range(options.repeats):
            for name, function in functions.items():
                best[name] = min(best[name], seconds(function, options.device))
        rows = [[name, f"{best[name]:.2f}", f"{best[name] / best[PEER]:.2f}"] for name in best]
        title = f"{data.name}: {data.num_nodes:,} nodes, {options.epochs} epochs, best of {options.repeats} runs"
        show(title, ["network", "seconds a run", f"over {PEER}"], rows)
        print(verdict(best["LanczosNet"] / best[PEER], AT_MOST, at_most=True))


if __name__ == "__main__":
    main()
