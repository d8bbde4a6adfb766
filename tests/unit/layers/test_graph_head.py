"""A hidden layer after the readout, where descriptors join."""

import pytest
import torch

from lanczosnet import AdaLanczosNet, LanczosNet
from lanczosnet.graphs import pack
from lanczosnet.layers.readout import GraphHead
from molecule_builders import NUM_EDGE_TYPES, NUM_NODE_TYPES, batched, molecules

OPTIONS = {"node_input": "learned", "embedding_channels": 6, "num_edge_types": NUM_EDGE_TYPES, "readout": "sum"}


def network(kind=LanczosNet, **options):
    torch.manual_seed(0)
    return kind(NUM_NODE_TYPES, 8, 2, 2, **OPTIONS, num_steps=6, head_channels=5, **options).eval()


def with_descriptors():
    graphs = molecules((5, 2, 12, 7, 3, 6))
    for i, graph in enumerate(graphs):
        graph.descriptors = torch.tensor([[float(i), 2.0 - i, float("nan") if i == 1 else 1.0]])
    return graphs


@pytest.mark.parametrize("kind", [LanczosNet, AdaLanczosNet])
def test_a_batch_equals_its_graphs_one_by_one(kind):
    model, graphs = network(kind, descriptor_channels=3), with_descriptors()
    together = model(batched(graphs))
    assert together.shape == (6, 2)
    torch.testing.assert_close(together, torch.cat([model(graph) for graph in graphs]), rtol=1e-4, atol=1e-5)


def test_padded_blocks_bring_the_descriptors():
    model, graphs = network(descriptor_channels=3), with_descriptors()
    blocks = model.prepare_all(pack(graphs))
    chosen = torch.tensor([4, 1, 2, 0])
    expected = model(batched([graphs[i] for i in chosen.tolist()]))
    for same_shape in (True, False):
        part = blocks.gather(chosen, same_shape=same_shape)
        torch.testing.assert_close(model(part), expected, rtol=1e-4, atol=1e-5)
    pairs = blocks.gather_pairs(chosen, 2 * blocks.mask.shape[1])
    torch.testing.assert_close(model(pairs), expected, rtol=1e-4, atol=1e-5)


def test_descriptors_are_standardised_and_unknown_ones_are_the_mean():
    head = GraphHead(2, 2, 4, 1)
    head.set_scale(torch.tensor([[0.0, 5.0], [2.0, 5.0], [float("nan"), 5.0]]))
    assert (head.mean.tolist(), head.deviation[0]) == ([1.0, 5.0], 1.0)
    x = torch.randn(1, 2)
    unknown, mean = (head(x, torch.tensor([[value, 5.0]])) for value in (float("nan"), 1.0))
    assert torch.equal(unknown, mean)
    assert not torch.equal(head(x, torch.tensor([[2.0, 5.0]])), mean)
    assert torch.equal(head(x, torch.tensor([[1.0, 7.0]])), mean)  # what was always 5 counts for nothing


def test_rare_flags_are_not_made_large():
    head = GraphHead(2, 1, 4, 1)
    head.set_scale(torch.tensor([[1.0]] + [[0.0]] * 99))
    assert head.deviation.tolist() == [1.0]


@pytest.mark.parametrize("descriptors", [None, torch.zeros(1, 3)])
def test_missing_descriptors_are_an_error_that_says_so(descriptors):
    head = GraphHead(2, 2, 4, 1)
    with pytest.raises(ValueError, match="every graph needs 2 descriptors"):
        head(torch.randn(1, 2), descriptors)


def test_every_parameter_of_the_head_gets_a_gradient():
    model = network(descriptor_channels=3)
    model(batched(with_descriptors())).sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in model.head.parameters())


def test_fingerprints_are_the_hidden_layer():
    model, graphs = network(), molecules((5, 3, 7))
    graph = model.prepare(batched(graphs))
    found = model.fingerprints(graph)
    assert found.shape == (3, 5)
    torch.testing.assert_close(model.head.output(found), model(batched(graphs)))


def test_options_of_the_head_must_fit():
    with pytest.raises(ValueError, match="follow a readout"):
        LanczosNet(3, 8, 2, 2, head_channels=4)
    with pytest.raises(ValueError, match="join at the head"):
        LanczosNet(3, 8, 2, 2, readout="sum", descriptor_channels=4)
    headless = LanczosNet(NUM_NODE_TYPES, 8, 2, 2, **OPTIONS)
    graph = headless.prepare(batched(molecules()))
    with pytest.raises(ValueError, match="has no head"):
        headless.fingerprints(graph)
