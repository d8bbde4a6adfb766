"""What each process of `torch.distributed.run` finds of a graph that is shared out, and what one process finds."""

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from lanczosnet.affinity import adjacency, connected_components, normalized
from lanczosnet.backends.host_memory import return_freed_blocks
from lanczosnet.backends.processes import leave, processes_here
from lanczosnet.batching.shard import shard_of
from lanczosnet.filters import spectral_basis
from lanczosnet.graphs import load, split
from lanczosnet.graphs.formats.stored_graph import store_graph
from lanczosnet.krylov import component_ritz_pairs, lanczos
from lanczosnet.krylov.sharded_components import sharded_ritz_pairs
from lanczosnet.training import architecture_for, fit, recipe, task_of
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.loop import _loader
from lanczosnet.training.stored_predictions import predict_stored
from lanczosnet.training.trainer import Trainer

EPOCHS = 4
LARGE = 120_000  # nodes
OPTIONS = {"hidden_channels": 16, "num_layers": 2, "num_steps": 20, "filter_channels": (8,), "dropout": 0.0}
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "lanczosnet": ("lanczosnet", {}),
    "adalanczosnet": ("adalanczosnet", {}),
    # All components by Lanczos, and of more steps the leading pairs.
    "adalanczosnet, searched": ("adalanczosnet", {"exact_up_to": 0, "num_steps": 10, "search_steps": 20}),
    "adalanczosnet, entrywise": ("adalanczosnet", {"tridiagonal_filter": "entrywise", "self_loops": False}),
}


def many_components() -> Data:
    """One component with half of the nodes, three of over a thousand, many small ones, and nodes alone; shuffled."""
    generator = torch.Generator().manual_seed(0)
    sizes = [5000, 1100, 1300, 1500, *range(2, 30), *[5] * 100, *[1] * 60]
    edges, first = [], 0
    for size in sizes:
        tree = [(torch.rand(size - 1, generator=generator) * torch.arange(1, size)).long(), torch.arange(1, size)]
        more = torch.randint(0, size, (2, size), generator=generator)
        edges.append(torch.cat([torch.stack(tree), more], 1) + first)
        first += size
    order = torch.randperm(first, generator=generator)
    ends = to_undirected(order[torch.cat(edges, 1)], num_nodes=first)
    y = torch.randint(0, 4, (first,), generator=generator)
    x = torch.randn(first, 12, generator=generator) + torch.nn.functional.one_hot(y, 12)
    return Data(x=x, edge_index=ends, y=y, name="many", num_nodes=first)


