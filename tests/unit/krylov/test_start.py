"""Start vectors: one per graph, zero on padding."""

import pytest
import torch

from graph_builders import generator, ragged_operator, random_operator
from lanczosnet.krylov import start


def test_ones_marks_the_nodes(dtype, device):
    padded = ragged_operator(dtype, device).padded()
    vector = start.ones(padded)
    assert vector.dtype == dtype
    assert torch.equal(vector, padded.mask.to(dtype))
    assert torch.equal(start.ones(random_operator(4, dtype, device)), torch.ones(4, dtype=dtype, device=device))


def test_the_mean_feature_averages_channels_on_nodes_alone(dtype, device):
    padded = ragged_operator(dtype, device).padded()
    features = torch.rand(*padded.shape[:-1], 3, generator=generator(0)).to(device) + 1
    vector = start.mean_feature(padded, features)
    torch.testing.assert_close(vector, (features.mean(-1) * padded.mask).to(dtype))
    with pytest.raises(ValueError, match=r"features must have shape \[4, 8, 'channel'\], but have \(4, 8\)"):
        start.mean_feature(padded, features[..., 0])


def test_the_mean_feature_is_differentiable(device):
    operator = random_operator(4, torch.float64, device)
    features = torch.rand(4, 2, dtype=torch.float64, device=device, requires_grad=True)
    start.mean_feature(operator, features).sum().backward()
    assert features.grad.tolist() == [[0.5, 0.5]] * 4


def test_a_random_start_follows_its_generator_and_is_zero_on_padding(dtype, device):
    padded = ragged_operator(dtype, device).padded()
    first, again, other = (start.random(padded, generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(first != 0, padded.mask)
    assert first.dtype == dtype
    assert first.device.type == device.type


def test_a_seed_is_a_seed_in_both_types(device):
    single, double = (start.random(random_operator(9, t, device), generator(3)) for t in (torch.float32, torch.float64))
    assert torch.equal(single, double.float())
