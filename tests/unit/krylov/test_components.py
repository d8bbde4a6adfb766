"""Ritz pairs per connected component."""

import pytest
import torch

from graph_builders import (
    orthogonality_error,
    path_edges,
    ragged_operator,
    random_operator,
    random_vector,
    relative_error,
    single_operators,
    sparse_from_dense,
    tolerance,
)
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.krylov import component_ritz_pairs, lanczos, ritz, start
from real_graphs import planetoid

SIZES = (6, 1, 14, 3, 20, 5)


def disconnected(dtype, device):
    """Six components, the second an isolated node, in one graph without a batch vector."""
    ragged = ragged_operator(dtype, device, sizes=SIZES)
    return ragged, sparse_from_dense(ragged.dense())


def test_small_components_are_exact_and_large_ones_are_lanczos_on_their_own(dtype, device):
    ragged, whole = disconnected(dtype, device)
    pairs = component_ritz_pairs(whole, 6)
    assert pairs.values.shape == (6, 6)
    assert pairs.vectors.shape == (49, 6)
    assert pairs.rank.tolist() == [6, 1, 6, 3, 6, 5]
    for index, single in enumerate(single_operators(ragged)):
        nodes, rank = pairs.segment == index, int(pairs.rank[index])
        vectors, values = pairs.vectors[nodes], pairs.values[index]
        assert orthogonality_error(vectors, rank) < tolerance(dtype)
        assert not values[rank:].any()
        if SIZES[index] <= 6:
            torch.testing.assert_close((vectors * values) @ vectors.mT, single.dense(), atol=tolerance(dtype), rtol=0)
        else:
            alone = ritz(lanczos(single, None, 6))
            torch.testing.assert_close(values, alone.values, atol=tolerance(dtype), rtol=0)
            torch.testing.assert_close(vectors.abs(), alone.vectors.abs(), atol=tolerance(dtype, 1024), rtol=0)


def test_lanczos_can_be_run_on_small_components_too(dtype, device):
    ragged, whole = disconnected(dtype, device)
    pairs = component_ritz_pairs(whole, 6, exact_up_to=0)
    for index, single in enumerate(single_operators(ragged)):
        alone = ritz(lanczos(single, None, 6))
        assert int(pairs.rank[index]) == int(alone.rank)
        torch.testing.assert_close(pairs.values[index], alone.values, atol=tolerance(dtype), rtol=0)
    some = component_ritz_pairs(whole, 6, exact_up_to=3)
    assert not some.values[3].equal(pairs.values[3])  # three nodes: decomposed
    torch.testing.assert_close(some.values[5], pairs.values[5])  # five: not


@pytest.mark.parametrize("bound", [-1, 7])
def test_no_more_pairs_are_exact_than_there_is_room_for(bound):
    with pytest.raises(ValueError, match=f"exact_up_to is {bound}, but there is room for 0 to 6 pairs"):
        component_ritz_pairs(disconnected(torch.float64, "cpu")[1], 6, exact_up_to=bound)


def test_more_steps_find_better_pairs_and_as_many(dtype, device):
    ragged, whole = disconnected(dtype, device)
    pairs, found = component_ritz_pairs(whole, 6), component_ritz_pairs(whole, 6, search_steps=20)
    assert found.values.shape == (6, 6)
    assert found.rank.tolist() == pairs.rank.tolist()
    for index, single in enumerate(single_operators(ragged)):
        exact = torch.linalg.eigvalsh(single.dense())
        exact = exact[exact.abs().argsort(descending=True)[:6]].sort(descending=True).values
        torch.testing.assert_close(found.values[index, : len(exact)], exact, atol=tolerance(dtype, 1024), rtol=0)
    assert not torch.allclose(pairs.values[4], found.values[4], atol=1e-3)


def test_fewer_steps_than_pairs_are_refused():
    with pytest.raises(ValueError, match="search_steps is 5, but 6 pairs need at least as many Lanczos steps"):
        component_ritz_pairs(disconnected(torch.float64, "cpu")[1], 6, search_steps=5)


def test_components_no_larger_than_the_number_of_pairs_reproduce_s(dtype, device):
    _, whole = disconnected(dtype, device)
    pairs = component_ritz_pairs(whole, 20)
    x = random_vector(whole)
    coefficients = torch.zeros_like(pairs.values).index_add(0, pairs.segment, pairs.vectors * x[:, None])
    product = (pairs.vectors * (pairs.values * coefficients)[pairs.segment]).sum(-1)
    torch.testing.assert_close(product, whole @ x, atol=tolerance(dtype), rtol=0)


