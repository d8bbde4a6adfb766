"""Numbers on edges in both Lanczos networks."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from graph_builders import generator, random_edges
from lanczosnet import load_model
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.batching import from_data
from lanczosnet.batching.edge_features import edge_features
from lanczosnet.graphs import PackedGraphs
from lanczosnet.graphs.formats.objects import data_objects
from lanczosnet.layers.edge_gates import EdgeGates
from lanczosnet.models import AdaLanczosNet, LanczosNet, model
from lanczosnet.training import JobSpec, TrainingError, run
from lanczosnet.training.job import job_of

BOTH = pytest.mark.parametrize("kind", [LanczosNet, AdaLanczosNet])


def graph(num_nodes: int = 30, seed: int = 0, channels: int = 3) -> Data:
    """Its edges have other numbers in their two directions."""
    source = generator(seed)
    edges = random_edges(num_nodes, seed)
    return Data(
        x=torch.randn(num_nodes, 4, generator=source),
        edge_index=edges,
        edge_attr=torch.randn(edges.shape[1], channels, generator=source),
        y=torch.randint(0, 2, (num_nodes,), generator=source),
    )


def network(kind: type = LanczosNet, **options) -> torch.nn.Module:
    torch.manual_seed(0)
    return kind(4, 8, 3, **({"num_steps": 6, "edge_channels": 3, "num_gates": 2} | options)).eval()


def test_gates_multiply_s_on_the_edges():
    data = graph(12)
    A = adjacency(data.edge_index, num_nodes=12)
    held = edge_features(data, 3, A, validate=True)
    dense = torch.zeros(12, 12, 3).index_put(tuple(data.edge_index.flip(0)), data.edge_attr)
    S = normalized(A).dense().unsqueeze(-1) * (1 - torch.eye(12)).unsqueeze(-1)
    found = torch.stack([operator.dense() for operator in held.gated(held.values)], -1)
    torch.testing.assert_close(found, S * dense)


def test_the_product_of_a_gated_operator_has_the_gradient_of_its_dense_form():
    data = graph(8)
    data.edge_attr = data.edge_attr.double()
    A = adjacency(data.edge_index, torch.ones(data.num_edges, dtype=torch.float64), num_nodes=8)
    held = edge_features(data, 3, A, validate=True)
    gates = torch.rand(len(held.values), 1, dtype=torch.float64, requires_grad=True)
    x = torch.randn(8, 2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda gates, x: held.gated(gates)[0] @ x, (gates, x))


@BOTH
@pytest.mark.parametrize("block", ["residual", "plain"])
def test_every_parameter_receives_a_gradient_and_outputs_depend_on_the_numbers(kind: type, block: str):
    net, data = network(kind, block=block), graph()
    out = net(data)
    (out * torch.randn(out.shape, generator=generator(0))).sum().backward()
    assert [key for key, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []
    other = data.clone().update({"edge_attr": data.edge_attr.flip(0)})
    assert not torch.allclose(net(other), out, atol=1e-3)
    called = net(data.x, data.edge_index, edge_attr=data.edge_attr)
    torch.testing.assert_close(called, out)


@BOTH
def test_the_gradient_of_the_whole_network_is_right(kind: type):
    net, data = network(kind, num_steps=12).double(), graph(9)
    data.x, data.edge_attr = data.x.double(), data.edge_attr.double()
    weight = net.edge_gates.layers[0].weight.detach().clone().requires_grad_()

    def loss(weight: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(net, {"edge_gates.layers.0.weight": weight}, (data,)).square().sum()

    torch.autograd.gradcheck(loss, weight, fast_mode=True)


@BOTH
def test_a_batch_equals_its_graphs_one_by_one_in_both_layouts(kind: type, monkeypatch):
    graphs, net = [graph(size, size) for size in (9, 30, 2)], network(kind, readout="mean")
    dense = net(Batch.from_data_list(graphs))
    singles = torch.cat([net(Batch.from_data_list([each])) for each in graphs])
    torch.testing.assert_close(dense, singles, atol=1e-5, rtol=1e-4)
    monkeypatch.setattr(from_data, "DENSE_UP_TO", 0)
    torch.testing.assert_close(net(Batch.from_data_list(graphs)), dense, atol=1e-5, rtol=1e-4)


def test_types_and_numbers_can_stand_side_by_side():
    data = graph()
    data.edge_type = torch.arange(data.num_edges) % 2
    net = network(num_edge_types=2)
    assert net.convolutions[0].num_edge_types == 4
    other = data.clone().update({"edge_type": 1 - data.edge_type})
    assert not torch.allclose(net(other), net(data), atol=1e-3)


def test_gates_standardise_and_cut_off():
    gates = EdgeGates(2, 3)
    gates.set_scale(torch.tensor([[1.0, 7.0], [3.0, 7.0]]))
    assert gates.mean.tolist() == [2.0, 7.0]
    assert gates.deviation.tolist() == [1.0, 1.0]
    far = gates(torch.tensor([[2.0 + 10, 7.0], [1e9, 7.0]]))
    assert far[0].equal(far[1])
    assert far.abs().max() <= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_attr": None}, "has no edge_attr"),
        ({"edge_attr": torch.ones(3, 3)}, r"real edge_attr \[edge, 3\]"),
        ({"edge_attr": torch.full((108, 3), torch.nan)}, "must be finite"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict, message: str):
    with pytest.raises(ValueError, match=message):
        network()(graph().update(change))


def test_numbers_that_no_option_takes_are_refused():
    data = graph()
    with pytest.raises(ValueError, match=r"takes no edge_attr: set num_edge_types .* edge_channels"):
        network(edge_channels=0)(data.x, data.edge_index, edge_attr=data.edge_attr)
    with pytest.raises(ValueError, match="no numbers on edges"):
        network(magnetic=0.25)


@pytest.mark.parametrize("name", ["lanczosnet", "adalanczosnet"])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_training_uses_them_and_the_model_keeps_their_scale(name: str, level: str, tmp_path):
    graphs = [graph(8, seed).update({"y": torch.tensor([seed % 2])}) for seed in range(20)]
    data = data_objects(graph() if level == "node" else graphs)
    settings = {"epochs": 2, "hidden_channels": 8, "num_layers": 2}
    job = job_of(JobSpec("edges", name, settings=settings, split="5-per-class" if level == "node" else None), data)
    assert job.architecture.options["edge_channels"] == 3
    result = run(job, tmp_path / "model")
    found = load_model(tmp_path / "model")
    held = data.edge["edge_attr"] if isinstance(data, PackedGraphs) else data.edge_attr
    assert found.network.edge_gates.mean.abs().sum() > 0
    assert (found.network.edge_gates.mean - held.mean(0)).abs().max() < 0.2
    assert len(found.predict(graph() if level == "node" else graphs).values) == (30 if level == "node" else 20)
    assert result.epochs == 2


def test_networks_of_the_comparison_refuse_them():
    with pytest.raises(TrainingError, match="holds real numbers, which gcn does not use: take lanczosnet"):
        job_of(JobSpec("edges", "gcn", split="5-per-class"), data_objects(graph()))


def test_whole_numbers_are_types():
    data = graph()
    data.edge_attr = torch.arange(data.num_edges).remainder(3).view(-1, 1)
    job = job_of(JobSpec("edges", split="5-per-class"), data_objects(data))
    assert job.architecture.options["num_edge_types"] == 3
    flags = data.clone().update({"edge_attr": torch.nn.functional.one_hot(data.edge_attr.view(-1)).float()})
    net = model("lanczosnet", 4, 8, 2, num_edge_types=3).eval()
    assert net(data).equal(net(flags))
    kinds = data.clone().update({"edge_type": data.edge_attr.view(-1)})
    del kinds.edge_attr
    assert job_of(JobSpec("e", split="5-per-class"), data_objects(kinds)).architecture.options["num_edge_types"] == 3


@pytest.mark.parametrize(
    ("attr", "message"),
    [
        (torch.arange(108).view(-1, 1), "too many for types"),
        (torch.full((108, 2), 2), "several whole numbers per edge"),
        (torch.full((108,), -1), "numbered from 0"),
    ],
)
def test_edge_attr_of_no_use_is_refused_loudly(attr: torch.Tensor, message: str):
    with pytest.raises(TrainingError, match=message):
        job_of(JobSpec("edges", split="5-per-class"), data_objects(graph().update({"edge_attr": attr})))
