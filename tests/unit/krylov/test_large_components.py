"""Large components are iterated side by side as ranges; what they find is what is found with segment sums."""

import pytest
import torch

from graph_builders import both_ways, orthogonality_error, path_edges, random_edges, random_vector, tolerance
from lanczosnet.affinity import SparseOperator, adjacency, connected_components, normalized
from lanczosnet.krylov import component_ritz_pairs, large_components, side_by_side, small_components, start


@pytest.fixture
def one_by_one(monkeypatch):
    """Components of ten nodes are large, in every graph."""

    def choose(is_chosen=True):
        monkeypatch.setattr(large_components, "SMALL_GRAPH", 0 if is_chosen else 2**15)
        monkeypatch.setattr(large_components, "LARGE_COMPONENT", 10)

    return choose


def graph_of(sizes, dtype, device, weights=None):
    """Connected random graphs beside each other, their nodes shuffled."""
    parts, first = [], 0
    for index, size in enumerate(sizes):
        edges = torch.cat([random_edges(size, index), path_edges(size)], 1) if size > 1 else path_edges(1)
        parts.append(edges + first)
        first += size
    edges = torch.cat(parts, 1)
    weight = torch.ones(edges.shape[1], dtype=torch.float64)
    if weights is not None:
        weight = torch.cat([torch.full((part.shape[1],), w) for part, w in zip(parts, weights, strict=True)]).double()
    order = torch.randperm(first, generator=torch.Generator().manual_seed(7))
    return adjacency(order[edges].to(device), weight.to(device), dtype=dtype, num_nodes=first)


GRAPHS = {
    "one component": (90,),
    "most, and crumbs": (90, 1, 2, 3, 4, 9, 7, 1),
    "two of a size": (40, 40),
    "many": (30, 12, 1, 25, 5, 9, 14, 2, 2, 40),
}


def reconstruction(pairs):
    """V R V^T, which does not depend on signs."""
    dense = pairs.vectors.double()
    total = dense.new_zeros(len(dense), len(dense))
    for index, value in enumerate(pairs.values.double()):
        vectors = dense * (pairs.segment == index).unsqueeze(1)
        total += (vectors * value) @ vectors.mT
    return total


@pytest.mark.parametrize("search_steps", [None, 9])
@pytest.mark.parametrize("sizes", GRAPHS.values(), ids=GRAPHS)
def test_the_pairs_are_those_found_side_by_side(sizes, search_steps, dtype, device, one_by_one):
    S = normalized(graph_of(sizes, dtype, device))
    vector = random_vector(S)
    one_by_one(False)
    expected = component_ritz_pairs(S, 6, vector, search_steps=search_steps)
    one_by_one()
    pairs = component_ritz_pairs(S, 6, vector, search_steps=search_steps)
    assert pairs.values.dtype == pairs.vectors.dtype == dtype
    assert pairs.rank.tolist() == expected.rank.tolist()
    assert pairs.segment.equal(expected.segment)
    torch.testing.assert_close(pairs.values, expected.values, atol=tolerance(dtype), rtol=0)
    torch.testing.assert_close(reconstruction(pairs), reconstruction(expected), atol=tolerance(dtype, 1024), rtol=0)


@pytest.mark.parametrize("sizes", GRAPHS.values(), ids=GRAPHS)
def test_enough_pairs_reproduce_s(sizes, dtype, device, one_by_one):
    one_by_one()
    S = normalized(graph_of(sizes, dtype, device))
    pairs = component_ritz_pairs(S, 95, random_vector(S), exact_up_to=8)
    torch.testing.assert_close(reconstruction(pairs), S.dense().double(), atol=tolerance(dtype, 1024), rtol=0)
    assert pairs.rank.tolist() == pairs.segment.bincount().tolist()


def test_a_heavy_component_does_not_end_the_iteration_of_a_light_one(dtype, device, one_by_one):
    one_by_one()
    A = graph_of((60, 12, 3), dtype, device, weights=(1e-7, 1.0, 1e7))
    alone = component_ritz_pairs(graph_of((60,), dtype, device, weights=(1e-7,)), 5, exact_up_to=0)
    pairs = component_ritz_pairs(A, 5, exact_up_to=0)
    light = int(pairs.segment.bincount().argmax())
    assert pairs.rank.sort().values.tolist()[-2:] == [5, 5]
    torch.testing.assert_close(pairs.values[light], alone.values[0], rtol=tolerance(dtype, 1024), atol=0)