def test_a_start_vector_is_honoured(dtype, device):
    whole = random_operator(30, dtype, device)
    vector = random_vector(whole)
    pairs = component_ritz_pairs(whole, 5, vector)
    torch.testing.assert_close(pairs.values[0], ritz(lanczos(whole, vector, 5)).values, atol=tolerance(dtype), rtol=0)
    assert not torch.allclose(pairs.values, component_ritz_pairs(whole, 5).values)


def test_isolated_nodes_are_components_of_their_own(dtype, device):
    no_edges = torch.zeros(2, 0, dtype=torch.long, device=device)
    pairs = component_ritz_pairs(normalized(adjacency(no_edges, dtype=dtype, num_nodes=3)), 2)
    assert pairs.values.tolist() == [[1, 0]] * 3
    assert pairs.vectors.abs().tolist() == [[1, 0]] * 3
    assert pairs.rank.tolist() == [1, 1, 1]


def test_an_edge_of_weight_zero_joins_no_components(dtype, device):
    weights = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0], dtype=dtype, device=device)
    S = normalized(adjacency(path_edges(4).to(device), weights))
    for num_pairs in (1, 2, 3):
        pairs = component_ritz_pairs(S, num_pairs)
        assert pairs.segment.tolist() == [0, 0, 1, 1]
        torch.testing.assert_close(pairs.values[:, 0].tolist(), [1.0, 1.0], atol=tolerance(dtype), rtol=0)


def test_the_empty_graph_has_no_pairs(dtype, device):
    pairs = component_ritz_pairs(adjacency(torch.zeros(2, 0, dtype=torch.long, device=device), dtype=dtype), 2)
    assert pairs.values.shape == pairs.vectors.shape == (0, 2)


def test_no_pairs_are_refused():
    with pytest.raises(ValueError, match="num_pairs must be at least 1, but is 0"):
        component_ritz_pairs(random_operator(3, torch.float32, torch.device("cpu")), 0)


def test_pairs_are_found_outside_the_graph_of_autograd(device):
    S = random_operator(9, torch.float64, device)
    pairs = component_ritz_pairs(S.with_values(S.values.clone().requires_grad_()), 4)
    assert not pairs.vectors.requires_grad


def diffusion_error(S, X, pairs):
    """Of V R^30 V^T X against S^30 X."""
    exact, result = X, torch.zeros_like(X)
    for _ in range(30):
        exact = S @ exact
    segment = torch.zeros(len(X), dtype=torch.long, device=X.device) if pairs.segment is None else pairs.segment
    for value, vector in zip(pairs.values.reshape(-1, 20).unbind(1), pairs.vectors.unbind(1), strict=True):
        coefficients = X.new_zeros(len(value), X.shape[1]).index_add(0, segment, vector[:, None] * X)
        result += vector[:, None] * (value[:, None] ** 30 * coefficients)[segment]
    return relative_error(result, exact)


@pytest.mark.data
@pytest.mark.slow
def test_on_cora_one_krylov_space_is_blind_for_what_components_diffuse(real_data, device):
    X, edges = (part.to(device) for part in planetoid(real_data, "cora"))
    S = normalized(adjacency(edges, num_nodes=len(X)))
    blind = ritz(lanczos(S, start.random(S, torch.Generator().manual_seed(0)), 20))
    assert diffusion_error(S, X, blind) > 0.9


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "errors"),
    [("cora", (0.348, 0.288, 0.229)), ("citeseer", (0.308, 0.281, 0.251)), ("pubmed", (0.400, 0.366, 0.345))],
)
def test_the_leading_pairs_of_more_steps_diffuse_better(real_data, device, name, errors):
    """As docs/numerics.md says."""
    X, edges = (part.to(device) for part in planetoid(real_data, name))
    S = normalized(adjacency(edges, num_nodes=len(X)))
    for steps, error in zip((20, 60, 120), errors, strict=True):
        found = diffusion_error(S, X, component_ritz_pairs(S, 20, search_steps=steps))
        assert found == pytest.approx(error, abs=2e-3)


def test_a_start_vector_that_misses_a_component_is_refused(device):
    _, whole = disconnected(torch.float64, device)
    vector = torch.ones(whole.num_nodes, dtype=torch.float64, device=device)
    vector[7:21] = 0.0
    with pytest.raises(ValueError, match="zero on the whole component of node 7"):
        component_ritz_pairs(whole, 6, vector)
    component_ritz_pairs(whole, 14, vector)  # all of whose pairs are found without it
    with pytest.raises(ValueError, match=r"must have shape \(49,\), but has \(4,\)"):
        component_ritz_pairs(whole, 6, vector[:4])


def test_components_of_a_dense_operator_are_refused():
    with pytest.raises(TypeError, match="components are those of a sparse operator, not of a DenseOperator"):
        component_ritz_pairs(normalized(adjacency(torch.eye(5))), 2)
