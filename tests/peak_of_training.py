"""The peak memory of a training in a process of its own, and what was estimated: `python peak_of_training.py JSON`."""

import ctypes
import json
import sys
from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from lanczosnet.backends.host_memory import return_freed_blocks
from lanczosnet.graphs import split
from lanczosnet.training import architecture_for, fit, recipe, task_of
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.memory import estimated_memory, size_of

NODES, DEGREE, FEATURES = 100_000, 12, 32


def large_graph() -> Data:
    """Neighbours have close numbers."""
    generator = torch.Generator().manual_seed(0)
    left = torch.randint(NODES, (NODES * DEGREE // 2,), generator=generator)
    right = (left + torch.randint(1, 100, left.shape, generator=generator)) % NODES
    edges = to_undirected(torch.stack([left, right]), num_nodes=NODES)
    x = torch.randn(NODES, FEATURES, generator=generator)
    return Data(x=x, edge_index=edges, y=torch.arange(NODES) % 4, name="large", num_nodes=NODES)


def resident(what: str) -> int:
    """Bytes of this process: VmRSS, or VmHWM for the peak."""
    return int(Path("/proc/self/status").read_text().split(f"{what}:")[1].split()[0]) * 1024


def measured_and_estimated(options: dict, precision: str) -> tuple[int, int]:
    """Bytes above the libraries and the edges; freed memory goes back to the system."""
    return_freed_blocks()
    data = large_graph()
    parts = split(data, "uniform", fraction=0.5)
    task = task_of(data, parts.train)
    sizes = {"hidden_channels": 64, "num_layers": 3, "num_steps": 10, "dropout": 0.3}
    architecture = architecture_for(data, task, "lanczosnet", sizes | options)
    model, fabric = architecture.build(0), fabric_for("cpu", precision)
    estimate = estimated_memory(architecture, size_of(data), precision=precision)
    ctypes.CDLL(None).malloc_trim(0)  # what is free could be used unseen
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = resident("VmRSS")
    fit(model, data, parts, task, recipe("modern", task.level, {"epochs": 2}), fabric=fabric)
    features = data.x.numel() * data.x.element_size()  # which were there before
    return resident("VmHWM") - before + features, estimate.total


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(measured_and_estimated(asked["options"], asked["precision"])))
