"""Sums within segments."""

import pytest
import torch

from forced import forced
from graph_builders import generator
from lanczosnet.backends import determinism
from lanczosnet.backends.determinism import sum_of_pieces
from lanczosnet.backends.segments import long_rows, row_pointers, segment_sum

SEGMENT = torch.tensor([2, 0, 2, 2, 0, 4, 2])  # 1 and 3 have no node


@pytest.mark.parametrize("shape", [(7,), (7, 3), (7, 2, 3)])
@pytest.mark.parametrize("num_pieces", [1, 2, 5])
def test_pieces_add_up_to_the_segments(shape: tuple[int, ...], num_pieces: int) -> None:
    per_node = torch.randn(shape, generator=generator(0), dtype=torch.float64, requires_grad=True)
    expected = torch.stack([per_node[number == SEGMENT].sum(0) for number in range(5)])
    assert torch.allclose(segment_sum(per_node, SEGMENT, 5), expected)
    assert torch.allclose(sum_of_pieces(per_node, SEGMENT, 5, num_pieces), expected)
    assert torch.autograd.gradcheck(lambda x: sum_of_pieces(x, SEGMENT, 5, num_pieces), per_node)


@pytest.mark.parametrize(("num_nodes", "num_segments"), [(2000, 1), (2000, 3), (6, 4), (3, 7), (0, 2), (0, 0)])
def test_where_determinism_is_asked_for_pieces_are_short_and_take_no_more_memory_than_nodes(
    num_nodes: int, num_segments: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    per_node = torch.randn(num_nodes, 2, generator=generator(0), dtype=torch.float64)
    segment = torch.randint(max(num_segments, 1), (num_nodes,), generator=generator(1))
    expected, summed = segment_sum(per_node, segment, num_segments), sum_of_pieces
    longest, rows = [0], [0]

    def noted(per_node: torch.Tensor, segment: torch.Tensor, num_segments: int, num_pieces: int) -> torch.Tensor:
        rows.append(num_segments * num_pieces)
        longest.extend((segment * num_pieces + torch.arange(len(segment)) % num_pieces).bincount().tolist())
        return summed(per_node, segment, num_segments, num_pieces)

    monkeypatch.setattr(determinism, "sum_of_pieces", noted)
    with forced("segment_sum", "pieces"):
        torch.testing.assert_close(segment_sum(per_node, segment, num_segments), expected)
    assert max(rows) <= max(num_nodes, num_segments)
    assert max(longest) <= 10


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("num_nodes", "num_segments"), [(20_000, 1), (3000, 400), (5, 9), (0, 0), (0, 3)])
def test_on_a_gpu_they_have_the_same_bits_every_time_where_that_is_asked_for(num_nodes: int, num_segments: int) -> None:
    per_node = torch.randn(num_nodes, 4, generator=generator(0)).cuda()
    segment = torch.randint(max(num_segments, 1), (num_nodes,), generator=generator(1)).cuda()
    torch.use_deterministic_algorithms(True)
    try:
        found = [segment_sum(per_node, segment, num_segments) for _ in range(10)]
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(found[0], other) for other in found)
    expected = segment_sum(per_node.double().cpu(), segment.cpu(), num_segments)
    torch.testing.assert_close(found[0].double().cpu(), expected, rtol=1e-4, atol=1e-4)


def test_long_rows_are_cut_into_pieces() -> None:
    count = torch.tensor([3, 0, 10, 4, 9])
    pointer = row_pointers(count)
    found = long_rows(pointer, longest=4)
    assert found is not None
    assert found.row.tolist() == [2, 4]
    assert found.begin.tolist() == [3, 7, 11, 17, 21, 25]
    assert found.end.tolist() == [7, 11, 13, 21, 25, 26]
    numbers = torch.arange(26.0)
    pieces = torch.stack([numbers[begin:end].sum() for begin, end in zip(found.begin, found.end, strict=True)])
    sums = segment_sum(numbers, torch.repeat_interleave(count), 5)[[2, 4]]
    torch.testing.assert_close(found.added_up(pieces.view(-1, 1)).view(-1), sums)
    assert long_rows(pointer, longest=10) is None
