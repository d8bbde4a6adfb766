"""Small data sets that a small network learns in moments."""

import torch
from torch_geometric.data import Data

from graph_builders import generator
from lanczosnet.graphs import PackedGraphs, Split, load, pack, split
from molecule_builders import molecule

SMALL = {"hidden_channels": 16, "num_layers": 2, "num_steps": 5, "filter_channels": (8,)}


def communities() -> Data:
    """A block model whose nodes have noisy features of their block."""
    data = load("block-model", sizes=(30, 30, 30))
    noise = torch.randn(90, 8, generator=generator(0))
    data.x = noise + 2 * torch.nn.functional.one_hot(data.y, 8)
    return data


def packed_molecules(count: int = 40) -> PackedGraphs:
    """Two targets that follow from the nodes: one far from zero and with gaps, one small."""
    graphs = [molecule(3 + i % 7, 10 * i) for i in range(count)]
    for i, data in enumerate(graphs):
        types = data.x.float()
        data.y = torch.stack([100.0 + types.mean(), 0.01 * (types == 0).float().mean()]).view(1, 2)
        if i % 5 == 0:
            data.y[0, 0] = float("nan")
    return pack(graphs, "atoms", targets=("mean", "share"), units=("1", "100"), task="regression")


def halves(data: Data | PackedGraphs, seed: int = 0) -> Split:
    if isinstance(data, PackedGraphs):
        return split(data, "random", seed=seed)
    return split(data, "5-per-class", seed=seed)
