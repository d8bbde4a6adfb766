"""Components of a sparse operator as dense blocks."""

import torch

from graph_builders import generator, ragged_operator
from lanczosnet.affinity import dense_blocks, padding_of
from lanczosnet.affinity.padding import block_entries

CPU = torch.device("cpu")
SIZES = (3, 6, 1, 4)


def test_entries_found_once_serve_all_values():
    S = ragged_operator(torch.float64, CPU, sizes=SIZES)
    for keep in (None, torch.tensor([True, False, True, True])):
        layout = padding_of(S.segment, len(SIZES), keep)
        entries = block_entries(S, layout)
        assert (entries.entry is None) == (keep is None)
        other = S.with_values(torch.rand(S.values.shape, generator=generator(0), dtype=torch.float64))
        for operator in (S, other):
            found = dense_blocks(operator, layout, entries)
            assert torch.equal(found.dense(), dense_blocks(operator, layout).dense())
            kept = [i for i in range(len(SIZES)) if keep is None or keep[i]]
            for block, number in enumerate(kept):
                nodes = (S.segment == number).nonzero().squeeze(1)
                assert torch.equal(found.dense()[block, : len(nodes), : len(nodes)], operator.dense()[nodes][:, nodes])


def test_gradients_reach_the_entries_inside_the_blocks_alone():
    S = ragged_operator(torch.float64, CPU, sizes=SIZES)
    layout = padding_of(S.segment, len(SIZES), torch.tensor([True, False, True, False]))
    entries = block_entries(S, layout)
    values = S.values.clone().requires_grad_()
    dense_blocks(S.with_values(values), layout, entries).dense().sum().backward()
    inside = torch.zeros_like(values).index_fill(0, entries.entry, 1.0)
    assert torch.equal(values.grad, inside)
    assert len(entries.entry) == int((S.segment[S.row.long()] % 2 == 0).sum())
