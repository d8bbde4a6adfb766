"""Small multi-edge-type graphs in the shape of molecules."""

import torch
from torch_geometric.data import Batch, Data

from graph_builders import generator, random_edges

NUM_NODE_TYPES, NUM_EDGE_TYPES = 5, 3


def molecule(num_nodes: int, seed: int = 0) -> Data:
    """Node types, edge types as flags (an edge may have several), the simple graph's weight as their sum."""
    edges = random_edges(num_nodes, seed, mean_degree=2.5)
    half = edges.shape[1] // 2
    flags = (torch.rand(half, NUM_EDGE_TYPES, generator=generator(seed + 1)) < 0.5).float()
    flags[:, 0] = 1.0
    flags = torch.cat([flags, flags])
    return Data(
        x=torch.randint(NUM_NODE_TYPES, (num_nodes,), generator=generator(seed + 2)),
        edge_index=edges,
        edge_attr=flags,
        edge_weight=flags.sum(1),
        y=torch.randn(1, 2, generator=generator(seed + 3)),
        num_nodes=num_nodes,
    )


def molecules(sizes: tuple[int, ...] = (5, 1, 12, 7, 3)) -> list[Data]:
    return [molecule(size, 10 * place) for place, size in enumerate(sizes)]


def batched(graphs: list[Data]) -> Batch:
    return Batch.from_data_list(graphs)


def relabelled(data: Data, order: torch.Tensor) -> Data:
    """The same graph with node order[i] now called i."""
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    other = data.clone()
    other.x = data.x[order]
    other.edge_index = place[data.edge_index]
    return other
