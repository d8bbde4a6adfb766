"""Every door into the package leads to the same adjacency, and a wrong graph is told what to do."""

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_dense_adj, to_undirected

from graph_builders import both_ways, path_edges, random_edges, random_weights
from lanczosnet.affinity import DenseOperator, SparseOperator, adjacency, adjacency_by_type


@pytest.fixture
def weighted(dtype, device):
    edges = random_edges(9, seed=3)
    weights = random_weights(edges, seed=3, dtype=dtype)
    dense = torch.zeros(9, 9, dtype=dtype).index_put((edges[0], edges[1]), weights)
    return edges.to(device), weights.to(device), dense.to(device)


def test_edges_and_weights_become_their_dense_matrix(weighted):
    edges, weights, dense = weighted
    operator = adjacency(edges, weights)
    assert isinstance(operator, SparseOperator)
    assert operator.shape == (9, 9)
    assert operator.dtype == weights.dtype
    assert operator.symmetric
    assert torch.equal(operator.dense(), dense)


def test_edges_without_weights_weigh_one(dtype, device):
    edges = random_edges(7, seed=1).to(device)
    operator = adjacency(edges, dtype=dtype)
    assert operator.dtype == dtype
    assert torch.equal(operator.dense(), to_dense_adj(edges)[0].to(dtype))
    assert adjacency(edges).dtype == torch.get_default_dtype()


def test_a_dtype_converts_weights_and_matrices(device):
    edges = path_edges(3).to(device)
    assert adjacency(edges, torch.ones(4, device=device), dtype=torch.float64).dtype == torch.float64
    assert adjacency(torch.eye(2, device=device), dtype=torch.float64).dtype == torch.float64
    assert adjacency(scipy.sparse.eye_array(3), dtype=torch.float32).dtype == torch.float32


def test_a_pyg_data_object_brings_its_own_edges_weights_and_nodes(weighted):
    edges, weights, dense = weighted
    operator = adjacency(Data(edge_index=edges, edge_weight=weights, num_nodes=11))
    assert operator.shape == (11, 11)
    assert torch.equal(operator.dense()[:9, :9], dense)
    assert not operator.dense()[9:].any()
    assert operator.segment is None


def test_arguments_take_precedence_over_the_data_object(device):
    edges = path_edges(3).to(device)
    data = Data(edge_index=edges, edge_weight=torch.ones(4, device=device), num_nodes=3)
    doubled = adjacency(data, 2 * torch.ones(4, device=device), num_nodes=5)
    assert doubled.shape == (5, 5)
    assert doubled.values.max() == 2


def test_a_pyg_batch_becomes_ragged_graphs_the_empty_last_one_included(device):
    graphs = [
        Data(edge_index=path_edges(3), num_nodes=3),
        Data(edge_index=path_edges(2), num_nodes=2),
        Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=0),
    ]
    batch = Batch.from_data_list(graphs).to(device)
    operator = adjacency(batch)
    assert operator.num_segments == 3
    assert operator.segment.tolist() == [0, 0, 0, 1, 1]
    assert operator.padded().shape == (3, 3, 3)


@pytest.mark.parametrize("layout", ["csr", "coo", "csc"])
def test_a_scipy_matrix_becomes_the_same_operator_in_any_layout(weighted, layout):
    edges, weights, dense = weighted
    matrix = scipy.sparse.coo_array((weights.cpu().numpy(), edges.cpu().numpy()), shape=(9, 9)).asformat(layout)
    operator = adjacency(matrix)
    assert operator.dtype == weights.dtype
    assert torch.equal(operator.dense(), dense.cpu())


def test_an_integer_scipy_matrix_gets_floating_weights():
    matrix = scipy.sparse.csr_array(np.array([[0, 2], [2, 0]]))
    operator = adjacency(matrix)
    assert operator.dtype == torch.get_default_dtype()
    assert operator.dense().tolist() == [[0.0, 2.0], [2.0, 0.0]]


def test_numpy_arrays_are_edges_or_matrices_by_their_type(weighted):
    edges, weights, dense = weighted
    from_edges = adjacency(edges.cpu().numpy(), weights.cpu())
    from_matrix = adjacency(dense.cpu().numpy())
    assert isinstance(from_edges, SparseOperator)
    assert isinstance(from_matrix, DenseOperator)
    assert torch.equal(from_edges.dense(), from_matrix.dense())


