import math

import pytest
import torch
from torch import nn

from lanczosnet.filters import AnchoredFilter, MLPFilter, PowerFilter, UnbiasedFilter, powers, spectral_filter
from lanczosnet.filters.spectral import StackedLinear
from lanczosnet.krylov import matrix_function
from operations import operations


def test_the_equilibrium_scale_is_one_exactly_where_the_ritz_value_is(dtype) -> None:
    eps = torch.finfo(dtype).eps
    values = torch.tensor([1.0, 1.0 - eps, 0.999, 0.0, -0.5, -1.0], dtype=dtype)
    assert powers(values, [math.inf]).squeeze(-1).tolist() == [1, 1, 0, 0, 0, 1]


def test_the_equilibrium_is_the_limit_of_ever_larger_scales() -> None:
    values = torch.tensor([1.0, 0.9, -0.3], dtype=torch.float64)
    torch.testing.assert_close(powers(values, [math.inf]), powers(values, [10_000]))


@pytest.mark.parametrize("name", ["power", "anchored", "unbiased"])
def test_all_filters_but_the_published_one_vanish_where_the_ritz_value_does(name: str) -> None:
    assert spectral_filter(name, [1, 10])(torch.zeros(3)).abs().max() == 0


def test_the_published_filter_does_not_vanish_at_zero() -> None:
    torch.manual_seed(0)
    assert MLPFilter([1, 10])(torch.zeros(3)).abs().max() > 0


def test_a_filter_without_biases_is_the_published_one_whose_biases_are_zero() -> None:
    torch.manual_seed(0)
    published, unbiased = MLPFilter([1, 10], (5,)), UnbiasedFilter([1, 10], (5,))
    unbiased.load_state_dict({name: value for name, value in published.state_dict().items() if "bias" not in name})
    for layer in published.layers[0], published.layers[2]:
        nn.init.zeros_(layer.bias)
    values = torch.linspace(-1, 1, 9)
    torch.testing.assert_close(unbiased(values), published(values))


@pytest.mark.parametrize("kind", [MLPFilter, AnchoredFilter, UnbiasedFilter])
def test_the_positive_option_makes_every_response_non_negative(kind) -> None:
    torch.manual_seed(0)
    values = torch.linspace(-1, 1, 50)
    assert kind([1, 3])(values).min() < 0
    assert kind([1, 3], positive=True)(values).min() >= 0


def test_hidden_channels_set_the_depth_of_the_filter() -> None:
    linear = [m for m in MLPFilter([1, 2], (8, 9)).layers if isinstance(m, torch.nn.Linear)]
    assert [(m.in_features, m.out_features) for m in linear] == [(2, 8), (8, 9), (9, 2)]


def test_a_wrong_filter_name_lists_the_right_ones() -> None:
    with pytest.raises(
        ValueError, match="unknown spectral filter 'mpl': choose one of power, heat, mlp, unbiased, anchored"
    ):
        spectral_filter("mpl", [1])


@pytest.mark.parametrize("name", ["power", "heat", "mlp", "unbiased", "anchored"])
def test_every_spectral_filter_may_be_applied_to_a_matrix_and_differentiated(name: str) -> None:
    torch.manual_seed(0)
    response = spectral_filter(name, [2, 5], (4,)).double()
    A = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)

    def filtered(A: torch.Tensor) -> torch.Tensor:
        return matrix_function(0.1 * (A + A.mT), response)

    values, vectors = torch.linalg.eigh(0.1 * (A + A.mT))
    expected = torch.einsum("ik,ks,jk->sij", vectors, response(values), vectors)
    torch.testing.assert_close(filtered(A), expected)
    assert torch.autograd.gradcheck(filtered, (A,))


def test_divided_differences_of_the_equilibrium_are_zero() -> None:
    differences = PowerFilter([2, math.inf]).divided_differences(torch.tensor([0.5, 1.0]))
    torch.testing.assert_close(differences[0], torch.tensor([[1.0, 1.5], [1.5, 2.0]]))
    assert differences[1].abs().max() == 0


def test_stacked_layers_turn_their_gradients_back_at_once() -> None:
    layers = [nn.Linear(3, 2, dtype=torch.float64) for _ in range(5)]
    x = torch.randn(5, 4, 3, dtype=torch.float64)
    expected = torch.stack([layer(part) for layer, part in zip(layers, x, strict=True)])
    weights = [layer.weight for layer in layers]
    gradients = torch.autograd.grad(expected.square().sum(), weights)
    found = StackedLinear(layers)(x)
    torch.testing.assert_close(found, expected)
    loss = found.square().sum()
    counts = operations(loss.backward)
    assert counts["clone"] == 1
    assert counts["copy_"] == 0
    torch.testing.assert_close([weight.grad for weight in weights], list(gradients))


@pytest.mark.parametrize("name", ["mlp", "unbiased", "anchored"])
@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("scales", [(0, 1, 3, 10), (2, math.inf)])
def test_a_filter_knows_its_own_slope(name: str, positive: bool, scales: tuple[float, ...]) -> None:
    torch.manual_seed(0)
    chosen = spectral_filter(name, scales, (7, 5), positive=positive).double()
    values = torch.linspace(-0.97, 0.97, 12, dtype=torch.float64).view(3, 4)
    response, slope = chosen.with_slope(values)
    torch.testing.assert_close(response, chosen(values))
    step = 1e-6
    torch.testing.assert_close(
        slope, (chosen(values + step) - chosen(values - step)) / (2 * step), atol=1e-6, rtol=1e-6
    )
    assert response.requires_grad
    assert not slope.requires_grad
