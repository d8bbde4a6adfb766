"""The number of Ritz pairs that a graph's features need."""

import pytest
import torch

from graph_builders import generator, path_edges, random_operator, relative_error
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.krylov import auto, auto_ritz_pairs, component_ritz_pairs


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch):
    """Components of fifty nodes grow on their own."""
    monkeypatch.setattr(auto, "LARGE_COMPONENT", 50)


def paths(lengths, dtype, device):
    edges, first = [], 0
    for length in lengths:
        edges.append(path_edges(length) + first)
        first += length
    return normalized(adjacency(torch.cat(edges, 1).to(device), dtype=dtype, num_nodes=first))


def features(S, channels):
    return torch.rand(S.num_nodes, channels, generator=generator(3), dtype=torch.float64).to(S.device, S.dtype)


def error_of(S, X, pairs, scale):
    exact, found = X, torch.zeros_like(X)
    for _ in range(scale):
        exact = S @ exact
    for value, vector in zip(pairs.values.unbind(1), pairs.vectors.unbind(1), strict=True):
        along = X.new_zeros(len(value), X.shape[1]).index_add(0, pairs.segment, vector[:, None] * X)
        found += vector[:, None] * (value[:, None] ** scale * along)[pairs.segment]
    return relative_error(found, exact)


@pytest.mark.parametrize("lengths", [(600,), (600, 1, 3, 8), (200, 200, 30), (30, 25, 45, 2)])
def test_the_error_is_that_of_the_pairs_returned(lengths, dtype, device):
    S = paths(lengths, dtype, device)
    X = features(S, 4)
    for tolerance, budget in ((0.2, 400), (0.02, 400), (1e-6, 25)):
        found = auto_ritz_pairs(S, X, tolerance=tolerance, budget=budget, scale=20)
        assert found.pairs.vectors.shape == (S.num_nodes, found.num_pairs)
        assert found.error == pytest.approx(error_of(S, X, found.pairs, 20), abs=2e-3)
        assert found.captured == pytest.approx(1 - found.error**2)
        assert found.num_pairs <= budget
        if found.reason == "tolerance":
            assert found.error <= tolerance


def test_k_grows_with_what_is_asked_for(dtype, device):
    S = paths((2000,), dtype, device)
    X = features(S, 1)
    loose, tight = (auto_ritz_pairs(S, X, scale=2000, start=X[:, 0], tolerance=each) for each in (0.1, 0.005))
    assert (loose.reason, tight.reason) == ("tolerance", "tolerance")
    assert loose.num_pairs < tight.num_pairs
    budget = auto_ritz_pairs(S, features(S, 3), tolerance=1e-3, budget=70)
    assert (budget.num_pairs, budget.reason) == (70, "budget")


def test_longer_scales_need_fewer_pairs_from_a_start_among_the_features(device):
    S = paths((2000,), torch.float64, device)
    X = features(S, 1)
    few, many = (auto_ritz_pairs(S, X, start=X[:, 0], scale=scale, tolerance=0.05) for scale in (400, 2))
    assert few.num_pairs <= many.num_pairs
    assert few.reason == many.reason == "tolerance"


def test_an_exhausted_space_says_so(device):
    """From a start that is even, odd features are out of reach."""
    S = paths((61,), torch.float64, device)
    odd = torch.linspace(-1, 1, 61, dtype=torch.float64, device=device)
    found = auto_ritz_pairs(S, odd, tolerance=0.01)
    assert found.reason == "exhausted"
    assert found.error == pytest.approx(1.0)
    assert found.captured == pytest.approx(0.0, abs=1e-9)


def test_the_pairs_are_those_of_so_many_steps(dtype, device):
    S = paths((600, 4), dtype, device)
    found = auto_ritz_pairs(S, features(S, 2), tolerance=0.3)
    plain = component_ritz_pairs(S, found.num_pairs)
    torch.testing.assert_close(found.pairs.values, plain.values, atol=1e-4, rtol=0)
    assert found.pairs.rank.equal(plain.rank)


def test_growing_takes_no_step_twice(device, monkeypatch):
    S = paths((2000,), torch.float64, device)
    products = []
    plain = type(S).product
    monkeypatch.setattr(type(S), "product", lambda self, x: products.append(x.dim()) or plain(self, x))
    found = auto_ritz_pairs(S, features(S, 3), tolerance=1e-3, budget=200, scale=7)
    assert found.num_pairs == 200
    assert products.count(2) == 7
    assert products.count(1) <= 1.1 * 200


def test_many_features_are_mixed_and_the_result_repeats(device):
    S = random_operator(80, torch.float64, device)
    X = features(S, 300)
    first, second = (auto_ritz_pairs(S, X, tolerance=0.3) for _ in range(2))
    exact = {"atol": 0, "rtol": 0} if device.type == "cpu" else {"atol": 1e-9, "rtol": 1e-9}
    assert (first.num_pairs, first.reason) == (second.num_pairs, second.reason)
    assert first.error == pytest.approx(second.error, rel=exact["rtol"], abs=exact["atol"])
    torch.testing.assert_close(first.pairs.vectors, second.pairs.vectors, **exact)


def test_features_that_are_zero_need_nothing(device):
    S = paths((100,), torch.float64, device)
    found = auto_ritz_pairs(S, torch.zeros(100, dtype=torch.float64, device=device))
    assert (found.num_pairs, found.error, found.reason) == (20, 0.0, "tolerance")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"signal": torch.ones(4)}, r"signal must have shape \[9\] or \[9, channel\], but has \(4,\)"),
        ({"scale": 0}, "scale and budget must be at least 1, but are 0 and 400"),
        ({"budget": 0}, "scale and budget must be at least 1, but are 30 and 0"),
        ({"tolerance": 0.0}, "tolerance must be positive, but is 0.0"),
    ],
)
def test_impossible_requests_are_refused(options, message):
    S = random_operator(9, torch.float64, torch.device("cpu"))
    with pytest.raises(ValueError, match=message):
        auto_ritz_pairs(S, **{"signal": torch.ones(9), **options})