def test_a_dense_matrix_is_kept_as_it_is(weighted):
    *_, dense = weighted
    operator = adjacency(dense)
    assert isinstance(operator, DenseOperator)
    assert operator.dense() is dense
    assert operator.mask is None


def test_a_padded_batch_keeps_its_mask(dtype, device):
    matrix = torch.zeros(2, 3, 3, dtype=dtype, device=device)
    matrix[0, 0, 1] = matrix[0, 1, 0] = 1.0
    mask = torch.tensor([[True, True, False], [True, True, True]], device=device)
    operator = adjacency(matrix, mask=mask)
    assert operator.shape == (2, 3, 3)
    assert operator.mask is mask


def test_duplicate_edges_are_added_up(dtype, device):
    edges = both_ways(torch.tensor([[0, 0, 1], [1, 1, 2]])).to(device)
    weights = torch.tensor([1.0, 2.0, 5.0, 1.0, 2.0, 5.0], dtype=dtype, device=device)
    operator = adjacency(edges, weights)
    assert operator.dense().tolist() == [[0, 3, 0], [3, 0, 5], [0, 5, 0]]
    assert len(operator.values) == 4 + 3  # and the diagonal


def test_self_loops_are_edges_like_others(dtype, device):
    edges = torch.tensor([[0, 1, 1], [1, 0, 1]], device=device)
    operator = adjacency(edges, torch.tensor([1.0, 1.0, 4.0], dtype=dtype, device=device))
    assert operator.dense().tolist() == [[0, 1], [1, 4]]
    assert operator.degree().tolist() == [1, 5]


def test_isolated_nodes_need_only_a_node_count(dtype, device):
    operator = adjacency(path_edges(2).to(device), dtype=dtype, num_nodes=4)
    assert operator.shape == (4, 4)
    assert operator.degree().tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("num_nodes", [0, 1])
def test_graphs_of_no_node_and_of_one(num_nodes, dtype, device):
    edges = torch.zeros(2, 0, dtype=torch.long, device=device)
    operator = adjacency(edges, dtype=dtype, num_nodes=num_nodes)
    assert operator.shape == (num_nodes, num_nodes)
    assert not operator.dense().any()
    assert (operator @ torch.ones(num_nodes, 2, dtype=dtype, device=device)).shape == (num_nodes, 2)


def test_an_empty_edge_list_without_a_count_is_the_empty_graph():
    assert adjacency(torch.zeros(2, 0, dtype=torch.long)).shape == (0, 0)


def test_indices_are_int32(dtype, device):
    operator = adjacency(path_edges(3).to(device), dtype=dtype)
    assert operator.column.dtype == operator.row_pointer.dtype == torch.int32
    directed = adjacency(torch.tensor([[0], [1]], device=device), dtype=dtype, directed=True)
    assert directed.T.column.dtype == directed.T.row_pointer.dtype == torch.int32


def test_a_directed_graph_is_admitted_when_asked_for(dtype, device):
    operator = adjacency(torch.tensor([[0], [1]], device=device), dtype=dtype, directed=True)
    assert not operator.symmetric
    assert operator.dense().tolist() == [[0, 1], [0, 0]]
    assert not adjacency(torch.ones(2, 2, dtype=dtype, device=device).triu(), directed=True).symmetric


def test_gradients_reach_the_edge_weights_through_duplicates(dtype, device):
    edges = torch.tensor([[0, 0, 1, 1], [1, 1, 0, 0]], device=device)
    weights = torch.tensor([1.0, 2.0, 2.0, 1.0], dtype=dtype, device=device, requires_grad=True)
    operator = adjacency(edges, weights)
    (operator @ torch.tensor([3.0, 5.0], dtype=dtype, device=device)).sum().backward()
    assert weights.grad.tolist() == [5, 5, 3, 3]


def test_weights_that_differ_by_rounding_are_symmetric(dtype, device):
    weights = torch.tensor([1.0, 1.0 + 4 * torch.finfo(dtype).eps], dtype=dtype, device=device)
    assert adjacency(path_edges(2).to(device), weights).symmetric


