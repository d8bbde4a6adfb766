"""f(T) and its Daleckii-Krein gradient, where that of eigh is NaN."""

import pytest
import torch
import torch.autograd.forward_ad as forward_mode

from graph_builders import assert_reproduced, generator, matrix_with_spectrum, relative_error, tolerance
from interpreted import call_interpreted, needs_triton
from lanczosnet.krylov import Powers, functions, matrix_function, matrix_powers

GAPS = [1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 0.0]
EXPONENTS = [1, 2, 3, 5, 7, 10, 20, 30]


def spectrum_with_gap(gap: float) -> torch.Tensor:
    """Eight eigenvalues in [-1, 1]: two clusters of three and two, and three apart."""
    cluster = torch.tensor([0.9, 0.9 - gap, 0.9 - 2 * gap, 0.3, 0.3 - gap], dtype=torch.float64)
    return torch.cat([cluster, torch.tensor([0.6, -0.2, -0.8], dtype=torch.float64)])


def mlp(outputs: int = 3, inputs: int = 1) -> torch.nn.Module:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(inputs, 16), torch.nn.Tanh(), torch.nn.Linear(16, outputs))
    return net.double()


class OnPowers(torch.nn.Module):
    """The paper's filter: an MLP on long powers of each eigenvalue."""

    def __init__(self, exponents=(5, 10, 20, 30)) -> None:
        super().__init__()
        self.exponents = exponents
        self.net = mlp(inputs=len(exponents))

    def forward(self, values):
        return self.net(torch.stack([values**e for e in self.exponents], -1))


