"""The graph kernel on many edges."""

import torch
from torch_geometric.utils import to_undirected

from lanczosnet.affinity import adjacency, kernel, kernel_adjacency


def test_distances_in_pieces_are_those_at_once_and_gradients_need_no_pieces(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    edge_index = to_undirected(torch.randint(0, 30, (2, 90), generator=generator), num_nodes=30)
    pattern = adjacency(edge_index, num_nodes=30, dtype=torch.float64)
    embedding = torch.randn(30, 5, dtype=torch.float64, generator=generator)
    whole = kernel_adjacency(pattern, embedding).values
    monkeypatch.setattr(kernel, "NUMBERS_AT_A_TIME", 12)
    assert torch.equal(kernel_adjacency(pattern, embedding).values, whole)
    watched = kernel_adjacency(pattern, embedding.requires_grad_()).values
    assert torch.equal(watched.detach(), whole)
    assert watched.requires_grad
