"""Steps of gated messages: the kernels do what the plain path does."""

import gc
import weakref

import pytest
import torch
from torch import Tensor, nn

from forced import forced
from graph_builders import generator
from interpreted import call_interpreted, needs_triton
from lanczosnet.backends import REFERENCE, serves, use_backend
from lanczosnet.baselines.edge_types import NodeMessages
from lanczosnet.baselines.gated_messages import GatedMessages
from lanczosnet.batching.formed import FormedOperators, Padding

GRAPHS, NODES, SIZE = 3, 5, 6
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class Case:
    """A network's messages on some graphs, on a CPU unless said otherwise."""

    def __init__(self, num_channels: int = 2, width: int = 7, num_nodes: int = NODES, device: str = "cpu") -> None:
        torch.manual_seed(0)
        self.messages = NodeMessages(SIZE, num_channels, (width,), "mean").to(device)
        self.cell = nn.GRUCell(num_channels * SIZE, SIZE).to(device)
        operators = torch.rand(2, num_channels, GRAPHS, num_nodes, num_nodes, generator=generator(0)).to(device)
        self.operators = [FormedOperators(matrix, Padding(GRAPHS, num_nodes)) for matrix in operators]
        self.state = torch.randn(GRAPHS * num_nodes, SIZE, generator=generator(1)).to(device).requires_grad_()
        self.weight = torch.randn(GRAPHS * num_nodes, SIZE, generator=generator(2)).to(device)

    @property
    def leaves(self) -> list[Tensor]:
        return [self.state, *self.messages.parameters(), *self.cell.parameters()]

    def gated(self, num_steps: int) -> GatedMessages:
        return GatedMessages(self.messages, self.cell, num_steps)

    def states(self, num_steps: int, on_kernels: bool) -> list[Tensor]:
        """After every step, which are on two graphs in turn, with something else in between."""
        gated = self.gated(max(num_steps, 1))
        device = self.state.device.type
        chosen = forced("gated_steps", "triton", device) if on_kernels else use_backend(REFERENCE)
        with chosen:
            steps = [gated.along(operator) for operator in self.operators]
        found = [self.state]
        for number in range(num_steps):
            changed = found[-1] * 0.5 if number % 3 == 2 else found[-1]
            found.append(steps[number % 2](changed))
        return found

    def outcome(self, on_kernels: bool, num_steps: int = 4) -> tuple[Tensor, ...]:
        last = self.states(num_steps, on_kernels)[-1]
        return last, *torch.autograd.grad((last * self.weight).sum(), self.leaves)


def compare_steps() -> None:
    for case in (Case(), Case(num_channels=1), Case(width=70), Case(num_nodes=18)):
        torch.testing.assert_close(case.outcome(True), case.outcome(False), atol=1e-5, rtol=1e-4)


def compare_without_gradients() -> None:
    case = Case()
    with torch.no_grad():
        torch.testing.assert_close(case.states(5, True), case.states(5, False), atol=1e-5, rtol=1e-4)


def walk_twice_and_in_part() -> None:
    case = Case()
    both = {on_kernels: case.states(4, on_kernels) for on_kernels in (True, False)}
    for first, last in ((4, 0), (2, 1), (4, 2), (3, 0), (4, 0)):
        wanted = case.leaves if last == 0 else None
        found, expected = (
            torch.autograd.grad((states[first] * case.weight).sum(), wanted or [states[last]], retain_graph=True)
            for states in (both[True], both[False])
        )
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def give_memory_back() -> None:
    case = Case()
    with forced("gated_steps", "triton"):
        gated = case.gated(2)
        step = gated.along(case.operators[0])
    last = step(step(case.state))
    tables = weakref.ref(gated.fused_steps.tables)
    last.sum().backward()
    gc.disable()  # nothing may be left to it: it does not know how much memory waits for it
    del gated, step, last
    assert tables() is None


def take_one_step_too_many() -> None:
    case = Case()
    with forced("gated_steps", "triton"):
        step = case.gated(1).along(case.operators[0])
    with pytest.raises(RuntimeError, match="tables for 1 steps"):
        step(step(case.state))


CHECKS = "compare_steps compare_without_gradients walk_twice_and_in_part give_memory_back take_one_step_too_many"


@needs_triton
@pytest.mark.parametrize("check", CHECKS.split())
def test_kernels_do_what_the_plain_path_does_in_the_interpreter(check: str) -> None:
    call_interpreted(__file__, check)


@needs_cuda
@needs_triton
def test_kernels_do_what_the_plain_path_does_on_a_gpu() -> None:
    case = Case(num_channels=7, width=128, num_nodes=28, device="cuda")
    operators = case.operators[0]
    assert serves("gated_steps", "triton", operators.matrix, case.gated(1), operators.padding)
    torch.testing.assert_close(case.outcome(True), case.outcome(False), atol=1e-4, rtol=1e-3)
