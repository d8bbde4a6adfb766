"""Learned times of diffusion."""

import pytest
import torch

from lanczosnet import AdaLanczosNet, LanczosNet
from lanczosnet.filters import HeatFilter
from lanczosnet.filters.spectral import responses, responses_and_slopes
from molecule_builders import NUM_NODE_TYPES, batched, molecules

TIMES = (4, 16, 64)
VALUES = torch.linspace(-1, 1, 9, dtype=torch.float64)


def test_the_response_is_the_heat_kernel_at_the_first_times() -> None:
    expected = torch.stack([torch.exp(-time * (1 - VALUES)) for time in TIMES], -1)
    torch.testing.assert_close(HeatFilter(TIMES).double()(VALUES), expected, rtol=1e-5, atol=1e-7)


def test_long_times_leave_next_to_nothing_of_directions_that_carry_nothing() -> None:
    assert HeatFilter((10, 20))(torch.zeros(1)).max() < 1e-4


def test_times_are_learned_and_reset() -> None:
    chosen = HeatFilter(TIMES)
    optimizer = torch.optim.SGD(chosen.parameters(), lr=1.0)
    chosen(torch.tensor([0.95])).sum().backward()
    optimizer.step()
    assert (chosen.times > torch.tensor([4.0, 16.0, 64.0])).all()  # longer times let less through
    chosen.reset_parameters()
    torch.testing.assert_close(chosen.times, torch.tensor([4.0, 16.0, 64.0]))


@pytest.mark.parametrize("wrong", [(0, 5), (float("inf"),), (4, 4)])
def test_first_times_are_positive_finite_and_distinct(wrong) -> None:
    with pytest.raises(ValueError, match=r"times of diffusion must be positive|scales must be"):
        HeatFilter(wrong)


def test_layers_together_respond_as_one_by_one() -> None:
    layers = [HeatFilter((2, 8)).double(), HeatFilter((3, 30)).double()]
    expected = torch.stack([layer(VALUES) for layer in layers], -2)
    torch.testing.assert_close(responses(layers, layers[0].features(VALUES)), expected)
    together, slopes = responses_and_slopes(layers, VALUES)
    torch.testing.assert_close(together, expected)
    torch.testing.assert_close(slopes, torch.stack([layer.with_slope(VALUES)[1] for layer in layers], -2))


@pytest.mark.parametrize("kind", [LanczosNet, AdaLanczosNet])
def test_networks_learn_times_the_same_in_blocks_and_sparse(kind) -> None:
    torch.manual_seed(0)
    options = {"node_input": "learned", "embedding_channels": 6, "readout": "mean", "num_steps": 40}
    network = kind(NUM_NODE_TYPES, 8, 2, 2, long_scales=(4, 16), spectral_filter="heat", **options).double()
    graphs = batched(molecules())
    blocks = network.padded(graphs, validate=True)
    outputs = [network(graphs), network(blocks.gather(torch.arange(len(blocks))))]
    torch.testing.assert_close(*outputs)
    for output in outputs:
        (slope,) = torch.autograd.grad(output.square().sum(), network.convolutions[0].filter.parameters())
        assert slope.abs().min() > 0
