import torch

from graph_builders import generator, random_operator, random_vector, tolerance
from lanczosnet.filters import PowerFilter, SpectralTridiagonalFilter, VectorizedTridiagonalFilter
from lanczosnet.krylov import lanczos, tridiagonal_matrix
from lanczosnet.layers import AdaLanczosConv, adaptive_spectrum


def test_equation_10_the_mlp_sees_all_powers_of_t_and_its_output_is_made_symmetric() -> None:
    torch.manual_seed(0)
    S = random_operator(10, torch.float64, torch.device("cpu"))
    T = tridiagonal_matrix(lanczos(S, random_vector(S), 4))
    learned = VectorizedTridiagonalFilter([1, 3], 4, (6,)).double()
    vec = torch.cat([T.flatten(), (T @ T @ T).flatten()])
    f = learned.layers(vec).view(2, 4, 4)
    torch.testing.assert_close(learned(T), f + f.mT)


def test_equation_10_the_convolution_equals_q_g_q_transposed_written_out(dtype, device) -> None:
    torch.manual_seed(0)
    S = random_operator(10, dtype, device)
    learned = VectorizedTridiagonalFilter([1, 3], 4, (6,))
    conv = AdaLanczosConv(3, 5, learned, [1, 2], 2).to(device, dtype)
    x = torch.randn(10, 3, generator=generator(0), dtype=torch.float64).to(device, dtype)
    start = random_vector(S)
    spectrum = adaptive_spectrum(S, 4, start=start, exact_up_to=0)
    result = lanczos(S, start, 4)
    Q, g = result.basis, learned(tridiagonal_matrix(result))
    blocks = [S @ x, S @ (S @ x), *(Q @ (g[i] @ (Q.mT @ x)) for i in range(2))]
    expected = torch.cat(blocks, 1) @ conv.weight.view(-1, 5) + conv.bias
    torch.testing.assert_close(conv(x, spectrum), expected, atol=100 * tolerance(dtype), rtol=0)


def test_beyond_equation_10_the_spectral_filter_of_t_is_that_of_s_when_the_basis_is_complete(dtype, device) -> None:
    torch.manual_seed(0)
    S = random_operator(8, dtype, device)
    conv = AdaLanczosConv(2, 3, SpectralTridiagonalFilter(PowerFilter([5, 9])), (), 2).to(device, dtype)
    x = torch.randn(8, 2, generator=generator(0), dtype=torch.float64).to(device, dtype)
    through_lanczos = conv(x, adaptive_spectrum(S, 8, start=random_vector(S), exact_up_to=0))
    exactly = conv(x, adaptive_spectrum(S, 8))
    powers = [torch.linalg.matrix_power(S.dense(), s) @ x for s in (5, 9)]
    expected = torch.cat(powers, 1) @ conv.weight.view(-1, 3) + conv.bias
    for ours in (through_lanczos, exactly):
        torch.testing.assert_close(ours, expected, atol=100 * tolerance(dtype), rtol=0)