def found_here(folder: Path, partition: Tensor | None = None) -> dict[str, Any]:
    """What a process finds of a stored graph, put together for all nodes."""
    data, processes = load(folder), processes_here()
    if partition is not None:
        data.process_of_node = partition
    facts: dict[str, Any] = {}
    if processes.size > 1:
        shard = shard_of(data, processes, torch.float64, torch.device("cpu")).shard
        S, nodes = normalized(shard.adjacency), shard.nodes
        components = shard.component, shard.num_components
        pairs = sharded_ritz_pairs(S, 20, components, shard.num_shared)
        basis = spectral_basis(pairs, processes, shard.num_shared)
        facts["halo"] = shard.halo_share
    else:
        S, nodes = normalized(adjacency(data, dtype=torch.float64)), torch.arange(data.num_nodes)
        components = connected_components(S)
        pairs = component_ritz_pairs(S, 20, components=components)
        basis = spectral_basis(pairs)

    def of_all(rows: Tensor) -> Tensor:
        order = processes.gathered(nodes)
        return processes.gathered(rows)[order.argsort()]

    signal = torch.randn(data.num_nodes, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    first = torch.full((components[1],), data.num_nodes).scatter_reduce(0, components[0], nodes, "amin")
    if processes.size > 1:
        first[: shard.num_shared] = -processes.largest(-first[: shard.num_shared])
    facts["component"] = of_all(first[components[0]])
    facts["values"] = of_all(pairs.values[components[0]])
    facts["filtered"] = of_all(basis.lift(basis.values.pow(9).unsqueeze(1) * basis.project(signal[nodes])))
    facts |= {name: of_all(rows) for name, rows in _adjoint(S, signal[nodes], nodes).items()}
    for name in NETWORKS:
        facts |= {f"{name}: {what}": found for what, found in _trained(folder, data, of_all, name).items()}
    return facts


def _adjoint(S: Any, signal: Tensor, nodes: Tensor) -> dict[str, Tensor]:
    """Lanczos and its gradient: of the start vector, and of the entries, added up by row."""
    values = S.values.detach().requires_grad_()
    start = (1 + 0.1 * signal[:, 0]).requires_grad_()
    found = lanczos(S.with_values(values), start, 8, validate=True)
    weight = torch.arange(1.0, 9.0, dtype=torch.float64)
    share = 1.0 / S.processes.size if S.processes is not None else 1.0  # every process has T
    loss = (found.basis * signal[:, 1:2] * weight).sum() + share * (found.diagonal * weight).sum()
    (loss + share * found.off_diagonal.square().sum()).backward()
    of_rows = torch.zeros(len(nodes), dtype=torch.float64).index_add(0, S.row.long(), values.grad)
    return {"basis": found.basis.detach(), "start gradient": start.grad, "entry gradients": of_rows}


def _trained(folder: Path, data: Any, of_all: Any, name: str) -> dict[str, Any]:
    """The gradient of the first step, the losses of some epochs, and the predictions after them."""
    parts = split(data, "uniform", fraction=0.5)
    task = task_of(data, parts.train)
    chosen = recipe("paper", task.level, {"epochs": EPOCHS, "learning_rate": 1e-2})
    network, more = NETWORKS[name]
    architecture = architecture_for(data, task, network, OPTIONS | more)
    fabric = fabric_for("cpu", "64-true")
    model = architecture.build(0).double()
    loader = _loader(model, data, fabric, chosen)
    trainer = Trainer(model, loader, parts, task, chosen, 0, fabric)
    fabric.backward(trainer.loss(next(trainer.steps(parts.train))))
    facts = {f"gradient of {name}": parameter.grad.clone() for name, parameter in model.named_parameters()}
    model, reports = architecture.build(0), []
    fit(model, data, parts, task, chosen, fabric=fabric, on_epoch=reports.append)
    facts["losses"] = torch.tensor([[report.train_loss, report.val_loss] for report in reports], dtype=torch.float64)
    with torch.no_grad():
        facts["predictions"] = of_all(model.eval()(loader.inputs if len(data.x) > len(loader.y) else loader.inputs[1]))
    record = SimpleNamespace(data=SimpleNamespace(features=None, scaling=None))
    out = folder / f"predicted-{fabric.world_size}.npy"
    predict_stored(SimpleNamespace(network=model, task=task, config=record), data, out, processes_here())
    facts["predicted"] = torch.from_numpy(np.load(out))
    return facts


def megabytes_of_training(folder: Path) -> float:
    """What a training takes at its peak, above what the process has before; freed memory goes back."""
    return_freed_blocks()
    data = load(folder)
    parts = split(data, "uniform", fraction=0.5)
    task = task_of(data, parts.train)
    model = architecture_for(data, task, "lanczosnet", OPTIONS).build(0)
    ctypes.CDLL(None).malloc_trim(0)  # what is free could be used unseen
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = _resident("VmRSS")
    fit(model, data, parts, task, recipe("paper", task.level, {"epochs": 2}), fabric=fabric_for("cpu"))
    return _resident("VmHWM") - before


def _resident(what: str) -> float:
    return int(Path("/proc/self/status").read_text().split(f"{what}:")[1].split()[0]) / 1024


def large() -> Data:
    """So many nodes that their memory counts; neighbours have close numbers."""
    generator = torch.Generator().manual_seed(0)
    left = torch.randint(0, LARGE, (4 * LARGE,), generator=generator)
    right = (left + torch.randint(1, 100, left.shape, generator=generator)) % LARGE
    y = torch.arange(LARGE) % 4
    return Data(x=torch.randn(LARGE, 64), edge_index=torch.stack([left, right]), y=y, name="large", num_nodes=LARGE)


def scattered(num_nodes: int, parts: int) -> Tensor:
    """A partition without any order."""
    return torch.randint(0, parts, (num_nodes,), generator=torch.Generator().manual_seed(3))


def store(folder: Path, data: Data) -> Path:
    store_graph(data, folder)
    return folder


if __name__ == "__main__":
    out, *folders = map(Path, sys.argv[1:])
    fabric_for("cpu", "64-true")
    for folder in folders:
        if folder.name == "many":
            given = found_here(folder, scattered(load(folder).num_nodes, torch.distributed.get_world_size()))
            if torch.distributed.get_rank() == 0:
                torch.save(given, out / "many-given.pt")
        found = found_here(folder)
        if folder.name == "many":
            found["megabytes"] = megabytes_of_training(folder.with_name("large"))
        if torch.distributed.get_rank() == 0:
            torch.save(found, out / f"{folder.name}.pt")
    leave()
