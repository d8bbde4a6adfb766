"""Sums over slots, and packed nodes: how they enter, meet and receive, and the way back."""

import pytest
import torch
from torch import Tensor

from graph_builders import generator
from interpreted import call_interpreted, needs_triton
from lanczosnet.baselines.endpoint_messages import PackedNodes, Slots, endpoint_messages, endpoint_messages_backward
from lanczosnet.batching.formed import Padding

TABLE = torch.tensor([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]], dtype=torch.float64)


def test_slots_that_hold_nothing_add_nothing() -> None:
    slots = Slots(torch.tensor([[0, 1], [1, 2], [2, 2]]), nothing=2)
    assert slots.add_up(TABLE).tolist() == [[11.0, 22.0], [10.0, 20.0], [0.0, 0.0]]


def two_edges() -> PackedNodes:
    """0 -> 1 and 2 -> 1 in one graph of three nodes and one channel, and a row of padding."""
    return PackedNodes(
        node=torch.tensor([0, 1, 2, 0]),
        own=Slots(torch.tensor([[0], [1], [2]]), nothing=3),
        senders=Slots(
            torch.tensor([[3, 3], [0, 2], [3, 3], [3, 3]]), 3, weights([[0, 0], [0.5, 0.25], [0, 0], [0, 0]])
        ),
        receivers=Slots(torch.tensor([[1], [3], [1], [3]]), 3, weights([[0.5], [0], [0.25], [0]])),
        capacity=(4,),
        padding=Padding(1, 3),
    )


def weights(values: list[list[float]]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_ends_enter_meet_and_arrive() -> None:
    edges = two_edges()
    assert edges.enter(TABLE)[:3].tolist() == TABLE.tolist()
    ends = weights([[9, 1], [-2, 9], [9, 3], [7, 7]])  # of a row as receiver and as sender
    assert edges.endpoint_messages(ends, relu=True).tolist() == [[0.0], [0.25 * (3 - 2)], [0.0], [0.0]]
    assert edges.endpoint_messages(ends, relu=False).tolist() == [[0.0], [0.5 * (1 - 2) + 0.25 * (3 - 2)], [0.0], [0.0]]
    assert edges.received(ends).tolist() == ends[:3].tolist()
    assert edges.received_weight().tolist() == [[0.0], [0.75], [0.0]]


@pytest.mark.parametrize("relu", [True, False])
def test_gradients_go_the_other_way(relu: bool) -> None:
    edges, ends = two_edges(), torch.randn(4, 6, generator=generator(0), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda state: edges.enter(state)[:3], TABLE.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda ends: edges.endpoint_messages(ends, relu=relu), ends)
    assert torch.autograd.gradcheck(lambda ends: edges.received(edges.endpoint_messages(ends, relu=relu)), ends)


def compare_meetings(device: str = "cpu") -> None:
    from lanczosnet.backends.triton import endpoint_messages as kernels

    for num_rows, channels, num_slots in ((6, 5, 3), (9, 1030, 1), (0, 4, 2)):
        ends = torch.randn(num_rows, 2 * channels, generator=generator(0)).to(device)
        ends[2:3, 1] = torch.nan  # must not be lost
        grad = torch.randn(num_rows, channels, generator=generator(1)).to(device)
        senders, receivers = (some_slots(num_rows, num_slots + extra, device) for extra in (0, 2))
        for relu in (True, False):
            met = endpoint_messages(ends.double(), senders, relu).float()
            torch.testing.assert_close(kernels.endpoint_messages(ends, senders, relu), met, equal_nan=True)
            assert met.isnan().any() == (num_rows > 0)
            of_ends = endpoint_messages_backward(ends.double(), grad.double(), senders, receivers, relu).float()
            torch.testing.assert_close(
                kernels.endpoint_messages_backward(ends, grad, senders, receivers, relu), of_ends
            )


def some_slots(num_rows: int, num_slots: int, device: str) -> Slots:
    index = torch.randint(max(num_rows, 1), (num_rows, num_slots), generator=generator(2)).to(device)
    weight = torch.rand(num_rows, num_slots, generator=generator(3)).to(device)
    return Slots(index, num_rows - 1, weight * (index != num_rows - 1))


@needs_triton
def test_the_kernels_let_ends_meet_as_pytorch_does_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_meetings")


@needs_triton
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernels_let_ends_meet_as_pytorch_does_on_a_gpu() -> None:
    compare_meetings("cuda")


def compare_sums(device: str = "cpu") -> None:
    from lanczosnet.backends.triton.endpoint_messages import sum_slots

    for num_sums, num_slots, channels in ((5, 3, 2), (9, 1, 132), (0, 2, 4)):
        table = torch.randn(7, channels, generator=generator(0)).to(device)
        index = torch.randint(7, (num_sums, num_slots), generator=generator(1)).to(device)
        expected = Slots(index, 6).add_up(table.double()).float()
        torch.testing.assert_close(sum_slots(table, Slots(index, 6)), expected)


@needs_triton
def test_the_kernel_adds_up_what_pytorch_does_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_sums")


@needs_triton
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernel_adds_up_what_pytorch_does_on_a_gpu() -> None:
    compare_sums("cuda")
