"""Section 2: (1) D - A, (2) I - D^-1 A, (3) I - D^-1/2 A D^-1/2, and the affinity S with self-loops."""

import pytest
import scipy.sparse.csgraph
import torch
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import get_laplacian, to_dense_adj, to_scipy_sparse_matrix

from graph_builders import random_edges, random_weights, tolerance
from lanczosnet.affinity import adjacency, laplacian, normalized, random_walk

PYG_NAME = {"combinatorial": None, "random_walk": "rw", "symmetric": "sym"}
N = 12  # of which the last has no edge


@pytest.fixture
def graph(dtype, device):
    edges = random_edges(N - 1, seed=7)
    return edges.to(device), random_weights(edges, seed=7, dtype=dtype).to(device)


@pytest.mark.parametrize("kind", PYG_NAME)
@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_each_laplacian_equals_that_of_pyg(kind, storage, graph, dtype):
    edges, weights = graph
    A = adjacency(edges, weights, num_nodes=N)
    A = A if storage == "sparse" else adjacency(A.dense())
    index, entries = get_laplacian(edges, weights, PYG_NAME[kind], num_nodes=N)
    expected = to_dense_adj(index, edge_attr=entries, max_num_nodes=N)[0]
    torch.testing.assert_close(laplacian(A, kind).dense(), expected, atol=tolerance(dtype, 4), rtol=0)


def test_the_first_laplacian_equals_that_of_scipy(graph, dtype):
    edges, weights = (t.cpu() for t in graph)
    expected = scipy.sparse.csgraph.laplacian(to_scipy_sparse_matrix(edges, weights, N).tocsr()).toarray()
    L = laplacian(adjacency(edges, weights, num_nodes=N), "combinatorial").dense()
    torch.testing.assert_close(L, torch.as_tensor(expected).to(dtype), atol=tolerance(dtype, 4), rtol=0)


def test_the_third_laplacian_is_positive_with_eigenvalues_up_to_two(graph, dtype):
    eigenvalues = torch.linalg.eigvalsh(laplacian(adjacency(*graph)).dense())
    assert eigenvalues.min() >= -tolerance(dtype)
    assert eigenvalues.max() <= 2 + tolerance(dtype)


def test_s_and_the_third_laplacian_add_up_to_one(graph, dtype):
    """mu_i = 1 - lambda_i."""
    A = adjacency(*graph)
    total = normalized(A, self_loops=False).dense() + laplacian(A).dense()
    torch.testing.assert_close(total, torch.eye(N - 1, dtype=dtype, device=total.device))


def test_s_with_self_loops_is_that_of_gcn(graph, dtype):
    edges, weights = graph
    index, entries = gcn_norm(edges, weights, num_nodes=N)
    expected = to_dense_adj(index, edge_attr=entries, max_num_nodes=N)[0]
    S = normalized(adjacency(edges, weights, num_nodes=N))
    torch.testing.assert_close(S.dense(), expected, atol=tolerance(dtype, 4), rtol=0)


def test_constants_are_in_the_null_space_of_the_first_two(graph, dtype, device):
    A = adjacency(*graph)
    ones = torch.ones(N - 1, dtype=dtype, device=device)
    assert float((laplacian(A, "combinatorial") @ ones).abs().max()) < tolerance(dtype)
    assert float((laplacian(A, "random_walk") @ ones).abs().max()) < tolerance(dtype)


def test_the_second_laplacian_belongs_to_the_random_walk(graph):
    A = adjacency(*graph)
    L = laplacian(A, "random_walk")
    assert not L.symmetric
    torch.testing.assert_close(L.dense(), torch.eye(N - 1).to(L.dense()) - random_walk(A).dense())
