"""The real graphs, as tensors."""

from pathlib import Path

import torch
from torch import Tensor

from lanczosnet.affinity import adjacency
from lanczosnet.graphs import load


def planetoid(folder: Path, name: str) -> tuple[Tensor, Tensor]:
    """Features `[node, channel]` and edge_index of a citation graph."""
    data = load(name, data_dir=folder)
    return data.x, data.edge_index


def molecules(folder: Path) -> tuple[Tensor, Tensor]:
    """The binary adjacency of every QM8 molecule with hydrogens, `[graph, node, node]`, and which rows are atoms."""
    packed = load("qm8", data_dir=folder)
    together = packed.batch(torch.arange(len(packed)))
    padded = adjacency(together.edge_index, batch=together.batch, num_graphs=len(packed)).padded()
    return padded.dense(), padded.mask