class OnEigenvalues(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()

    def forward(self, values):
        return self.net(values.unsqueeze(-1))


def test_a_function_of_a_matrix_acts_on_its_eigenvalues(dtype, device):
    matrix = matrix_with_spectrum(torch.linspace(-1, 1, 6)).to(device, dtype)
    torch.testing.assert_close(
        matrix_function(matrix, torch.exp), torch.linalg.matrix_exp(matrix), atol=tolerance(dtype), rtol=0
    )
    torch.testing.assert_close(matrix_function(matrix, lambda r: r), matrix, atol=tolerance(dtype), rtol=0)
    assert matrix_function(matrix, torch.tanh).dtype == dtype


def test_several_responses_are_stacked_before_the_matrix(dtype, device):
    matrix = torch.stack([matrix_with_spectrum(torch.linspace(-1, 1, 5), seed) for seed in range(2)]).to(device, dtype)
    result = matrix_function(matrix, Powers(EXPONENTS))
    assert result.shape == (2, 8, 5, 5)
    torch.testing.assert_close(result, matrix_powers(matrix, EXPONENTS), atol=2 * tolerance(dtype), rtol=0)
    one = matrix_function(matrix, Powers([3]))
    assert one.shape == (2, 1, 5, 5)
    assert matrix_function(matrix, torch.sin).shape == (2, 5, 5)


@pytest.mark.parametrize("n", [0, 1])
def test_matrices_of_no_row_and_of_one(n, dtype, device):
    matrix = torch.ones(n, n, dtype=dtype, device=device, requires_grad=True)
    result = matrix_function(matrix, Powers([0, 2]))
    assert result.shape == (2, n, n)
    result.sum().backward()
    assert matrix.grad.tolist() == [[2.0]] * n


def test_zero_padding_stays_apart_when_the_function_vanishes_at_zero(dtype, device):
    matrix = torch.nn.functional.pad(matrix_with_spectrum(torch.tensor([0.5, 0.5, -1.0])), (0, 3, 0, 3))
    result = matrix_function(matrix.to(device, dtype), Powers([1, 3]))
    assert float(result[:, 3:].abs().max()) <= tolerance(dtype, 4)


SPECTRA = {
    "distinct": torch.linspace(-0.9, 0.9, 5),
    "repeated": torch.tensor([0.7, 0.7, 0.7, -0.2, -0.2]),
    "padded": torch.tensor([0.7, -0.4, 0.0, 0.0, 0.0]),
    "multiple of one": torch.full((5,), 0.5),
}
FUNCTIONS = {
    "powers": Powers([0, 1, 2, 5, 10]),
    "exp": torch.exp,
    "mlp": OnEigenvalues(),
    "mlp on powers": OnPowers((1, 2, 5)),
    "constant": torch.ones_like,
}


def symmetric(matrix):
    return (matrix + matrix.mT) / 2


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_gradient_passes_gradcheck_at_every_spectrum(spectrum, function, device):
    """The difference quotient must be wider than where the mean slope stands in for it."""
    matrix = matrix_with_spectrum(SPECTRA[spectrum].double()).to(device).requires_grad_()
    net = FUNCTIONS[function]
    net = net.to(device) if isinstance(net, torch.nn.Module) else net
    assert torch.autograd.gradcheck(
        lambda m: matrix_function(symmetric(m), net), (matrix,), eps=1e-5, atol=1e-6, rtol=1e-4
    )


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_parameters_of_the_function_receive_their_gradients(spectrum, device):
    matrix = matrix_with_spectrum(SPECTRA[spectrum].double()).to(device)
    cotangent = torch.randn(3, 5, 5, generator=generator(0), dtype=torch.float64).to(device)
    for needs_matrix in (False, True):
        net = OnPowers().to(device)
        result = matrix_function(matrix.clone().requires_grad_(needs_matrix), net)
        (result * cotangent).sum().backward()
        twin = OnPowers().to(device)
        values, vectors = torch.linalg.eigh(matrix)
        expected = torch.einsum("ik,ks,jk->sij", vectors, twin(values), vectors)
        (expected * cotangent).sum().backward()
        for ours, theirs in zip(net.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad)


def test_parameters_pass_gradcheck_together_with_the_matrix(device):
    matrix = matrix_with_spectrum(SPECTRA["repeated"].double()).to(device).requires_grad_()
    scale = torch.tensor([0.5, 2.0], dtype=torch.float64, device=device, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda m, s: matrix_function(symmetric(m), lambda r: torch.tanh(r.unsqueeze(-1) * s)),
        (matrix, scale),
        eps=1e-5,
        atol=1e-6,
        rtol=1e-4,
    )


def powers_reference(matrix, cotangent):
    """The gradient of powers by products, in float64: exact at every gap."""
    matrix = matrix.detach().double().clone().requires_grad_()
    loss = (matrix_powers(symmetric(matrix), EXPONENTS) * cotangent.double()).sum()
    return torch.autograd.grad(loss, matrix)[0]


def mlp_reference(matrix, cotangent, net):
    """Daleckii-Krein in float64 with divided differences by quadrature: int_0^1 f'(r_j + t (r_i - r_j)) dt."""
    values, vectors = torch.linalg.eigh(matrix.double())
    nodes, weights = gauss_legendre()
    points = values[None, None, :] + nodes[:, None, None] * (values[None, :, None] - values[None, None, :])
    _, slope = torch.func.jvp(net, (points,), (torch.ones_like(points),))
    differences = torch.einsum("t,tijs->sij", weights, slope)
    rotated = vectors.mT @ symmetric(cotangent.double()) @ vectors
    return (vectors @ (differences * rotated) @ vectors.mT).sum(0)


def gauss_legendre(count=40):
    """Nodes and weights on [0, 1], by Golub and Welsch."""
    k = torch.arange(1, count, dtype=torch.float64)
    beta = k / (4 * k**2 - 1).sqrt()
    nodes, vectors = torch.linalg.eigh(torch.diag(beta, 1) + torch.diag(beta, -1))
    return (nodes + 1) / 2, vectors[0] ** 2


@pytest.mark.parametrize("gap", GAPS)
def test_the_float32_gradient_of_powers_is_right_at_every_gap(gap, device):
    matrix = matrix_with_spectrum(spectrum_with_gap(gap)).float()
    cotangent = torch.randn(8, 8, 8, generator=generator(1))
    T = matrix.to(device).requires_grad_()
    (matrix_function(T, Powers(EXPONENTS)) * cotangent.to(device)).sum().backward()
    assert relative_error(T.grad.cpu(), powers_reference(matrix, cotangent)) < 2e-5


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("make", [OnPowers, OnEigenvalues])
def test_the_float32_gradient_of_an_mlp_is_right_at_every_gap(gap, make, device):
    matrix = matrix_with_spectrum(spectrum_with_gap(gap)).float()
    cotangent = torch.randn(3, 8, 8, generator=generator(1))
    T = matrix.to(device).requires_grad_()
    (matrix_function(T, make().float().to(device)) * cotangent.to(device)).sum().backward()
    twin = make().float().double()
    assert relative_error(T.grad.cpu(), mlp_reference(matrix, cotangent, twin)) < 2e-5


@pytest.mark.parametrize("gap", GAPS)
def test_the_float64_gradient_is_right_at_every_gap(gap):
    matrix = matrix_with_spectrum(spectrum_with_gap(gap))
    cotangent = torch.randn(8, 8, 8, generator=generator(1), dtype=torch.float64)
    T = matrix.clone().requires_grad_()
    (matrix_function(T, Powers(EXPONENTS)) * cotangent).sum().backward()
    assert relative_error(T.grad, powers_reference(matrix, cotangent)) < 1e-12
    net, cotangent = OnPowers(), cotangent[:3]
    T = matrix.clone().requires_grad_()
    (matrix_function(T, net) * cotangent).sum().backward()
    assert relative_error(T.grad, mlp_reference(matrix, cotangent, net)) < 1e-10


@pytest.mark.parametrize("gap", [0.0, 1e-10])
def test_the_gradient_of_eigh_is_no_help_there(gap):
    matrix = matrix_with_spectrum(spectrum_with_gap(gap)).float()
    cotangent = torch.randn(8, 8, 8, generator=generator(1))
    T = matrix.clone().requires_grad_()
    values, vectors = torch.linalg.eigh(T)
    powers = torch.stack([(vectors * values**e) @ vectors.mT for e in EXPONENTS])
    (gradient,) = torch.autograd.grad((powers * cotangent).sum(), T)
    assert not relative_error(gradient, powers_reference(matrix, cotangent)) < 1e-3


def test_a_padded_batch_has_the_gradients_of_its_matrices(dtype, device):
    blocks = [matrix_with_spectrum(spectrum, seed) for seed, spectrum in enumerate(list(SPECTRA.values())[:2])]
    blocks.append(matrix_with_spectrum(torch.tensor([0.3, -0.3])))
    batch = torch.stack([torch.nn.functional.pad(b, (0, 7 - len(b), 0, 7 - len(b))) for b in blocks])
    batch = batch.to(device, dtype).requires_grad_()
    cotangent = torch.randn(3, 2, 7, 7, generator=generator(0)).to(device, dtype)
    (matrix_function(batch, Powers([3, 10])) * cotangent).sum().backward()
    assert torch.isfinite(batch.grad).all()
    for index, block in enumerate(blocks):
        n = len(block)
        single = block.to(device, dtype).requires_grad_()
        (matrix_function(single, Powers([3, 10])) * cotangent[index, :, :n, :n]).sum().backward()
        assert relative_error(batch.grad[index, :n, :n], single.grad) < tolerance(dtype)


def test_divided_differences_of_powers_need_no_quotient(dtype, device):
    values = torch.tensor([0.5, 0.5, -0.2, 0.0, 1.0], dtype=dtype, device=device)
    table = Powers([0, 1, 2, 5]).divided_differences(values)
    assert table.shape == (4, 5, 5)
    for place, exponent in enumerate([0, 1, 2, 5]):
        for i, left in enumerate(values.tolist()):
            for j, right in enumerate(values.tolist()):
                expected = sum(left**a * right ** (exponent - 1 - a) for a in range(exponent))
                assert float(table[place, i, j]) == pytest.approx(expected, abs=tolerance(dtype, 4))


def test_powers_of_values(dtype, device):
    values = torch.tensor([[0.5, -2.0, 0.0]], dtype=dtype, device=device)
    assert Powers([0, 1, 3])(values).tolist() == [[[1, 0.5, 0.125], [1, -2, -8], [1, 0, 0]]]


@pytest.mark.parametrize("exponents", [[-1], [0.5]])
def test_exponents_are_natural_numbers(exponents):
    with pytest.raises(ValueError, match="exponents must be non-negative integers"):
        Powers(exponents)


@pytest.mark.parametrize("loss", [torch.sum, lambda y: y.square().sum()], ids=["linear", "quadratic"])
@pytest.mark.parametrize("function", [Powers([3]), torch.tanh], ids=["powers", "tanh"])
def test_a_second_derivative_raises(loss, function, device):
    matrix = matrix_with_spectrum(SPECTRA["distinct"]).to(device).requires_grad_()
    total = loss(matrix_function(matrix, function)) + matrix.square().sum()
    (gradient,) = torch.autograd.grad(total, matrix, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivatives"):
        torch.autograd.grad(gradient.sum(), matrix)


def test_functional_transforms_and_forward_mode_raise(device):
    matrix = matrix_with_spectrum(SPECTRA["distinct"]).to(device)
    for function in (Powers([2]), torch.tanh):

        def total(m, function=function):
            return matrix_function(m, function).sum()

        with pytest.raises(RuntimeError):
            torch.func.grad(total)(matrix)
        with pytest.raises(RuntimeError):
            torch.func.jvp(total, (matrix,), (matrix,))
        with forward_mode.dual_level(), pytest.raises(NotImplementedError, match="jvp"):
            total(forward_mode.make_dual(matrix, matrix))


def test_precision_survives_autocast(dtype, device):
    matrix = matrix_with_spectrum(SPECTRA["distinct"]).to(device, dtype).requires_grad_()
    net = OnEigenvalues().to(device, dtype)

    def value_and_gradient():
        value = matrix_function(matrix, net)
        return value, torch.autograd.grad(value.square().sum(), matrix)[0]

    expected = value_and_gradient()
    with torch.autocast(device.type, dtype=torch.bfloat16):
        assert_reproduced(matrix_function(matrix, net), expected[0])
        value = matrix_function(matrix, net)
    assert_reproduced(torch.autograd.grad(value.square().sum(), matrix)[0], expected[1])


@pytest.mark.parametrize("needs_grad", [True, False])
@pytest.mark.parametrize("function", [lambda r: r.sum(-1), lambda r: r[..., :2], lambda r: torch.stack([r, r])])
def test_a_function_of_the_wrong_shape_is_told_the_right_one(function, needs_grad):
    with pytest.raises(
        ValueError, match=r"must map \[\.\.\., n\] = \(3,\) to the same shape or to \[\.\.\., n, scale\]"
    ):
        matrix_function(torch.eye(3, requires_grad=needs_grad), function)


@pytest.mark.parametrize("matrix", [torch.ones(3), torch.ones(2, 3)])
def test_only_square_matrices_have_functions(matrix):
    with pytest.raises(ValueError, match=r"needs square matrices \[\.\.\., n, n\], but got"):
        matrix_function(matrix, torch.exp)


def test_half_precision_is_refused():
    with pytest.raises(ValueError, match=r"not torch\.bfloat16: convert with \.float\(\)"):
        matrix_function(torch.eye(3, dtype=torch.bfloat16), torch.exp)


def compare_weighted_differences(device: str = "cpu") -> None:
    """With eigenvalues that coincide, nearly meet, and lie apart."""
    from lanczosnet.backends.triton.divided_differences import weighted_differences

    for n, scales, dtype in ((5, 3, torch.float32), (20, 9, torch.float64), (1, 1, torch.float32)):
        values = torch.rand(2, n, generator=generator(0), dtype=dtype).to(device)
        values[:, n // 2] = values[:, 0]
        values[:, -1] = values[:, 0] + 1e-7
        response, slope = torch.randn(2, 2, scales, n, generator=generator(1), dtype=dtype).to(device)
        rotated = torch.randn(2, n, scales, n, generator=generator(2), dtype=dtype).to(device)
        close = functions.CLOSE[dtype]
        plain = functions.divided_differences(values.unsqueeze(-2), response, slope, close)
        found = weighted_differences(values, response, slope, rotated, close)
        torch.testing.assert_close(found, (plain.movedim(-3, -2) * rotated).sum(-2), atol=1e-4, rtol=1e-4)


@needs_triton
def test_the_kernel_of_divided_differences_is_plain_pytorch_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_weighted_differences")


@needs_triton
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernel_of_divided_differences_is_plain_pytorch_on_a_gpu() -> None:
    compare_weighted_differences("cuda")
