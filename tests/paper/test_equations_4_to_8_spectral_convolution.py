"""The convolution against a dense float64 twin that forms every filter, as the equations are written."""

import math

import pytest
import torch

from graph_builders import generator, random_operator, random_vector, tolerance
from lanczosnet.affinity import Operator
from lanczosnet.filters import AnchoredFilter, MLPFilter, PowerFilter, spectral_basis
from lanczosnet.krylov import RitzPairs, lanczos, ritz
from lanczosnet.layers import GraphSpectrum, LanczosConv


def dense_twin(conv: LanczosConv, S: Operator, pairs: RitzPairs, x: torch.Tensor) -> torch.Tensor:
    """Eq. 7 in float64, block by block, with L_i = sum_k f_i(r_k^I1, ...) v_k v_k^T (Eq. 8) written out."""
    blocks = [torch.linalg.matrix_power(S.dense().double(), s) @ x.double() for s in conv.short_scales]
    response = conv.filter(pairs.values).double()
    V = pairs.vectors.double()
    for i in range(len(conv.long_scales)):
        L = sum(response[k, i] * torch.outer(V[:, k], V[:, k]) for k in range(V.shape[1]))
        blocks.append(L @ x.double())
    return torch.cat(blocks, 1) @ conv.weight.double().reshape(-1, conv.out_channels) + conv.bias.double()


@pytest.mark.parametrize("spectral_filter", ["power", "mlp", "unbiased", "anchored"])
@pytest.mark.parametrize("activation", [None, torch.tanh], ids=["folded", "concatenated"])
def test_equation_7_equals_the_convolution_written_out(dtype, device, spectral_filter, activation) -> None:
    torch.manual_seed(0)
    S = random_operator(15, dtype, device)
    pairs = ritz(lanczos(S, random_vector(S), 6))
    conv = LanczosConv(3, 4, [1, 3], [5, 10], 6, spectral_filter=spectral_filter).to(device, dtype)
    torch.nn.init.normal_(conv.bias)
    x = torch.randn(15, 3, generator=generator(0), dtype=torch.float64).to(device, dtype)
    spectrum = GraphSpectrum(S, spectral_basis(pairs))
    if activation is None:
        ours = conv.convolve(x, spectrum)
    else:
        conv.inner_activation = lambda block: block  # nothing nonlinear: the twin must agree with the folded form
        ours = conv.convolve(x, spectrum)
    expected = dense_twin(conv, S, pairs, x)
    torch.testing.assert_close(ours.double(), expected, atol=100 * tolerance(dtype), rtol=0)


def test_equation_4_powers_of_ritz_values_are_powers_of_s_when_the_rank_is_full(dtype, device) -> None:
    S = random_operator(8, dtype, device)
    basis = spectral_basis(ritz(lanczos(S, random_vector(S), 8)))
    x = torch.randn(8, 2, generator=generator(0), dtype=torch.float64).to(device, dtype)
    response = PowerFilter([0, 1, 7])(basis.values)
    for i, t in enumerate([0, 1, 7]):
        ours = basis.lift(response[:, i : i + 1] * basis.project(x))
        expected = torch.linalg.matrix_power(S.dense(), t) @ x
        torch.testing.assert_close(ours, expected, atol=100 * tolerance(dtype), rtol=0)


def test_equations_5_and_6_include_the_polynomial_filter_as_a_special_case() -> None:
    learned = MLPFilter([1, 2, 3], ())  # no hidden layer: a linear map of the powers
    with torch.no_grad():
        learned.layers[0].weight.copy_(torch.eye(3))
        learned.layers[0].bias.zero_()
    values = torch.linspace(-1, 1, 9)
    torch.testing.assert_close(learned(values), PowerFilter([1, 2, 3])(values))


def test_equation_8_each_filter_sees_all_long_scales() -> None:
    torch.manual_seed(0)
    values = torch.tensor([0.7], requires_grad=True)
    for kind in (MLPFilter, AnchoredFilter):
        learned = kind([1, 4], (16,))
        first = next(m for m in learned.layers if isinstance(m, torch.nn.Linear))
        learned(values)[0, 0].backward()
        assert (first.weight.grad.abs().sum(0) > 0).all()


def test_an_infinite_scale_projects_onto_the_equilibrium_of_the_diffusion() -> None:
    S = random_operator(9, torch.float64, torch.device("cpu"))
    basis = spectral_basis(ritz(lanczos(S, random_vector(S), 9)))
    x = torch.randn(9, 2, dtype=torch.float64)
    response = PowerFilter([math.inf])(basis.values)
    ours = basis.lift(response * basis.project(x))
    torch.testing.assert_close(ours, torch.linalg.matrix_power(S.dense(), 4096) @ x)