class TestByType:
    edges = both_ways(torch.tensor([[0, 1, 2], [1, 2, 3]]))

    @pytest.mark.parametrize("index_type", [torch.int32, torch.int64])
    def test_each_type_has_its_own_operator_absent_types_an_empty_one(self, index_type, dtype, device):
        types = torch.tensor([0, 1, 0, 0, 1, 0], dtype=index_type, device=device)
        operators = adjacency_by_type(self.edges.to(device), types, 3, dtype=dtype)
        assert [operator.shape for operator in operators] == [(4, 4)] * 3
        assert [int(operator.dense().sum()) for operator in operators] == [4, 2, 0]
        total = sum(operator.dense() for operator in operators)
        assert torch.equal(total, adjacency(self.edges.to(device), dtype=dtype).dense())

    def test_an_edge_may_have_several_types_or_none(self, dtype, device):
        flags = torch.tensor([[1, 1], [1, 0], [0, 0]], device=device).repeat(2, 1)
        weights = torch.tensor([2.0, 3.0, 5.0], dtype=dtype, device=device).repeat(2)
        first, second = adjacency_by_type(self.edges.to(device), flags, 2, weights)
        assert first.degree().tolist() == [2, 5, 3, 0]
        assert second.degree().tolist() == [2, 2, 0, 0]

    def test_a_batch_says_how_many_nodes_there_are(self, device):
        batch = torch.tensor([0, 0, 0, 0, 1, 2], device=device)
        types = torch.zeros(6, dtype=torch.long, device=device)
        (operator,) = adjacency_by_type(self.edges.to(device), types, 1, batch=batch)
        assert operator.shape == (6, 6)
        assert operator.num_segments == 3

    def test_gradients_reach_the_weights_of_every_type(self, device):
        weights = torch.ones(6, dtype=torch.float64, device=device, requires_grad=True)
        types = torch.tensor([0, 1, 0] * 2, device=device)
        operators = adjacency_by_type(self.edges.to(device), types, 2, weights)
        (operators[1] @ torch.ones(4, dtype=torch.float64, device=device)).sum().backward()
        assert weights.grad.tolist() == [0, 1, 0, 0, 1, 0]

    def test_a_type_out_of_range_says_to_raise_num_types(self):
        with pytest.raises(ValueError, match=r"0\.\.1, but range over 0\.\.2: raise num_types or renumber"):
            adjacency_by_type(self.edges, torch.tensor([0, 1, 2] * 2), 2)

    def test_a_wrong_shape_names_the_right_ones(self):
        with pytest.raises(ValueError, match=r"\[edge\] or \[edge, num_types\] = \[6, 2\], but has \(5, 2\)"):
            adjacency_by_type(self.edges, torch.zeros(5, 2), 2)
        with pytest.raises(ValueError, match="edge_type must have shape"):
            adjacency_by_type(self.edges, torch.zeros(5, dtype=torch.long), 2)


EDGES = path_edges(3)
UNEVEN = torch.tensor([1.0, 2.0, 1.0, 3.0])
PATH = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])


