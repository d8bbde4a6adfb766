import pytest
import torch
from torch_geometric.utils import contains_self_loops, degree, is_undirected

from lanczosnet.graphs import DataError, knn_graph


def test_points_on_a_line_are_joined_to_their_neighbours():
    edge_index = knn_graph(torch.tensor([[0.0], [1.0], [2.1], [3.3]]), k=1)
    assert sorted(map(tuple, edge_index.t().tolist())) == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]


def test_equal_points_are_not_joined_to_themselves():
    edge_index = knn_graph(torch.zeros(6, 2), k=2)
    assert not contains_self_loops(edge_index)
    assert is_undirected(edge_index)
    assert int(degree(edge_index[0], 6).min()) >= 2


@pytest.mark.parametrize("k", [0, 3, 10])
def test_more_neighbours_than_there_are_is_an_error(k):
    with pytest.raises(DataError, match="Choose k between 1 and 2"):
        knn_graph(torch.zeros(3, 1), k=k)
