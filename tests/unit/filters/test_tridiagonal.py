import pytest
import torch

from graph_builders import matrix_with_spectrum
from lanczosnet.filters import (
    AnchoredFilter,
    EntrywiseTridiagonalFilter,
    SpectralTridiagonalFilter,
    VectorizedTridiagonalFilter,
)
from lanczosnet.filters.tridiagonal import filtered_by_layer
from operations import operations

FILTERS = {
    "spectral": lambda: SpectralTridiagonalFilter(AnchoredFilter([2, 4], (8,))),
    "vectorized": lambda: VectorizedTridiagonalFilter([2, 4], 5, (8,)),
    "entrywise": lambda: EntrywiseTridiagonalFilter([2, 4], (8,)),
}


def matrices() -> torch.Tensor:
    return torch.stack([matrix_with_spectrum(torch.linspace(-1, 1, 5), seed) for seed in range(3)])


@pytest.mark.parametrize("name", FILTERS)
def test_filters_give_one_symmetric_matrix_per_scale(name: str) -> None:
    torch.manual_seed(0)
    filtered = FILTERS[name]().double()(matrices())
    assert filtered.shape == (3, 2, 5, 5)
    torch.testing.assert_close(filtered, filtered.mT)


@pytest.mark.parametrize("name", FILTERS)
def test_filters_pass_gradients_to_the_matrix_and_to_their_parameters(name: str) -> None:
    torch.manual_seed(0)
    chosen = FILTERS[name]().double()
    T = matrices().requires_grad_()
    (chosen(T) * torch.randn(3, 2, 5, 5, dtype=torch.float64)).sum().backward()
    assert torch.isfinite(T.grad).all()
    assert T.grad.abs().sum() > 0
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in chosen.parameters())


def test_only_the_spectral_filter_is_free_of_the_choice_of_basis() -> None:
    torch.manual_seed(0)
    T = matrices()[0]
    Q = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64)).Q
    for name, make in FILTERS.items():
        chosen = make().double()
        is_free = torch.allclose(chosen(Q @ T @ Q.mT), Q @ chosen(T) @ Q.mT)
        assert is_free == (name == "spectral") == chosen.acts_on_spectrum


def test_the_published_filter_of_qm8_has_fifty_million_parameters_a_layer_and_the_lean_one_two_thousand() -> None:
    scales = [5, 7, 10, 20, 30]
    with torch.device("meta"):
        published = VectorizedTridiagonalFilter(scales, 20, (4096, 4096, 4096))
        lean = EntrywiseTridiagonalFilter(scales, (128,))
    count = [sum(p.numel() for p in chosen.parameters()) for chosen in (published, lean)]
    assert count == [49_952_720, 1_413]


def test_the_layers_of_a_network_share_the_powers_of_a_matrix() -> None:
    filters = [EntrywiseTridiagonalFilter([2, 5], (4,)) for _ in range(3)]
    matrix = torch.eye(3).expand(2, 3, 3) * 0.5
    found = filtered_by_layer(filters, matrix)
    torch.testing.assert_close(found, torch.stack([chosen(matrix) for chosen in filters], 1))
    alone = operations(lambda: filters[0](matrix))["bmm"]
    assert operations(lambda: filtered_by_layer(filters, matrix))["bmm"] == alone > 0
