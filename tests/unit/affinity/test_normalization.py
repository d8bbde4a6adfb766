"""S, P and the diffusion kernels against their formulas, on graphs with every kind of node."""

import pytest
import torch

from graph_builders import path_edges, ragged_operator, random_edges, random_weights, tolerance
from lanczosnet.affinity import adjacency, alpha_normalized, laplacian, normalized, random_walk


def weighted_graph(dtype, device, num_nodes=10):
    """Ten nodes, the last two without an edge."""
    edges = random_edges(num_nodes - 2, seed=5)
    weights = random_weights(edges, seed=5, dtype=dtype)
    return adjacency(edges.to(device), weights.to(device), num_nodes=num_nodes)


def inverse_power(degree, power):
    return torch.where(degree > 0, degree.clamp(min=1e-30) ** -power, torch.zeros_like(degree))


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("storage", ["sparse", "dense"])
def test_s_is_the_symmetrically_normalised_adjacency(self_loops, storage, dtype, device):
    graph = weighted_graph(dtype, device)
    graph = graph if storage == "sparse" else adjacency(graph.dense())
    A = graph.dense() + self_loops * torch.eye(10, dtype=dtype, device=device)
    scale = inverse_power(A.sum(1), 0.5)
    S = normalized(graph, self_loops=self_loops)
    assert S.symmetric
    torch.testing.assert_close(S.dense(), scale[:, None] * A * scale)


def test_self_loops_are_added_unless_refused(dtype, device):
    graph = adjacency(path_edges(2).to(device), dtype=dtype)
    torch.testing.assert_close(normalized(graph).dense(), torch.full((2, 2), 0.5, dtype=dtype, device=device))
    assert normalized(graph, self_loops=False).dense().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("self_loops", [True, False])
def test_the_spectrum_of_s_lies_between_minus_one_and_one(self_loops, dtype, device):
    eigenvalues = torch.linalg.eigvalsh(normalized(weighted_graph(dtype, device), self_loops=self_loops).dense())
    assert eigenvalues.max() <= 1 + tolerance(dtype)
    assert eigenvalues.min() >= -1 - tolerance(dtype)
    assert eigenvalues.max() >= 1 - tolerance(dtype)


def test_an_isolated_node_keeps_to_itself(dtype, device):
    graph = weighted_graph(dtype, device)
    with_loops = normalized(graph).dense()
    assert with_loops[-1, -1] == 1
    assert with_loops[-1].sum() == 1
    for operator in (normalized(graph, self_loops=False), random_walk(graph), alpha_normalized(graph, 1.0)):
        assert not operator.dense()[-1].any()
    assert laplacian(graph, "symmetric").dense()[-1, -1] == 1
    assert laplacian(graph, "combinatorial").dense()[-1, -1] == 0


@pytest.mark.parametrize("num_nodes", [0, 1])
def test_graphs_of_no_node_and_of_one_are_normalised(num_nodes, dtype, device):
    no_edges = torch.zeros(2, 0, dtype=torch.long, device=device)
    graph = adjacency(no_edges, dtype=dtype, num_nodes=num_nodes)
    assert normalized(graph).dense().tolist() == [[1.0]] * num_nodes
    assert normalized(graph, self_loops=False).dense().tolist() == [[0.0]] * num_nodes
    assert random_walk(graph).shape == laplacian(graph).shape == alpha_normalized(graph, 0.5).shape


def test_the_random_walk_leaves_every_connected_node_with_probability_one(dtype, device):
    graph = weighted_graph(dtype, device)
    P = random_walk(graph)
    assert not P.symmetric
    torch.testing.assert_close(P.dense(), inverse_power(graph.degree(), 1.0)[:, None] * graph.dense())
    torch.testing.assert_close(P.degree()[:8], torch.ones(8, dtype=dtype, device=device))


