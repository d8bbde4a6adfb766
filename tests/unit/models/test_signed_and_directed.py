"""LanczosNet on signs and directions of edges."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from graph_builders import generator
from lanczosnet.models import LanczosNet
from lanczosnet.transforms import AddRitzPairs


def graph(num_nodes: int = 30, *, signed: bool = False, seed: int = 0) -> Data:
    source = generator(seed)
    edges = (torch.rand(num_nodes, num_nodes, generator=source) < 0.12).fill_diagonal_(False).nonzero().T
    weight = torch.rand(edges.shape[1], generator=source) + 0.5
    if signed:
        weight = weight * torch.randint(0, 2, weight.shape, generator=source).mul(2).sub(1)
    return Data(x=torch.randn(num_nodes, 4, generator=source), edge_index=edges, edge_weight=weight)


def network(**options) -> LanczosNet:
    torch.manual_seed(0)
    return LanczosNet(4, 8, 3, **({"num_steps": 12} | options)).eval()


def reversed_edges(data: Data) -> Data:
    return data.clone().update({"edge_index": data.edge_index.flip(0)})


def with_absolute_weights(data: Data) -> Data:
    return data.clone().update({"edge_weight": data.edge_weight.abs()})


def test_a_magnetic_network_sees_directions():
    data, magnetic = graph(), network(magnetic=0.25)
    assert not torch.allclose(magnetic(data), magnetic(reversed_edges(data)), atol=1e-2)
    assert magnetic(data.x, data.edge_index, data.edge_weight).equal(magnetic(data))


def test_a_signed_network_sees_signs():
    data, signed = graph(signed=True), network(signed=True)
    assert not torch.allclose(signed(data), signed(with_absolute_weights(data)), atol=1e-2)


@pytest.mark.parametrize("options", [{"magnetic": 0.25}, {"magnetic": 0.1, "signed": True}, {"signed": True}])
def test_pairs_of_the_transform_are_those_of_the_network(options: dict):
    data, model = graph(signed="signed" in options), network(**options)
    carried = AddRitzPairs(12, **options)(data)
    torch.testing.assert_close(model(carried), model(data), atol=1e-5, rtol=1e-4)
    assert vars(model.transform) == vars(AddRitzPairs(12, search_steps=12, **options))
    with pytest.raises(ValueError, match="apply AddRitzPairs"):
        network(**options, num_steps=11)(carried)


@pytest.mark.parametrize("options", [{"magnetic": 0.25}, {"signed": True}])
def test_a_batch_equals_its_graphs_one_by_one(options: dict):
    graphs = [graph(size, signed="signed" in options, seed=size) for size in (9, 30, 1)]
    model = network(**options, readout="mean")
    singles = torch.cat([model(Batch.from_data_list([each])) for each in graphs])
    torch.testing.assert_close(model(Batch.from_data_list(graphs)), singles, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("options", [{"magnetic": 0.25, "feedforward": True}, {"signed": True}])
def test_every_parameter_receives_a_gradient(options: dict):
    model = network(**options)
    out = model(graph(signed=True))
    (out * torch.randn(out.shape, generator=generator(0))).sum().backward()
    assert [key for key, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


def test_relabelling_the_nodes_permutes_the_outputs():
    data, model = graph(), network(magnetic=0.25)
    order = torch.randperm(30, generator=generator(2))
    place = order.argsort()
    other = Data(x=data.x[order], edge_index=place[data.edge_index], edge_weight=data.edge_weight)
    torch.testing.assert_close(model(other), model(data)[order], atol=1e-5, rtol=1e-4)


def test_all_pairs_give_the_powers_of_s():
    """With scales that differ in nothing but their form, r^t on all pairs is S^t multiplied out."""
    data = graph()
    long = network(magnetic=0.25, num_steps=30, short_scales=(), long_scales=(2,), spectral_filter="power")
    short = network(magnetic=0.25, num_steps=30, short_scales=(2,), long_scales=())
    short.load_state_dict(long.state_dict())
    torch.testing.assert_close(long(data), short(data), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"magnetic": 0.9}, "between 0 and 0.5"),
        ({"magnetic": 0.25, "block": "plain"}, "needs residual blocks"),
        ({"magnetic": 0.25, "num_edge_types": 2}, "takes no edge types"),
        ({"magnetic": 0.25, "hidden_channels": 7}, "even number of hidden_channels"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict, message: str):
    with pytest.raises(ValueError, match=message):
        LanczosNet(**({"in_channels": 4, "hidden_channels": 8, "out_channels": 3} | options))
