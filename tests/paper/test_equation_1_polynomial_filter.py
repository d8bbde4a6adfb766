import torch

from graph_builders import generator, random_operator, tolerance
from lanczosnet.filters import power_filter


def test_equation_1_the_filter_is_a_polynomial_in_s_with_matrix_coefficients(dtype, device) -> None:
    S = random_operator(11, dtype, device)
    x = torch.randn(11, 4, generator=generator(0), dtype=torch.float64).to(device, dtype)
    W = torch.randn(5, 4, 3, generator=generator(1), dtype=torch.float64).to(device, dtype)
    expected = torch.zeros(11, 3, dtype=torch.float64, device=device)
    for t in range(5):
        expected += torch.linalg.matrix_power(S.dense().double(), t) @ x.double() @ W[t].double()
    torch.testing.assert_close(power_filter(S, x, range(5), W).double(), expected, atol=10 * tolerance(dtype), rtol=0)