def test_the_random_walk_follows_the_arrows_of_a_directed_graph(dtype, device):
    graph = adjacency(torch.tensor([[0, 0], [1, 2]], device=device), dtype=dtype, num_nodes=3, directed=True)
    assert random_walk(graph).dense().tolist() == [[0, 0.5, 0.5], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_alpha_normalisation_divides_the_density_out(alpha, dtype, device):
    graph = weighted_graph(dtype, device)
    scale = inverse_power(graph.degree(), alpha)
    kernel = alpha_normalized(graph, alpha)
    torch.testing.assert_close(kernel.dense(), scale[:, None] * graph.dense() * scale)
    assert kernel.symmetric
    assert normalized(kernel, self_loops=False).symmetric
    if alpha == 0.0:
        torch.testing.assert_close(kernel.dense(), graph.dense())


@pytest.mark.parametrize("kind", ["combinatorial", "random_walk", "symmetric"])
def test_padding_stays_zero_under_every_normalisation(kind, dtype, device):
    padded = ragged_operator(dtype, device).padded()
    graph = adjacency(padded.dense(), mask=padded.mask)
    for operator in (normalized(graph), laplacian(graph, kind), random_walk(graph), alpha_normalized(graph, 0.5)):
        assert operator.mask is padded.mask
        assert not operator.dense()[~padded.mask].any()
        assert not operator.dense().mT[~padded.mask].any()


@pytest.mark.parametrize("normalise", [normalized, laplacian, random_walk, lambda a: alpha_normalized(a, 0.5)])
def test_a_padded_batch_is_normalised_like_ragged_graphs(normalise, dtype, device):
    ragged = ragged_operator(dtype, device)
    torch.testing.assert_close(normalise(ragged).padded().dense(), normalise(ragged.padded()).dense())


def test_isolated_nodes_have_finite_gradients(dtype, device):
    weights = torch.zeros(2, dtype=dtype, device=device, requires_grad=True)
    for normalise in (normalized, laplacian, random_walk, lambda a: alpha_normalized(a, 0.5)):
        (
            normalise(adjacency(path_edges(2).to(device), weights)) @ torch.ones(2, dtype=dtype, device=device)
        ).sum().backward()
        assert torch.isfinite(weights.grad).all()


NEGATIVE = adjacency(path_edges(3), torch.tensor([1.0, -4.0, 1.0, -4.0]))


@pytest.mark.parametrize(
    "normalise",
    [lambda a: normalized(a, self_loops=False), random_walk, laplacian, lambda a: alpha_normalized(a, 0.5)],
    ids=["normalized", "random_walk", "laplacian", "alpha"],
)
def test_a_negative_degree_says_to_use_non_negative_weights(normalise):
    with pytest.raises(ValueError, match=r"node 1 has the negative degree -3, .* use non-negative weights"):
        normalise(NEGATIVE)


def test_a_negative_degree_in_a_batch_names_graph_and_node():
    with pytest.raises(ValueError, match=r"node \[0, 1\] has the negative degree"):
        random_walk(NEGATIVE.padded())


def test_the_degree_check_can_be_turned_off():
    assert not normalized(NEGATIVE, self_loops=False, validate=False).dense().any()
    assert random_walk(NEGATIVE, validate=False).shape == (3, 3)


def test_a_directed_graph_has_no_symmetric_normalisation():
    graph = adjacency(torch.tensor([[0], [1]]), directed=True)
    for normalise in (normalized, laplacian, lambda a: alpha_normalized(a, 0.5)):
        with pytest.raises(ValueError, match=r"needs a symmetric adjacency: .*to_undirected.*or use random_walk"):
            normalise(graph)


def test_an_unknown_laplacian_prints_the_known_ones():
    with pytest.raises(ValueError, match="'normed': choose 'combinatorial', 'random_walk' or 'symmetric'"):
        laplacian(NEGATIVE, "normed")


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_alpha_lies_between_zero_and_one(alpha):
    with pytest.raises(ValueError, match=r"alpha must lie in \[0, 1\]"):
        alpha_normalized(NEGATIVE, alpha)


def test_negative_weights_are_refused_though_no_degree_is(device):
    edges, weights = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]], device=device), torch.tensor([-0.5, -0.5, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"the weight -0.5 is negative.*absolute values"):
        normalized(adjacency(edges, weights.to(device)))