def with_entry(row: int, column: int, value: float) -> torch.Tensor:
    matrix = PATH.clone()
    matrix[row, column] = value
    return matrix


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        pytest.param(("a graph",), {}, "not a str; convert it first", id="not a graph"),
        pytest.param((PATH[:2].to_sparse(),), {}, r"square, but this one has shape \(2, 3\)", id="torch sparse"),
        pytest.param((torch.ones(3, 3, 2).to_sparse(2),), {}, "square, but", id="sparse vectors"),
        pytest.param((PATH.to_sparse(), torch.ones(4)), {}, "drop edge_weight", id="torch sparse and weights"),
        pytest.param((EDGES[:, :3],), {}, "nodes 1 and 2 only one points .* undirected.*to_undirected$", id="one way"),
        pytest.param((EDGES, UNEVEN), {}, r"differ by 1\. Symmetrise.*to_undirected.*reduce='mean'", id="weights"),
        pytest.param((with_entry(0, 1, 2.0),), {}, r"differ by 1\. Symmetrise them.*\(A \+ A\.mT\) / 2", id="dense"),
        pytest.param((EDGES, torch.tensor([1, 1, torch.nan, 1])), {}, r"entry at \[2\] is nan: drop or", id="nan"),
        pytest.param((with_entry(1, 2, torch.inf),), {}, r"entry at \[1, 2\] is inf: drop or repair", id="dense inf"),
        pytest.param((EDGES,), {"num_nodes": 2}, r"edge 1 joins nodes \(1, 2\).*2 nodes.*set num_nodes", id="high"),
        pytest.param((EDGES - 1,), {}, r"edge 0 joins nodes \(-1, 0\)", id="negative node"),
        pytest.param((EDGES.float(),), {}, r"has \(2, 4\); an edge_index must be of an integer type", id="float edges"),
        pytest.param((PATH.long(),), {}, r"has \(3, 3\); a dense adjacency must be of a floating type", id="int dense"),
        pytest.param((torch.zeros(2, 3, 4),), {}, r"\[graph, node, node\], but this one has \(2, 3, 4\)", id="oblong"),
        pytest.param((EDGES, torch.ones(3)), {}, r"one entry per edge, \[4\], but has \(3,\)", id="few weights"),
        pytest.param((EDGES, torch.ones(4, 1)), {}, r"one entry per edge, \[4\], but has \(4, 1\)", id="column"),
        pytest.param(
            (EDGES, torch.ones(4, dtype=torch.long)), {}, r"floating type.*call \.float\(\)", id="int weights"
        ),
        pytest.param((PATH, torch.ones(4)), {}, "drop edge_weight", id="dense and weights"),
        pytest.param((PATH,), {"num_nodes": 4}, "drop edge_weight, batch, num_nodes", id="dense and num_nodes"),
        pytest.param((PATH,), {"batch": torch.zeros(3)}, "drop edge_weight, batch", id="dense and batch"),
        pytest.param((PATH,), {"mask": torch.ones(2, dtype=torch.bool)}, r"mask must have shape \(3,\)", id="mask"),
        pytest.param((PATH,), {"mask": torch.arange(3) < 2}, "rows and columns of padding .* multiply", id="alive"),
        pytest.param((EDGES,), {"mask": torch.ones(3)}, "mask belongs to dense batches; .* with batch", id="no mask"),
        pytest.param((EDGES,), {"batch": torch.tensor([0, 0, 1])}, r"edge 1 joins nodes \(1, 2\) of diff", id="cross"),
        pytest.param((EDGES,), {"batch": torch.zeros(4).long(), "num_nodes": 3}, r"one entry per node, \[3\]", id="b"),
        pytest.param((EDGES,), {"batch": torch.zeros(3).long() + 2, "num_graphs": 2}, "fix num_graphs", id="graphs"),
        pytest.param(
            (scipy.sparse.eye_array(3), torch.ones(3)), {}, "own weights: drop edge_weight", id="scipy weight"
        ),
        pytest.param((scipy.sparse.eye_array(3),), {"num_nodes": 4}, "3 nodes, but .* 4: drop num_nodes", id="scipy n"),
        pytest.param((scipy.sparse.coo_array((2, 3)),), {}, r"square, but this one has shape \(2, 3\)", id="scipy"),
    ],
)
def test_a_wrong_graph_is_told_what_to_do(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        adjacency(*arguments, **options)


@pytest.mark.parametrize("edges", [(EDGES[:, :3],), (EDGES, UNEVEN)], ids=["one way", "weights"])
def test_the_remedy_names_no_option_that_only_some_callers_have(edges):
    with pytest.raises(ValueError, match="not symmetric") as error:
        adjacency(*edges)
    assert "directed=True" not in str(error.value)


def test_the_remedy_for_a_one_way_graph_and_for_uneven_weights_works():
    edges, weights = to_undirected(EDGES[:, :3], torch.ones(3), reduce="mean")
    assert adjacency(edges, weights).symmetric
    assert adjacency(*to_undirected(EDGES, UNEVEN, reduce="mean")).dense()[0, 1] == 1.0


def test_checks_can_be_turned_off_for_graphs_that_were_checked_before():
    assert adjacency(EDGES, UNEVEN, validate=False).dense()[0, 1] == 1.0
    assert adjacency(with_entry(0, 1, 2.0), validate=False).dense()[0, 1] == 2.0


def test_complex_weights_are_refused():
    hermitian = np.array([[0, 1j], [-1j, 0]])
    for graph in (hermitian, scipy.sparse.csr_matrix(hermitian)):
        with pytest.raises(ValueError, match="the weights are complex"):
            adjacency(graph)


def test_weights_may_be_an_array():
    edges = path_edges(3)
    assert torch.equal(
        adjacency(edges, np.full(4, 0.5)).dense(), adjacency(edges, torch.full((4,), 0.5).double()).dense()
    )
