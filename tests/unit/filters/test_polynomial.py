import pytest
import torch
from torch_geometric.nn import ChebConv

from graph_builders import generator, random_edges, random_operator, tolerance
from lanczosnet.affinity import adjacency, laplacian
from lanczosnet.filters import chebyshev_sum, chebyshev_terms, power_filter, power_terms
from lanczosnet.filters.polynomial import krylov_filter


@pytest.mark.parametrize("out_channels", [2, 5], ids=["narrower output", "wider output"])
def test_horner_and_the_sum_of_powers_agree_with_the_dense_polynomial(dtype, device, out_channels) -> None:
    S = random_operator(10, dtype, device)
    x = torch.randn(10, 3, generator=generator(1)).to(device, dtype)
    weights = torch.randn(3, 3, out_channels, generator=generator(2)).to(device, dtype)
    scales = [4, 0, 1]
    expected = sum(torch.linalg.matrix_power(S.dense(), s) @ x @ w for s, w in zip(scales, weights, strict=True))
    torch.testing.assert_close(power_filter(S, x, scales, weights), expected, atol=tolerance(dtype), rtol=1e-4)


def test_the_narrower_width_is_the_one_that_is_multiplied(monkeypatch) -> None:
    S = random_operator(6, torch.float32, torch.device("cpu"))
    seen = []
    product = type(S).product
    monkeypatch.setattr(type(S), "product", lambda self, x: seen.append(x.shape[-1]) or product(self, x))
    for inputs, outputs in ((7, 2), (2, 7)):
        power_filter(S, torch.randn(6, inputs), [1, 3], torch.randn(2, inputs, outputs))
    assert seen == [2] * 6


def test_power_terms_come_in_the_order_of_the_scales() -> None:
    S = random_operator(6, torch.float64, torch.device("cpu"))
    x = torch.randn(6, 2, dtype=torch.float64)
    third, none = power_terms(S, x, [3, 0])
    torch.testing.assert_close(third, S @ (S @ (S @ x)))
    assert none is x


def test_chebyshev_terms_are_those_of_pyg_with_the_same_weights() -> None:
    S = random_operator(8, torch.float32, torch.device("cpu"))
    edges = torch.stack([S.row, S.column]).long()
    edges = edges[:, edges[0] != edges[1]]
    x = torch.randn(8, 3, generator=generator(0))
    reference = ChebConv(3, 4, K=4, bias=False)
    terms = chebyshev_terms(laplacian(adjacency(edges)), x, 4)
    ours = sum(term @ linear.weight.T for term, linear in zip(terms, reference.lins, strict=True))
    torch.testing.assert_close(ours, reference(x, edges), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_a_sum_of_chebyshev_terms_of_several_signals_needs_none_of_the_terms(count: int) -> None:
    torch.manual_seed(0)
    edges = random_edges(9)
    L = laplacian(adjacency(edges, dtype=torch.float64))
    signals = list(torch.randn(count, 9, 2, dtype=torch.float64))
    expected = sum(chebyshev_terms(L, signal, count)[order] for order, signal in enumerate(signals))
    found = chebyshev_sum(lambda x: L @ x - x, signals)
    torch.testing.assert_close(found, expected)


def test_bad_polynomial_arguments_say_what_was_given() -> None:
    S = random_operator(4, torch.float32, torch.device("cpu"))
    with pytest.raises(ValueError, match="order must be at least 1, but is 0"):
        chebyshev_terms(S, torch.randn(4, 1), 0)
    with pytest.raises(ValueError, match="largest_eigenvalue must be positive"):
        chebyshev_terms(S, torch.randn(4, 1), 2, largest_eigenvalue=-1.0)
    with pytest.raises(ValueError, match="weights are for 3 channels, but the signal has 2"):
        krylov_filter(S, torch.randn(4, 2), torch.randn(3, 1, 2))
