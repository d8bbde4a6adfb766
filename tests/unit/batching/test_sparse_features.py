"""Features without their zeros give the same network, forward and backward."""

import pytest
import torch
from torch_geometric.data import Data

from graph_builders import generator
from lanczosnet.batching.sparse_features import SparseFeatures, sparse_where_it_pays
from lanczosnet.layers.dropout import FeatureDropout
from lanczosnet.models import AdaLanczosNet, LanczosNet


def bag_of_words(nodes=90, words=400, share=0.02):
    random = generator(1)
    counts = torch.rand(nodes, words, generator=random, dtype=torch.float64)
    return torch.where(counts < share, counts / share, 0.0)


def graph(nodes=90):
    """A ring with chords, and two small components."""
    ring = torch.arange(nodes - 10)
    chords = torch.stack([ring, (ring * 7 + 3) % (nodes - 10)])
    small = torch.tensor([[nodes - 10, nodes - 9, nodes - 5], [nodes - 9, nodes - 8, nodes - 4]])
    index = torch.cat([torch.stack([ring, ring.roll(1)]), chords, small], 1)
    index = index[:, index[0] != index[1]]
    return Data(x=bag_of_words(nodes), edge_index=torch.cat([index, index.flip(0)], 1).unique(dim=1))


def test_products_and_their_gradients():
    dense = bag_of_words()
    sparse = sparse_where_it_pays(dense)
    assert isinstance(sparse, SparseFeatures)
    weights = torch.randn(400, 5, dtype=torch.float64, generator=generator(2), requires_grad=True)
    assert torch.allclose(sparse @ weights, dense @ weights)
    (found,) = torch.autograd.grad((sparse @ weights).square().sum(), weights)
    (wanted,) = torch.autograd.grad((dense @ weights).square().sum(), weights)
    assert torch.allclose(found, wanted)


@pytest.mark.parametrize(
    "features",
    [
        bag_of_words(share=0.2),
        bag_of_words(words=40),
        torch.zeros(5, dtype=torch.long),
        bag_of_words().requires_grad_(),
    ],
    ids=["many entries", "few columns", "types", "differentiated"],
)
def test_features_stay_as_they_are_where_nothing_is_gained(features):
    assert sparse_where_it_pays(features) is features


@pytest.mark.parametrize("network", [LanczosNet, AdaLanczosNet])
def test_the_network_is_the_same(network, monkeypatch):
    data = graph()
    torch.manual_seed(0)
    model = network(400, 8, 3, num_steps=6, filter_channels=(4,)).double()
    inputs = model.prepare(data)
    assert isinstance(inputs.x, SparseFeatures)
    found = torch.autograd.grad(model(inputs).square().sum(), list(model.parameters()))
    monkeypatch.setattr("lanczosnet.batching.sparse.sparse_where_it_pays", lambda features: features)
    wanted = torch.autograd.grad(model(data).square().sum(), list(model.parameters()))
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(found, wanted, strict=True))


def test_dropout_scales_what_it_keeps_and_drops_whole_nodes():
    sparse = sparse_where_it_pays(bag_of_words())
    noise = FeatureDropout(0.5, 0.2)
    torch.manual_seed(0)
    noisy = noise(sparse)
    factor = noisy.entries / sparse.entries
    assert {round(value, 6) for value in factor.unique().tolist()} == {0.0, 2.5}
    dropped = torch.zeros(90).index_add(0, sparse.node, (factor > 0).float()) == 0
    assert 0.3 < dropped.float().mean() < 0.7
    assert noise.eval()(sparse) is sparse
