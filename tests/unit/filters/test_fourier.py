import pytest
import torch

from forced import forced
from graph_builders import generator, ragged_operator, random_operator, random_vector, tolerance
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.backends import tall_products
from lanczosnet.filters import fourier, fourier_transform, inverse_fourier_transform, spectral_basis
from lanczosnet.krylov import RitzPairs, component_ritz_pairs, lanczos, ritz


def signal(num_nodes: int, dtype: torch.dtype, device: torch.device, channels: int = 3) -> torch.Tensor:
    return torch.randn(num_nodes, channels, generator=generator(5), dtype=torch.float64).to(device, dtype)


def test_the_transform_of_a_full_eigenbasis_is_undone_by_its_inverse(dtype, device) -> None:
    S = random_operator(9, dtype, device)
    pairs = ritz(lanczos(S, random_vector(S), 9))
    x = signal(9, dtype, device)
    y = fourier_transform(pairs, x)
    torch.testing.assert_close(y, pairs.vectors.mT @ x)
    torch.testing.assert_close(inverse_fourier_transform(pairs, y), x, atol=tolerance(dtype), rtol=0)


@pytest.mark.parametrize("large", [1, 4, 512], ids=["all dense", "some dense", "sparse"])
@pytest.mark.parametrize("sizes", [(5, 1, 8, 3), (9,)], ids=str)
@pytest.mark.parametrize("is_mixed", [False, True], ids=["in order", "mixed"])
def test_ragged_pairs_give_the_same_as_the_dense_block_diagonal(
    is_mixed, sizes, large, dtype, device, monkeypatch
) -> None:
    monkeypatch.setattr(fourier, "LARGE", large)
    S = ragged_operator(dtype, device, sizes=sizes)
    pairs = component_ritz_pairs(S, 4)
    if is_mixed:  # nodes of several components in turn
        order = torch.randperm(S.num_nodes, generator=generator(2)).to(device)
        pairs = pairs._replace(vectors=pairs.vectors[order], segment=pairs.segment[order])
    x = signal(S.num_nodes, dtype, device)
    basis = spectral_basis(pairs)
    smooth = basis.lift(basis.values.unsqueeze(-1) ** 3 * basis.project(x))
    expected = torch.zeros_like(x)
    for component in range(len(pairs.values)):
        own = pairs.segment == component
        V = pairs.vectors[own]
        expected[own] = V @ (pairs.values[component].unsqueeze(-1) ** 3 * (V.mT @ x[own]))
    torch.testing.assert_close(smooth, expected, atol=tolerance(dtype), rtol=0)


def test_ragged_transforms_keep_only_pairs_that_exist() -> None:
    S = ragged_operator(torch.float32, torch.device("cpu"), sizes=(3, 1, 2))
    basis = spectral_basis(component_ritz_pairs(S, 20))
    assert basis.values.shape == (6,)


@pytest.mark.parametrize("large", [1, 4, 512], ids=["all dense", "some dense", "sparse"])
def test_gradients_pass_through_the_ragged_transform_both_ways(large, monkeypatch) -> None:
    monkeypatch.setattr(fourier, "LARGE", large)
    S = ragged_operator(torch.float64, torch.device("cpu"))
    basis = spectral_basis(component_ritz_pairs(S, 4))
    x = signal(S.num_nodes, torch.float64, S.device).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: basis.lift(basis.project(x)), (x,))
    assert torch.autograd.gradgradcheck(lambda x: basis.lift(basis.project(x)).square(), (x,))


@pytest.mark.parametrize("large", [1, 512], ids=["dense", "sparse"])
def test_autocast_does_not_reach_the_ragged_transform(large, monkeypatch) -> None:
    monkeypatch.setattr(fourier, "LARGE", large)
    S = ragged_operator(torch.float32, torch.device("cpu"))
    basis, x = spectral_basis(component_ritz_pairs(S, 4)), signal(S.num_nodes, torch.float32, S.device)
    with torch.autocast("cpu", torch.bfloat16):
        smooth = basis.lift(basis.project(x))
    torch.testing.assert_close(smooth, basis.lift(basis.project(x)), rtol=0, atol=0)


def test_the_low_rank_product_does_not_depend_on_the_signs_of_the_ritz_vectors() -> None:
    S = random_operator(12, torch.float64, torch.device("cpu"))
    pairs = ritz(lanczos(S, num_steps=5))
    flipped = RitzPairs(pairs.values, pairs.vectors * torch.tensor([1.0, -1, 1, -1, -1]), pairs.rank)
    x = signal(12, torch.float64, S.device)
    results = [
        inverse_fourier_transform(p, p.values.unsqueeze(-1) ** 2 * fourier_transform(p, x)) for p in (pairs, flipped)
    ]
    torch.testing.assert_close(*results)


def smoothed_with_gradient(basis, x):
    y = basis.lift(basis.project(x))
    return y, *torch.autograd.grad(y.sin().sum(), x)


def test_products_in_pieces_are_those_of_the_basis(monkeypatch) -> None:
    monkeypatch.setattr(fourier, "LARGE", 3)
    monkeypatch.setattr(tall_products, "ROWS", 2)
    S = ragged_operator(torch.float64, torch.device("cpu"), sizes=(5, 1, 8, 3))
    basis = spectral_basis(component_ritz_pairs(S, 4))
    x = signal(S.num_nodes, torch.float64, S.device).requires_grad_()
    found = [smoothed_with_gradient(basis, x)]
    with forced("block_coefficients", "row-pieces") as projected, forced("block_signal", "row-pieces") as lifted:
        found.append(smoothed_with_gradient(basis, x))
    assert len(projected) == len(lifted) == 3
    torch.testing.assert_close(*found)


def test_a_graph_without_nodes_has_an_empty_spectrum() -> None:
    S = normalized(adjacency(torch.zeros(2, 0, dtype=torch.long), num_nodes=0))
    basis = spectral_basis(component_ritz_pairs(S, 3))
    assert basis.lift(basis.project(torch.zeros(0, 2))).shape == (0, 2)
