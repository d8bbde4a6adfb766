"""Sums over slots, and both directions along packed edges."""

import pytest
import torch

from graph_builders import generator
from interpreted import call_interpreted, needs_triton
from lanczosnet.layers.blocks import Padding
from lanczosnet.layers.packed import PackedEdges, Slots

TABLE = torch.tensor([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]], dtype=torch.float64)


def test_slots_that_hold_nothing_add_nothing() -> None:
    slots = Slots(torch.tensor([[0, 1], [1, 2], [2, 2]]), nothing=2)
    assert slots.add_up(TABLE).tolist() == [[11.0, 22.0], [10.0, 20.0], [0.0, 0.0]]


def test_slots_have_weights() -> None:
    slots = Slots(torch.tensor([[0, 1], [1, 2]]), 2, torch.tensor([[2.0, 0.5], [3.0, 7.0]]))
    assert slots.add_up(TABLE).tolist() == [[7.0, 14.0], [30.0, 60.0]]


def two_edges() -> PackedEdges:
    """0 -> 1 and 2 -> 1 in one graph of three nodes and one channel, and a row of padding."""
    weight = torch.tensor([0.5, 0.25, 0.0], dtype=torch.float64)
    return PackedEdges(
        ends=torch.tensor([[1, 0], [1, 2], [0, 0]]),
        touching=Slots(torch.tensor([[1, 4], [0, 2], [3, 4]]), nothing=4),
        arrival=torch.tensor([1, 1, 0]),
        arriving=Slots(torch.tensor([[2, 2], [0, 1], [2, 2]]), 2, weight[torch.tensor([[2, 2], [0, 1], [2, 2]])]),
        weight=weight,
        capacity=(3,),
        padding=Padding(1, 3),
    )


def test_messages_go_from_both_ends_to_where_they_arrive() -> None:
    edges = two_edges()
    assert edges.pairs(TABLE)[:2].tolist() == [[10.0, 20.0, 1.0, 2.0], [10.0, 20.0, 100.0, 200.0]]
    assert edges.received(TABLE).flatten(0, 2).tolist() == [[0.0, 0.0], [3.0, 6.0], [0.0, 0.0]]
    assert edges.received_weight().flatten().tolist() == [0.0, 0.75, 0.0]


def test_gradients_go_the_other_way() -> None:
    edges, state = two_edges(), TABLE.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda state: edges.pairs(state)[:2], state)
    assert torch.autograd.gradcheck(edges.received, state)


def compare_sums(device: str = "cpu") -> None:
    from lanczosnet.layers.packed_kernel import add_up

    for num_sums, num_slots, channels in ((5, 3, 2), (9, 1, 132), (0, 2, 4)):
        table = torch.randn(7, channels, generator=generator(0)).to(device)
        index = torch.randint(7, (num_sums, num_slots), generator=generator(1)).to(device)
        weight = torch.rand(num_sums, num_slots, generator=generator(2)).to(device)
        for chosen in (None, weight):
            expected = Slots(index, 6, chosen).add_up(table.double()).float()
            torch.testing.assert_close(add_up(index, 6, chosen, table), expected)


@needs_triton
def test_the_kernel_adds_up_what_pytorch_does_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_sums")


@needs_triton
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernel_adds_up_what_pytorch_does_on_a_gpu() -> None:
    compare_sums("cuda")
