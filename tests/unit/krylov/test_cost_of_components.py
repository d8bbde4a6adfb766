"""What Ritz pairs cost follows nodes and entries, whatever the components: operations are counted, not seconds."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from graph_builders import generator
from lanczosnet.affinity import SparseOperator, adjacency, connected_components, normalized, sparse_operator
from lanczosnet.krylov import adjoint, component_ritz_pairs, lanczos, large_components, start
from lanczosnet.krylov.inner_product import SegmentInnerProduct
from operations import operations

NODES, DEGREE, PAIRS = 4000, 10, 20
READ_BY_INDEX = ("index", "index_select", "gather")
WRITE_BY_INDEX = ("index_put", "index_put_impl", "index_add", "index_copy", "scatter", "scatter_reduce")


def ring(first: int, end: int) -> torch.Tensor:
    """With random edges; connected."""
    node = torch.arange(first, end - 1)
    others = torch.randint(first, end, (2, (end - first) * DEGREE // 2), generator=generator(first))
    return torch.cat([torch.stack([node, node + 1]), others], 1)


def crumbs() -> torch.Tensor:
    first = torch.arange(NODES - NODES // 20, NODES - 1, 2)
    return torch.stack([first, first + 1])


SIX = {
    "one component": ring(0, NODES),
    "nodes alone": ring(0, NODES - 3),
    "many nodes alone": ring(0, NODES - NODES // 20),
    "tiny components": torch.cat([ring(0, NODES - NODES // 20), crumbs()], 1),
    "a hub": torch.cat([ring(0, NODES), torch.stack([torch.zeros(NODES, dtype=torch.long), torch.arange(NODES)])], 1),
    "two halves": torch.cat([ring(0, NODES // 2), ring(NODES // 2, NODES)], 1),
}


class Count(TorchDispatchMode):
    """Elements that go through indices."""

    def __init__(self) -> None:
        super().__init__()
        self.by_index = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__.strip("_")
        if name in READ_BY_INDEX:
            self.by_index += result.numel()
        elif name in WRITE_BY_INDEX:
            self.by_index += next(each for each in reversed(args) if isinstance(each, torch.Tensor)).numel()
        return result


@pytest.fixture
def multiplied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The entries of all products, once thousands of nodes are a large graph; segment sums of it are an error."""
    monkeypatch.setattr(large_components, "SMALL_GRAPH", 0)
    monkeypatch.setenv("LANCZOSNET_BACKEND", "reference")  # as for larger graphs
    entries, plain = [], sparse_operator.csr_product

    def product(matrix, signal, *others):
        entries.append(matrix.values().numel())
        return plain(matrix, signal, *others)

    def refuse(inner, basis, vector):
        raise AssertionError("a large component was projected segment by segment")

    monkeypatch.setattr(sparse_operator, "csr_product", product)
    monkeypatch.setattr(SegmentInnerProduct, "project", refuse)
    return entries


def operator_of(edges: torch.Tensor, *, shuffled: bool = False) -> SparseOperator:
    order = torch.randperm(NODES, generator=generator(9)) if shuffled else torch.arange(NODES)
    edges = order[edges]
    A = adjacency(torch.cat([edges, edges.flip(0)], 1), num_nodes=NODES, validate=False)
    assert isinstance(A, SparseOperator)
    return normalized(A)


@pytest.mark.parametrize("search_steps", [PAIRS, 100])
@pytest.mark.parametrize("edges", SIX.values(), ids=SIX)
def test_products_are_those_of_plain_lanczos(edges, search_steps, multiplied):
    """And a few more: a graph with crumbs measures the norm of its largest component, a search repeats lost steps."""
    S = operator_of(edges)
    components = connected_components(S)
    component_ritz_pairs(S, PAIRS, search_steps=search_steps, components=components)
    assert len(multiplied) > 0
    assert sum(multiplied) <= 1.06 * search_steps * len(S.column)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("edges", SIX.values(), ids=SIX)
def test_what_goes_through_indices_is_a_few_times_the_graph(edges, shuffled, multiplied):
    """Cutting components out reads every entry once where they are ranges of nodes, and four times elsewhere."""
    S = operator_of(edges, shuffled=shuffled)
    components = connected_components(S)
    with Count() as count:
        component_ritz_pairs(S, PAIRS, components=components)
    written = PAIRS * NODES
    assert count.by_index <= (4.2 if shuffled else 1.2) * len(S.column) + 1.3 * written


@pytest.mark.parametrize("edges", SIX.values(), ids=SIX)
def test_the_number_of_operations_does_not_follow_the_number_of_components(edges, multiplied):
    S = operator_of(edges)
    components = connected_components(S)
    with Every() as found:
        component_ritz_pairs(S, PAIRS, components=components)
    whole = operator_of(SIX["one component"])
    components = connected_components(whole)
    with Every() as one:
        component_ritz_pairs(whole, PAIRS, components=components)
    assert found.number <= 2.5 * one.number


# Beside the iteration: operations that `lanczos` does not have, and how often the host waits for a device.
MOST = {
    "one component": (40, 3),
    "nodes alone": (80, 8),
    "many nodes alone": (80, 8),
    "tiny components": (150, 16),
    "a hub": (40, 3),
    "two halves": (80, 6),
}
WAITS = ("_local_scalar_dense", "_unique2", "bincount", "nonzero", "masked_select", "equal")


@pytest.mark.parametrize(("name", "most"), MOST.items())
def test_pairs_take_few_operations_and_host_reads_beside_the_iteration(name, most, multiplied, monkeypatch):
    monkeypatch.setattr("lanczosnet.krylov.setup.SMALL_BASIS", 0)
    S = operator_of(SIX[name])
    components = connected_components(S)
    waits, plain = [], adjoint.orthonormal_iteration

    def unseen(*arguments):
        with _disable_current_modes():
            return plain(*arguments)

    def noted(method):
        return lambda tensor, *arguments: waits.append(method) or method(tensor, *arguments)

    monkeypatch.setattr(adjoint, "orthonormal_iteration", unseen)
    monkeypatch.setattr("lanczosnet.krylov.side_by_side.lanczos_iteration", adjoint.lanczos_iteration)
    known = operations(lambda: lanczos(S, start.ones(S), PAIRS))
    for method in (torch.Tensor.tolist, torch.Tensor.cpu):
        monkeypatch.setattr(torch.Tensor, method.__name__, noted(method))
    found = operations(lambda: component_ritz_pairs(S, PAIRS, components=components))
    assert found.total() - known.total() <= most[0]
    assert sum(found[name] for name in WAITS) + len(waits) <= most[1]


class Every(TorchDispatchMode):
    """How many operations there are."""

    number = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.number += 1
        return function(*args, **(kwargs or {}))