def in_a_row(sizes, dtype, device):
    """Components one after the other, with single nodes among the first one's."""
    parts, first = [], 0
    for index, size in enumerate(sizes):
        parts.append(torch.cat([random_edges(size, index), path_edges(size)], 1) + first)
        first += size
    edges = torch.cat(parts, 1)
    edges = edges + (edges >= 3) + (edges >= 7)  # nodes 3 and 8 are alone
    return normalized(adjacency(edges.to(device), dtype=dtype, num_nodes=first + 2))


def cut_out(S, num_pairs):
    """The nodes of the operators that are iterated; None for the graph as it is."""
    segment, count = connected_components(S)
    size = segment.bincount(minlength=count)
    components = side_by_side.Components(segment, size, (size >= 10).nonzero().squeeze(1))
    ranges = side_by_side.ranges_of(S, start.ones(S), components, num_pairs)
    return [(each.node is not None and len(each.node), each.sizes) for each in ranges]


def test_components_in_a_row_are_not_cut_out(dtype, device, one_by_one, monkeypatch):
    monkeypatch.setattr("lanczosnet.krylov.setup.SMALL_BASIS", 0)
    S = in_a_row((30, 40, 25), dtype, device)
    assert cut_out(S, 5) == [(False, [32, 40, 25])]
    vector = random_vector(S)
    one_by_one(False)
    expected = component_ritz_pairs(S, 5, vector)
    one_by_one()
    pairs = component_ritz_pairs(S, 5, vector)
    assert pairs.rank.tolist() == expected.rank.tolist()
    torch.testing.assert_close(pairs.values, expected.values, atol=tolerance(dtype), rtol=0)
    torch.testing.assert_close(reconstruction(pairs), reconstruction(expected), atol=tolerance(dtype, 1024), rtol=0)
    assert orthogonality_error(pairs.vectors[:, :5].double() * (pairs.segment == 0)[:, None]) < tolerance(dtype)


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_pairs_of_two_large_components_are_orthonormal(is_shuffled, device):
    S = (
        normalized(graph_of((21_000, 20_000, 1), torch.float32, device))
        if is_shuffled
        else in_a_row((21_000, 20_000), torch.float32, device)
    )
    pairs = component_ritz_pairs(S, 20)
    image = S @ pairs.vectors
    for label in pairs.segment.bincount().topk(2).indices.tolist():
        own = (pairs.segment == label).unsqueeze(1)
        V = (pairs.vectors * own).double()
        assert orthogonality_error(V) < 1e-6
        torch.testing.assert_close((V * image).sum(0), pairs.values[label].double(), atol=1e-5, rtol=0)


def test_what_is_cut_out(device, monkeypatch):
    shuffled = graph_of((40, 40), torch.float32, device)
    most = graph_of((90, 12, 15, 1), torch.float32, device)
    monkeypatch.setattr("lanczosnet.krylov.setup.SMALL_BASIS", 0)
    assert cut_out(shuffled, 5) == [(80, [40, 40])]
    found = cut_out(most, 5)
    assert found[0] == (False, [118])
    assert [nodes for nodes, _ in found[1:]] == [27]
    monkeypatch.setattr("lanczosnet.krylov.setup.SMALL_BASIS", 13 * 5)  # small ones are iterated in float64
    assert cut_out(most, 5) == [(False, [118]), (15, [15]), (12, [12])]


@pytest.mark.parametrize("num_pairs", [3, 12])
def test_single_nodes_have_their_diagonal_entry(num_pairs, dtype, device, one_by_one):
    one_by_one()
    A = graph_of((40, 1, 1, 2), dtype, device)
    S = A.plus_diagonal(torch.arange(A.num_nodes, dtype=dtype, device=device))
    pairs = component_ritz_pairs(S, num_pairs)
    size = pairs.segment.bincount()
    for node in (size[pairs.segment] == 1).nonzero().flatten().tolist():
        label = int(pairs.segment[node])
        assert int(pairs.rank[label]) == 1
        assert pairs.values[label].tolist() == [node, *[0.0] * (num_pairs - 1)]
        assert pairs.vectors[node].tolist() == [1.0, *[0.0] * (num_pairs - 1)]


