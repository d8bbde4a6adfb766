import pytest
import torch
from torch_geometric.data import Data

from graph_builders import generator, random_edges
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.krylov import component_ritz_pairs
from lanczosnet.models import LanczosNet


@pytest.mark.parametrize("bias", [False, True])
def test_algorithm_2_is_what_the_network_computes(bias: bool) -> None:
    """Line by line, in float64, with every block formed; a bias is our addition."""
    torch.manual_seed(0)
    edges = random_edges(30)
    X = torch.randn(30, 5, generator=generator(0), dtype=torch.float64)
    scales = {"short_scales": [1, 3], "long_scales": [4, 8]}
    network = LanczosNet(5, 7, 3, num_layers=3, **scales, num_steps=6, block="plain", bias=bias).double()
    S = normalized(adjacency(edges, dtype=torch.float64))
    pairs = component_ritz_pairs(S, 6)
    V, R = pairs.vectors, pairs.values[0]

    Y = X
    for layer, conv in enumerate(network.convolutions, start=1):
        Z, collected = Y, []
        for j in range(1, max(conv.short_scales) + 1):
            Z = S.dense() @ Z
            if j in conv.short_scales:
                collected.append(Z)
        for i in range(len(conv.long_scales)):
            R_hat = torch.diag(conv.filter(R)[:, i])
            collected.append(V @ R_hat @ V.mT @ Y)
        Y = torch.cat(collected, 1) @ conv.weight.view(-1, conv.out_channels)
        if bias:
            torch.nn.init.normal_(conv.bias)
            Y = Y + conv.bias
        if layer < len(network.convolutions):
            Y = Y.relu()
    data = Data(x=X, edge_index=edges, edge_weight=torch.ones(edges.shape[1], dtype=torch.float64))
    torch.testing.assert_close(network(data), Y)
