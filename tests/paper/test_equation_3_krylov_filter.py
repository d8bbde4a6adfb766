import torch

from graph_builders import generator, random_operator, tolerance
from lanczosnet.filters import krylov_filter
from lanczosnet.krylov import lanczos


def test_equation_3_every_channel_is_filtered_in_its_own_krylov_basis(dtype, device) -> None:
    S = random_operator(12, dtype, device)
    x = torch.randn(12, 3, generator=generator(0), dtype=torch.float64).to(device, dtype)
    w = torch.randn(3, 2, 4, generator=generator(1), dtype=torch.float64).to(device, dtype)
    expected = torch.zeros(12, 2, dtype=dtype, device=device)
    for i in range(3):
        Q = lanczos(S, x[:, i], 4).basis
        for j in range(2):
            expected[:, j] += Q @ w[i, j]
    torch.testing.assert_close(krylov_filter(S, x, w), expected, atol=100 * tolerance(dtype), rtol=0)


def test_equation_3_passes_gradients_to_the_signal_and_the_weights() -> None:
    S = random_operator(7, torch.float64, torch.device("cpu"))
    x = torch.randn(7, 2, generator=generator(0), dtype=torch.float64, requires_grad=True)
    w = torch.randn(2, 2, 3, generator=generator(1), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: krylov_filter(S, x, w), (x, w))