def test_known_components_are_not_found_again(device, monkeypatch):
    S = normalized(graph_of((20, 3), torch.float64, device))
    known = connected_components(S)
    expected = component_ritz_pairs(S, 4)
    monkeypatch.setattr("lanczosnet.krylov.components.connected_components", None)
    found = component_ritz_pairs(S, 4, components=known)
    torch.testing.assert_close(found.values, expected.values, atol=1e-12, rtol=0)  # a GPU adds up in any order


def test_an_operator_that_is_not_symmetric_is_refused(device, one_by_one):
    one_by_one()
    edges = both_ways(path_edges(30)[:, ::2]).to(device)
    A = adjacency(edges, torch.arange(edges.shape[1], dtype=torch.float64, device=device) + 1, directed=True)
    with pytest.raises(ValueError, match="lanczos needs a symmetric operator"):
        component_ritz_pairs(A, 4)


@pytest.mark.parametrize(
    ("sizes", "num_pairs", "chosen"),
    [
        ((19717,), 20, []),  # Pubmed
        ((2485, 120, 1), 60, []),
        ([16] * 22_000, 20, []),  # QM8
        ((40_000,), 20, [0]),
        ((40_000, 5000, 1023), 20, [0, 1]),
        ((5268,), 100, [0]),
        ((34,), 100, []),
    ],
)
def test_which_components_are_large(sizes, num_pairs, chosen):
    """The graphs of the paper's tables are iterated as they were, bit by bit."""
    is_large = large_components.large_components(torch.tensor(sizes), sum(sizes), num_pairs)
    assert is_large.nonzero().flatten().tolist() == chosen


def test_hundreds_of_pairs_of_a_graph_of_thousands_of_nodes(device):
    S = normalized(graph_of((3000, 5), torch.float32, device))
    pairs = component_ritz_pairs(S, 200)
    assert pairs.vectors.shape == (3005, 200)
    assert (
        orthogonality_error((pairs.vectors * (pairs.segment == pairs.segment.mode().values)[:, None]).double()) < 1e-5
    )


def test_memory_is_that_of_the_pairs_not_of_the_search(device):
    """No tensor of a search is larger than twice the pairs and the vectors at work."""
    S = normalized(graph_of((40_000,), torch.float32, device))
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            nonlocal largest
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and result.layout == torch.strided:
                largest = max(largest, result.untyped_storage().nbytes())
            return result

    with Watch():
        pairs = component_ritz_pairs(S, 10, search_steps=120, components=(S.row_pointer[:-1].long() * 0, 1))
    assert largest <= (10 + 20 + 1) * 40_000 * 4
    assert pairs.vectors.untyped_storage().nbytes() == 10 * 40_000 * 4


def test_a_large_component_is_cut_out_as_it_is(device):
    S = normalized(graph_of((9, 12, 4), torch.float64, device))
    segment, _ = connected_components(S)
    for label in range(3):
        node = (segment == label).nonzero().squeeze(1)
        part = large_components.subgraph(S, node)
        assert isinstance(part, SparseOperator)
        assert part.dense().equal(S.dense()[node][:, node])
        assert (
            part.plus_diagonal(torch.ones(len(node), dtype=S.dtype, device=device))
            .dense()
            .equal(part.dense() + torch.eye(len(node), dtype=S.dtype, device=device))
        )


def test_small_graphs_are_decomposed_by_the_same_routine_on_every_device(monkeypatch):
    """Results of the tables keep their bits: another routine is for large graphs alone."""

    def refuse(matrix):
        raise AssertionError("a small graph went through an implementation that depends on the device")

    monkeypatch.setattr(small_components, "sorted_eigen", refuse)
    S = normalized(graph_of(GRAPHS["many"], torch.float32, "cpu"))
    assert component_ritz_pairs(S, 5).rank.tolist().count(5) > 3
    monkeypatch.setattr(large_components, "SMALL_GRAPH", 0)
    monkeypatch.setattr(large_components, "LARGE_COMPONENT", 10)
    with pytest.raises(AssertionError, match="depends on the device"):
        component_ritz_pairs(S, 5)


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 5000])
def test_the_running_maximum_goes_over_rows(count):
    values = torch.randint(-1, 1000, (count,), generator=torch.Generator().manual_seed(count))
    assert side_by_side._running_maximum(values).equal(values.cummax(0).values)
