"""Noise on node features."""

import pytest
import torch

from lanczosnet.layers.dropout import FeatureDropout, NodeDropout


def test_whole_nodes_are_dropped_and_the_others_scaled():
    torch.manual_seed(0)
    x = torch.rand(4000, 3) + 1
    factors = NodeDropout(0.75)(x) / x
    assert torch.equal(factors, factors[:, :1].expand_as(factors))
    assert set(factors.unique().tolist()) == {0.0, 4.0}
    assert float((factors[:, 0] == 0).float().mean()) == pytest.approx(0.75, abs=0.03)


def test_graphs_of_a_batch_lose_different_nodes():
    torch.manual_seed(0)
    dropped = NodeDropout(0.5)(torch.ones(2, 50, 3))[..., 0]
    assert not torch.equal(dropped[0], dropped[1])


def test_nothing_is_dropped_without_training_or_without_a_share():
    x = torch.randn(20, 3)
    assert torch.equal(NodeDropout(0.5).eval()(x), x)
    assert torch.equal(NodeDropout(0.0)(x), x)


def test_the_gradient_has_the_same_factors():
    torch.manual_seed(0)
    x = torch.ones(50, 2, requires_grad=True)
    y = NodeDropout(0.5)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_a_share_outside_its_bounds_is_refused(p):
    with pytest.raises(ValueError, match="node_dropout must be at least 0 and below 1"):
        NodeDropout(p)


def test_noise_is_of_nodes_then_of_features():
    torch.manual_seed(0)
    noise = FeatureDropout(0.5, 0.5)
    y = noise(torch.ones(2000, 4))
    assert set(y.unique().tolist()) == {0.0, 4.0}
    is_dropped = (y == 0).all(1)
    assert float(is_dropped.float().mean()) == pytest.approx(0.5 + 0.5 * 0.5**4, abs=0.04)
    assert float((y[~is_dropped] == 0).float().mean()) == pytest.approx(0.5, abs=0.05)
    assert torch.equal(noise.eval()(y), y)
