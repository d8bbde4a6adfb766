"""Residual blocks around the convolutions of the Lanczos networks and of GCN."""

import pytest
import torch

from graph_builders import generator
from lanczosnet.batching.sparse_features import SparseFeatures, sparse_where_it_pays
from lanczosnet.graphs import pack
from lanczosnet.layers.residual import InputLinear, ResidualBlock, ResidualStack
from lanczosnet.models import model
from molecule_builders import NUM_EDGE_TYPES, NUM_NODE_TYPES, batched, molecules

NETWORKS = ("lanczosnet", "adalanczosnet", "gcn")


def network(name: str, **options) -> torch.nn.Module:
    torch.manual_seed(0)
    common = {"node_input": "learned", "embedding_channels": 6, "num_edge_types": NUM_EDGE_TYPES, "readout": "gated"}
    return model(name, NUM_NODE_TYPES, 8, 2, 3, block="residual", **(common | options)).eval()


def test_a_block_adds_what_it_makes_of_the_normalised_convolution() -> None:
    block, x = ResidualBlock(4, feedforward=True, dropout=0.0), torch.randn(5, 4, generator=generator(0))
    mean, deviation = x.mean(1, keepdim=True), x.var(1, correction=0, keepdim=True).add(1e-5).sqrt()
    linear = block.feedforward
    expected = x + torch.nn.functional.gelu(3.0 * (x - mean) / deviation) @ linear.weight.T + linear.bias
    torch.testing.assert_close(block(x, lambda y: 3.0 * y), expected)


def test_without_a_feedforward_map_the_activation_is_added() -> None:
    block, x = ResidualBlock(4, feedforward=False, dropout=0.0), torch.randn(5, 4, generator=generator(0))
    torch.testing.assert_close(block(x, lambda y: -1e3 * y.abs()), x, atol=1e-4, rtol=0.0)
    assert len(list(block.parameters())) == 2


def test_dropout_acts_in_training_only() -> None:
    stack, x = ResidualStack(4, 6, 2, 2, dropout=0.5), torch.randn(5, 4, generator=generator(0))
    convolutions = [torch.nn.Identity()] * 2
    assert not torch.equal(stack(x, convolutions), stack(x, convolutions))
    stack.eval()
    assert torch.equal(stack(x, convolutions), stack(x, convolutions))


def test_the_input_map_takes_features_without_their_zeros() -> None:
    x = torch.zeros(6, 200).scatter_(1, torch.arange(6).unsqueeze(1), 2.0)
    sparse, linear = sparse_where_it_pays(x), InputLinear(200, 3)
    assert isinstance(sparse, SparseFeatures)
    torch.testing.assert_close(linear(sparse), linear(x))


@pytest.mark.parametrize("name", NETWORKS)
def test_padded_batches_equal_graphs_one_by_one(name: str) -> None:
    residual, graphs = network(name), molecules()
    singles = torch.cat([residual(batched([graph])) for graph in graphs])
    torch.testing.assert_close(residual(batched(graphs)), singles, atol=1e-5, rtol=1e-4)
    padded = residual.prepare_all(pack(graphs))
    assert padded is not None
    order = torch.arange(len(graphs))
    for same_shape in (False, True):
        torch.testing.assert_close(residual(padded.gather(order, same_shape=same_shape)), singles, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_parameter_receives_a_gradient(name: str) -> None:
    residual = network(name)
    residual(batched(molecules())).square().sum().backward()
    assert [key for key, p in residual.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


@pytest.mark.parametrize("name", NETWORKS)
def test_an_unknown_kind_of_block_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="block must be 'residual' or 'plain', not 'dense'"):
        model(name, 4, 8, 3, block="dense")


@pytest.mark.parametrize("options", [{"residual": True}, {"normalization": "layer"}])
def test_options_of_the_plain_form_are_refused(options: dict) -> None:
    with pytest.raises(ValueError, match="leave normalization and residual out, or pass block='plain'"):
        model("lanczosnet", 4, 8, 3, block="residual", **options)
