"""What steps share is what they would have each for themselves, at less cost."""

import pytest
import torch
from torch import Tensor, nn

from graph_builders import generator
from interpreted import call_interpreted, needs_triton
from lanczosnet.backends.registry import reference
from lanczosnet.layers.tied_linear import TiedLinear, TiedPerceptron, gru_cell, lstm_cell
from operations import operations


@pytest.fixture(autouse=True)
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=generator(seed)).requires_grad_()


def recurrence(linear, x: Tensor, times: int = 3) -> Tensor:
    for _ in range(times):
        x = torch.tanh(linear(x))
    return x.square().sum()


@pytest.mark.parametrize("width", [4, 5])
@pytest.mark.parametrize("has_bias", [True, False])
def test_a_shared_map_is_a_linear_map_with_its_gradients(width: int, has_bias: bool) -> None:
    x, weight, bias = random(6, width), random(width, width, seed=1), random(width, seed=2)
    biases = [bias.unsqueeze(0)] if has_bias else None
    leaves = [x, weight, *([bias] if has_bias else [])]
    found = recurrence(TiedLinear([weight.unsqueeze(0)], biases), x)
    expected = recurrence(lambda y: y @ weight + (bias if has_bias else 0), x)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, leaves), torch.autograd.grad(expected, leaves))


def test_groups_of_matrices_have_rows_of_their_own() -> None:
    pair, alone = random(2, 3, 3), random(1, 3, 3, seed=1)
    pair_bias, alone_bias = random(2, 3, seed=2), random(1, 3, seed=3)
    x, leaves = random(8, 3, seed=4), [pair, alone, pair_bias, alone_bias]

    def one_by_one(rows: Tensor) -> Tensor:
        parts = zip(rows.split([3, 3, 2]), [*pair, *alone], [*pair_bias, *alone_bias], strict=True)
        return torch.cat([part @ weight + bias for part, weight, bias in parts])

    found = recurrence(TiedLinear([pair, alone], [pair_bias, alone_bias], sizes=[3, 1]), x)
    expected = recurrence(one_by_one, x)
    torch.testing.assert_close(torch.autograd.grad(found, leaves), torch.autograd.grad(expected, leaves))


def test_groups_that_are_not_trained_leave_the_others_their_gradients() -> None:
    frozen, trained, x = random(1, 3, 3).detach(), random(1, 3, 3, seed=1), random(4, 3, seed=2)
    found = recurrence(TiedLinear([frozen, trained], None, sizes=[1, 1]), x)
    expected = recurrence(lambda rows: torch.cat([rows[:2] @ frozen[0], rows[2:] @ trained[0]]), x)
    torch.testing.assert_close(torch.autograd.grad(found, [trained]), torch.autograd.grad(expected, [trained]))


def test_a_use_costs_two_products_and_one_copy() -> None:
    x, weight, bias = random(6, 4), random(1, 4, 4, seed=1), random(1, 4, seed=2)

    def used(times: int) -> None:
        linear, y = TiedLinear([weight], [bias]), x
        for _ in range(times):
            y = linear(y)
        torch.autograd.grad(y.square().sum(), [weight, bias])

    more = operations(lambda: used(5)) - operations(lambda: used(4))
    assert more == {"cat": 1, "bmm": 2}


def test_a_graph_may_be_walked_twice_and_in_part() -> None:
    x, weight = random(6, 4), random(1, 4, 4, seed=1)
    linear = TiedLinear([weight])
    first = linear(x)
    second = linear(first)
    (of_x,) = torch.autograd.grad(second.sum(), x, retain_graph=True)
    once, again = (torch.autograd.grad(second.sum(), weight, retain_graph=True)[0] for _ in range(2))
    torch.testing.assert_close(once, again)
    expected = torch.autograd.grad((x @ weight[0] @ weight[0]).sum(), (x, weight))
    torch.testing.assert_close((of_x, once), expected)
    (of_first,) = torch.autograd.grad(first.sum(), weight)
    torch.testing.assert_close(of_first, torch.autograd.grad((x @ weight[0]).sum(), weight)[0])


def test_products_keep_the_precision_of_the_weights_under_autocast() -> None:
    weight = random(1, 4, 4).float()
    with torch.autocast("cpu", torch.bfloat16):
        found = TiedLinear([weight])(torch.ones(3, 4, dtype=torch.bfloat16))
    torch.testing.assert_close(found, torch.ones(3, 4).float() @ weight[0])


def test_a_shared_perceptron_is_a_perceptron() -> None:
    layers = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    x, shared = random(4, 6), TiedPerceptron([layers[0], layers[2]])
    torch.testing.assert_close(shared(*x.split([2, 4], 1)), layers(x))


DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")),
]


@pytest.mark.parametrize("device", DEVICES)
def test_the_gates_of_a_gru_are_those_of_pytorch(device: str) -> None:
    cell = nn.GRUCell(4, 3, device=device)
    x, state = random(5, 4).to(device), random(5, 3, seed=1).to(device)
    wide = torch.cat([x @ cell.weight_ih.T + cell.bias_ih, state @ cell.weight_hh.T + cell.bias_hh], 1)
    found, expected = gru_cell(*wide.split(9, 1), state), cell(x, state)
    torch.testing.assert_close(found, expected)
    leaves = [x, state, *cell.parameters()]
    gradients = (torch.autograd.grad(value.square().sum(), leaves) for value in (found, expected))
    torch.testing.assert_close(*gradients)


def compare_the_gates_of_a_gru() -> None:
    from lanczosnet.backends.triton.gru import GRUCell

    for rows, width in ((5, 3), (70, 128)):
        beside = torch.randn(rows, 7 + 3 * width, generator=generator(0), dtype=torch.float32).requires_grad_()
        input_gates = torch.randn(rows, 3 * width, generator=generator(1), dtype=torch.float32).requires_grad_()
        state = torch.randn(rows, width, generator=generator(2), dtype=torch.float32).requires_grad_()
        weight = torch.randn(rows, width, generator=generator(3), dtype=torch.float32)
        results = []
        for cell in (GRUCell.apply, reference("gru_cell")):
            found = cell(input_gates, beside[:, 7:], state)
            results.append((found, *torch.autograd.grad((found * weight).sum(), (input_gates, beside, state))))
        torch.testing.assert_close(*results, atol=1e-5, rtol=1e-5)


@needs_triton
def test_the_kernel_of_a_gru_is_plain_pytorch_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_the_gates_of_a_gru")


@pytest.mark.parametrize("device", DEVICES)
def test_the_gates_of_an_lstm_are_those_of_pytorch(device: str) -> None:
    cell = nn.LSTMCell(4, 3, device=device)
    x, hidden, memory = random(5, 4).to(device), random(5, 3, seed=1).to(device), random(5, 3, seed=2).to(device)
    gates = x @ cell.weight_ih.T + hidden @ cell.weight_hh.T + cell.bias_ih + cell.bias_hh
    found, expected = lstm_cell(gates, memory), cell(x, (hidden, memory))
    torch.testing.assert_close(found, expected)
    leaves = [x, hidden, memory, *cell.parameters()]
    gradients = (torch.autograd.grad(sum(v.square().sum() for v in pair), leaves) for pair in (found, expected))
    torch.testing.assert_close(*gradients)
