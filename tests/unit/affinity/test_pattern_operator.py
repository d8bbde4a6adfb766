"""A graph without weights stores no values, and indices are as narrow as they can be: nothing else changes."""

import copy

import pytest
import torch
from torch_geometric.data import Data

from graph_builders import generator, random_edges, random_weights, tolerance
from lanczosnet import LanczosNet
from lanczosnet.affinity import (
    PatternOperator,
    SparseOperator,
    adjacency,
    alpha_normalized,
    connected_components,
    csr_product,
    laplacian,
    normalized,
    random_walk,
    sparse_operator,
)
from lanczosnet.affinity.components import subgraph
from lanczosnet.affinity.stored_rows import adjacency_of_rows
from lanczosnet.backends import conditions
from lanczosnet.batching.from_data import graph_inputs
from lanczosnet.krylov import component_ritz_pairs, lanczos, start


@pytest.fixture(autouse=True)
def no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every graph were a large one, multiplied in several ranges of rows."""
    monkeypatch.setattr(conditions, "ENTRIES_WITHOUT_VALUES", 0)
    monkeypatch.setattr(csr_product, "ENTRIES_AT_A_TIME", 50)


def edges_with_loops(num_nodes: int = 40) -> torch.Tensor:
    """With two self-loops, one of them twice, and the last three nodes without an edge."""
    edges = random_edges(num_nodes - 3, seed=1)
    return torch.cat([edges[:, edges[0] != edges[1]], torch.tensor([[2, 5, 5], [2, 5, 5]])], 1)


def pair(device: torch.device, dtype: torch.dtype, num_nodes: int = 40) -> tuple[PatternOperator, SparseOperator]:
    """One adjacency without values, and with them."""
    edges = edges_with_loops(num_nodes).to(device)
    ours = adjacency(edges, num_nodes=num_nodes, dtype=dtype)
    theirs = adjacency(edges, torch.ones(edges.shape[1], dtype=dtype, device=device), num_nodes=num_nodes)
    assert isinstance(ours, PatternOperator)
    assert isinstance(theirs, SparseOperator)
    assert not isinstance(theirs, PatternOperator)
    return ours, theirs


OPERATORS = {
    "adjacency": lambda A: A,
    "S": normalized,
    "S without loops": lambda A: normalized(A, self_loops=False),
    "negative": lambda A: -normalized(A),
    "random walk": random_walk,
    "combinatorial": lambda A: laplacian(A, "combinatorial"),
    "symmetric": laplacian,
    "alpha": lambda A: normalized(alpha_normalized(A, 0.5)),
    "transpose": lambda A: random_walk(A).T,
    "moved": lambda A: normalized(A).to(torch.float64),
    "detached": lambda A: normalized(A).detach(),
    "one graph": lambda A: normalized(A).without_segments(),
}


@pytest.mark.parametrize("make", OPERATORS.values(), ids=OPERATORS)
def test_it_is_the_operator_with_values(make, dtype, device):
    ours, theirs = (make(A) for A in pair(device, dtype))
    assert isinstance(ours, PatternOperator)
    assert not ours.has_values
    assert (ours.shape, ours.dtype, ours.symmetric) == (theirs.shape, theirs.dtype, theirs.symmetric)
    torch.testing.assert_close(ours.dense(), theirs.dense())
    torch.testing.assert_close(ours.degree(), theirs.degree())
    for channels in ((), (1,), (3,), (0,)):
        signal = torch.randn(40, *channels, generator=generator(0)).to(device, ours.dtype)
        torch.testing.assert_close(ours @ signal, theirs @ signal)
        torch.testing.assert_close(ours.T @ signal, theirs.dense().mT @ signal)
    assert 0 < float(ours.largest_entry()) <= float(theirs.largest_entry()) * (1 + 1e-6)
    row, entry = theirs.row.long(), torch.arange(len(theirs.column), device=device)
    torch.testing.assert_close(ours.values_at(row, entry), theirs.values)


def test_values_that_are_asked_for_are_those_that_would_be_stored(dtype, device):
    ours, theirs = (normalized(A) for A in pair(device, dtype))
    is_rounded = torch.zeros(len(ours.column), dtype=torch.bool, device=device)
    is_rounded[ours.diagonal_position[[2, 5]]] = True  # self-loops of the graph
    assert torch.equal(ours.values[~is_rounded], theirs.values[~is_rounded])
    torch.testing.assert_close(ours.values, theirs.values)
    assert torch.equal(ours.row_pointer, theirs.row_pointer)
    assert torch.equal(ours.column, theirs.column)


def test_nothing_is_stored_for_every_entry_but_its_column(device):
    A = pair(device, torch.float32)[0]
    S = normalized(A)
    of_entries = [each for each in vars(S).values() if torch.is_tensor(each) and each.numel() > 2 * S.num_nodes]
    assert len(of_entries) == 1
    assert of_entries[0] is A.column
    loop_free = adjacency(random_edges(9).to(device), num_nodes=9)
    assert normalized(loop_free).shift is None  # S is P between scalings, without cancellation


def test_products_that_are_rounded_agree_to_rounding(device):
    ours, theirs = (normalized(A) for A in pair(device, torch.float32))
    signal = torch.randn(40, 3, generator=generator(0)).to(device)
    exact = theirs.to(torch.float64).dense() @ signal.double()
    assert float((ours @ signal - exact).abs().max()) <= 4 * torch.finfo(torch.float32).eps * float(exact.abs().max())


@pytest.mark.parametrize("channels", [(), (3,)])
@pytest.mark.parametrize("make", [normalized, random_walk], ids=["symmetric", "directed"])
def test_gradients_and_second_ones_reach_the_signal(make, channels):
    P = make(pair(torch.device("cpu"), torch.float64, 12)[0])
    signal = torch.randn(12, *channels, generator=generator(0), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda signal: P @ signal, signal)
    assert torch.autograd.gradgradcheck(lambda signal: (P @ signal).square(), signal)


@pytest.mark.parametrize(
    ("edges", "weight", "options"),
    [
        (torch.tensor([[0, 1, 0], [1, 0, 1]]), None, {"directed": True}),
        (torch.tensor([[0, 0, 1, 1], [1, 1, 0, 0]]), None, {}),  # twice
        (torch.tensor([[0, 1], [1, 0]]), torch.ones(2), {}),
        (torch.tensor([[0, 1], [1, 0]]), None, {"batch": torch.tensor([0, 0])}),
    ],
    ids=["directed", "duplicates", "weights", "batch"],
)
def test_other_graphs_keep_their_values(edges, weight, options):
    A = adjacency(edges, weight, **options)
    assert A.has_values
    assert float(A.dense().sum()) == edges.shape[1]


def test_duplicates_in_one_range_of_rows_bring_all_values_back(monkeypatch):
    monkeypatch.setattr("lanczosnet.affinity.coalesce.ENTRIES_AT_A_TIME", 16)
    edges = torch.cat([edges_with_loops(), torch.tensor([[30, 31], [31, 30]]).repeat(1, 2)], 1)
    ours = adjacency(edges, num_nodes=40)
    theirs = adjacency(edges, torch.ones(edges.shape[1]), num_nodes=40)
    assert ours.has_values
    assert torch.equal(ours.values, theirs.values)


def test_ranges_of_rows_make_the_same_pattern(monkeypatch, device):
    whole = pair(device, torch.float32)[0]
    monkeypatch.setattr("lanczosnet.affinity.coalesce.ENTRIES_AT_A_TIME", 16)
    parts = pair(device, torch.float32)[0]
    assert isinstance(parts, PatternOperator)
    assert torch.equal(parts.dense(), whole.dense())
    assert torch.equal(parts.diagonal_position, whole.diagonal_position)


def test_an_edge_in_one_direction_is_refused():
    with pytest.raises(ValueError, match="of nodes 0 and 1 only one points to the other"):
        adjacency(torch.tensor([[0], [1]]))


def test_small_graphs_keep_their_values(monkeypatch):
    edges = random_edges(9)
    monkeypatch.setattr(conditions, "ENTRIES_WITHOUT_VALUES", edges.shape[1] + 9 + 1)
    assert adjacency(edges, num_nodes=9).has_values
    monkeypatch.setattr(conditions, "ENTRIES_WITHOUT_VALUES", edges.shape[1] + 9)
    assert not adjacency(edges, num_nodes=9).has_values


def stored_rows(num_nodes: int = 40) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    edges = random_edges(num_nodes - 3, seed=1)
    edges = edges[:, edges[0] != edges[1]]
    edges = edges[:, (edges[0] * num_nodes + edges[1]).argsort()]
    return torch.searchsorted(edges[0].contiguous(), torch.arange(num_nodes + 1)), edges[1], edges


def test_the_rows_of_a_folder_are_stored_without_values(dtype):
    pointer, column, edges = stored_rows()
    found = adjacency_of_rows(pointer, column, None, dtype)
    assert isinstance(found, PatternOperator)
    expected = adjacency(edges, num_nodes=40, dtype=dtype)
    assert torch.equal(found.dense(), expected.dense())
    assert found.dtype == dtype
    assert adjacency_of_rows(pointer, column, torch.ones(len(column)), dtype).has_values


def test_components_and_subgraphs_are_those_of_the_operator_with_values(device):
    ours, theirs = (normalized(A) for A in pair(device, torch.float64))
    found, expected = connected_components(ours), connected_components(theirs)
    assert torch.equal(found[0], expected[0])
    assert found[1] == expected[1] == 4
    node = (found[0] == 0).nonzero().squeeze(1)
    part = subgraph(ours, node)
    assert isinstance(part, PatternOperator)
    torch.testing.assert_close(part.dense(), subgraph(theirs, node).dense())
    loose = normalized(pair(device, torch.float64)[0], self_loops=False)
    torch.testing.assert_close(subgraph(loose, node).dense(), loose.dense()[node][:, node])


@pytest.mark.parametrize("search_steps", [None, 30])
@pytest.mark.parametrize("num_pairs", [5, 50])
def test_ritz_pairs_are_those_of_the_operator_with_values(num_pairs, search_steps, device):
    search_steps = None if num_pairs == 50 else search_steps
    ours, theirs = (normalized(A) for A in pair(device, torch.float64))
    found, expected = (component_ritz_pairs(S, num_pairs, search_steps=search_steps) for S in (ours, theirs))
    torch.testing.assert_close(found.values, expected.values)
    assert torch.equal(found.rank, expected.rank)


def test_ritz_pairs_of_large_components_need_no_values(monkeypatch):
    monkeypatch.setattr("lanczosnet.krylov.large_components.SMALL_GRAPH", 0)
    monkeypatch.setattr("lanczosnet.krylov.large_components.LARGE_COMPONENT", 20)
    monkeypatch.setenv("LANCZOSNET_BACKEND", "reference")  # as for larger graphs
    ours, theirs = (normalized(A) for A in pair(torch.device("cpu"), torch.float64))
    made, values = [], PatternOperator.values.fget
    monkeypatch.setattr(PatternOperator, "values", property(lambda S: made.append(S.num_nodes) or values(S)))
    found = component_ritz_pairs(ours, 5)
    assert not made
    torch.testing.assert_close(found.values, component_ritz_pairs(theirs, 5).values)


def test_lanczos_and_its_gradient_into_the_start_vector_are_the_same():
    ours, theirs = (normalized(A) for A in pair(torch.device("cpu"), torch.float64))
    vector = torch.rand(40, generator=generator(2), dtype=torch.float64)
    gradients = []
    for S in (ours, theirs):
        first = vector.clone().requires_grad_()
        found = lanczos(S, first, 6)
        (found.diagonal.sum() + found.off_diagonal.square().sum()).backward()
        gradients.append(first.grad)
    torch.testing.assert_close(*gradients)
    torch.testing.assert_close(lanczos(ours, None, 6).diagonal, lanczos(theirs, start.ones(theirs), 6).diagonal)


def test_a_network_computes_the_same_without_values(monkeypatch, dtype):
    edges = edges_with_loops(90)
    x = torch.randn(90, 4, generator=generator(3)).to(dtype)
    torch.manual_seed(0)
    network = LanczosNet(4, 8, 3, num_steps=5).to(dtype).eval()
    data = Data(x=x, edge_index=edges)
    assert not graph_inputs(data, network).adjacency.has_values
    found = network(data)
    found.square().sum().backward()
    gradients = [each.grad.clone() for each in network.parameters()]
    network.zero_grad()
    monkeypatch.setattr(conditions, "ENTRIES_WITHOUT_VALUES", 10**9)
    expected = network(data)
    expected.square().sum().backward()
    torch.testing.assert_close(found, expected, rtol=0, atol=100 * tolerance(dtype))
    torch.testing.assert_close(
        gradients,
        [each.grad for each in network.parameters()],
        rtol=1e-2 if dtype == torch.float32 else 1e-8,
        atol=1e-3,
    )


def test_half_precision_is_added_up_in_single():
    S = normalized(adjacency(edges_with_loops(), num_nodes=40))
    signal = torch.randn(40, 2, generator=generator(0)).bfloat16()
    found = S.to(torch.bfloat16) @ signal
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), S @ signal.float(), rtol=0.05, atol=0.05)


def test_an_operator_is_shared_by_copies_and_introduces_itself():
    S = normalized(adjacency(edges_with_loops(), num_nodes=40))
    assert copy.deepcopy(S) is S
    assert repr(S) == "PatternOperator(symmetric, shape=(40, 40), dtype=torch.float32, device=cpu)"


def test_a_graph_without_nodes_has_products():
    A = adjacency(torch.zeros(2, 0, dtype=torch.long), num_nodes=0)
    assert not A.has_values
    assert (A @ torch.zeros(0, 3)).shape == (0, 3)
    assert float(A.largest_entry()) == 0.0


class TestIndexTypes:
    """Columns as wide as the nodes need, row pointers as wide as the entries need."""

    @pytest.fixture
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As if int32 ended between the numbers of nodes and entries."""
        monkeypatch.setattr(sparse_operator, "INT32_MAX", 100)

    @pytest.fixture(params=[True, False], ids=["values", "no values"])
    def weight(self, request, few) -> torch.Tensor | None:
        return random_weights(edges_with_loops()).float() if request.param else None

    def test_sizes_choose_them(self, weight):
        A = adjacency(edges_with_loops(), weight, num_nodes=40)
        assert A.has_values == (weight is not None)
        assert (A.row_pointer.dtype, A.column.dtype) == (torch.int64, torch.int32)
        small = adjacency(random_edges(5), None if weight is None else torch.ones(random_edges(5).shape[1]))
        assert (small.row_pointer.dtype, small.column.dtype) == (torch.int32, torch.int32)
        large = adjacency(torch.tensor([[0, 120], [120, 0]]), None if weight is None else torch.ones(2))
        assert (large.row_pointer.dtype, large.column.dtype) == (torch.int64, torch.int64)

    def test_the_rows_of_a_folder_choose_them_too(self, weight):
        pointer, column, _ = stored_rows()
        A = adjacency_of_rows(pointer, column, None if weight is None else torch.ones(len(column)))
        assert (A.row_pointer.dtype, A.column.dtype) == (torch.int64, torch.int32)

    @pytest.mark.parametrize("channels", [(), (3,)])
    def test_products_and_gradients_are_those_of_the_dense_matrix(self, weight, channels):
        A = adjacency(edges_with_loops(), weight, num_nodes=40, dtype=torch.float64)
        S = random_walk(A)
        S = S.with_values(S.values.requires_grad_()) if weight is not None else S
        signal = torch.randn(40, *channels, generator=generator(0), dtype=torch.float64, requires_grad=True)
        torch.testing.assert_close(S @ signal, S.dense() @ signal)
        torch.testing.assert_close(S.T @ signal, S.dense().mT @ signal)
        leaves = [signal] if weight is None else [signal, S.values]
        found = torch.autograd.grad((S @ signal).pow(3).sum(), leaves)
        torch.testing.assert_close(found, torch.autograd.grad((S.dense() @ signal).pow(3).sum(), leaves))

    def test_components_and_ritz_pairs_are_the_same(self, weight, monkeypatch):
        S = normalized(adjacency(edges_with_loops(), weight, num_nodes=40, dtype=torch.float64))
        found, pairs = connected_components(S), component_ritz_pairs(S, 5)
        monkeypatch.setattr(sparse_operator, "INT32_MAX", 2**31 - 1)
        S = normalized(adjacency(edges_with_loops(), weight, num_nodes=40, dtype=torch.float64))
        assert S.row_pointer.dtype == torch.int32
        assert torch.equal(found[0], connected_components(S)[0])
        torch.testing.assert_close(pairs.values, component_ritz_pairs(S, 5).values)

    def test_bytes_per_entry_are_those_of_the_columns(self, weight):
        S = normalized(adjacency(edges_with_loops(), weight, num_nodes=40))
        values = 0 if weight is None else 4
        tensors = [each for each in vars(S).values() if torch.is_tensor(each) and each.layout == torch.strided]
        per_entry = sum(each.element_size() for each in tensors if len(each) == len(S.column))
        assert per_entry == 4 + values
