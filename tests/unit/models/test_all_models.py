"""What all eleven networks promise, in both tasks."""

import copy

import pytest
import torch
from torch_geometric.data import Data

from graph_builders import generator, path_edges, random_edges
from lanczosnet.graphs import pack
from lanczosnet.models import MODELS, model
from molecule_builders import NUM_EDGE_TYPES, NUM_NODE_TYPES, batched, molecule, molecules, relabelled

SMALL = {"lanczosnet": {"num_steps": 8}, "adalanczosnet": {"num_steps": 8}, "gat": {"heads": 2}}


def graph_network(name: str, width: int = 8, **more) -> torch.nn.Module:
    """Two targets per graph, from node types and edge types."""
    torch.manual_seed(0)
    common = {"node_input": "learned", "embedding_channels": 6, "num_edge_types": NUM_EDGE_TYPES, "readout": "gated"}
    return model(name, NUM_NODE_TYPES, width, 2, 3, **(common | SMALL.get(name, {}) | more))


def node_network(name: str, **more) -> torch.nn.Module:
    """Three classes per node, from four features."""
    torch.manual_seed(0)
    return model(name, 4, 8, 3, 2, **(SMALL.get(name, {}) | more))


def node_graph() -> Data:
    """A large component, a path, and six isolated nodes."""
    x = torch.randn(40, 4, generator=generator(0))
    y = torch.randint(3, (40,), generator=generator(1))
    return Data(x=x, edge_index=torch.cat([random_edges(28), path_edges(6) + 28], dim=1), y=y)


@pytest.fixture(params=MODELS)
def name(request) -> str:
    return request.param


def test_the_catalogue_has_the_eleven_networks_of_the_comparison() -> None:
    assert len(MODELS) == 11
    assert {kind.__name__ for kind in MODELS.values()} == {
        *("GCNFP", "GGNN", "DCNN", "ChebyNet", "GCN", "MPNN", "GraphSAGE", "GPNN", "GAT"),
        *("LanczosNet", "AdaLanczosNet"),
    }


def test_shapes_follow_the_task(name: str) -> None:
    assert graph_network(name)(batched(molecules())).shape == (5, 2)
    assert node_network(name)(node_graph()).shape == (40, 3)


def test_what_does_not_depend_on_parameters_may_be_prepared_once(name: str) -> None:
    for network, data in ((graph_network(name), batched(molecules())), (node_network(name), node_graph())):
        assert network(network.prepare(data)).equal(network(data))


def test_node_types_that_a_network_does_not_know_are_an_error(name: str) -> None:
    graph = molecule(4)
    graph.x[1] = NUM_NODE_TYPES
    with pytest.raises(ValueError, match=f"knows the node types 0 to {NUM_NODE_TYPES - 1}, but x has"):
        graph_network(name)(batched([graph]))
    with pytest.raises(ValueError, match=f"knows the node types 0 to {NUM_NODE_TYPES - 1}, but x has"):
        graph_network(name).prepare_all(pack([molecule(3), graph]))


def test_a_batch_equals_its_graphs_one_by_one(name: str) -> None:
    network, graphs = graph_network(name), molecules()
    singles = torch.cat([network(batched([graph])) for graph in graphs])
    torch.testing.assert_close(network(batched(graphs)), singles, atol=1e-5, rtol=1e-4)


def test_padding_and_an_empty_last_graph_change_nothing(name: str) -> None:
    network, graphs = graph_network(name), molecules((5, 3))
    alone = network(batched(graphs))
    with_empty = network(batched([*graphs, molecule(0)]))
    assert with_empty.shape == (3, 2)
    torch.testing.assert_close(with_empty[:2], alone, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(network(batched([*graphs, molecule(40)]))[:2], alone, atol=1e-5, rtol=1e-4)


def test_relabelling_the_nodes_permutes_node_outputs_and_keeps_graph_outputs(name: str) -> None:
    graph, network = molecule(9), graph_network(name)
    order = torch.randperm(9, generator=generator(3))
    other = network(batched([relabelled(graph, order)]))
    torch.testing.assert_close(other, network(batched([graph])), atol=1e-5, rtol=1e-4)
    graph, network = node_graph(), node_network(name)
    order = torch.randperm(40, generator=generator(3))
    torch.testing.assert_close(network(relabelled(graph, order)), network(graph)[order], atol=1e-4, rtol=1e-3)


def test_every_parameter_receives_a_gradient(name: str) -> None:
    for network, data in ((graph_network(name), batched(molecules())), (node_network(name), node_graph())):
        out = network(data)
        (out * torch.randn(out.shape, generator=generator(0))).sum().backward()
        missing = [key for key, p in network.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
        assert missing == []
        assert all(torch.isfinite(p.grad).all() for p in network.parameters())


def train(network: torch.nn.Module, loss, steps: int, rate: float) -> float:
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        if value.item() < 0.01:
            break
    return value.item()


def test_eight_molecules_are_memorised(name: str) -> None:
    network = graph_network(name, width=32, embedding_channels=16)
    batch = batched(molecules((5, 6, 7, 8, 9, 10, 11, 12)))
    prepared = network.prepare(batch)
    assert train(network, lambda: (network(prepared) - batch.y).square().mean(), 300, 0.003) < 0.05


def test_a_small_graph_is_memorised(name: str) -> None:
    network, graph = node_network(name), node_graph()
    chosen = torch.arange(0, 34, 3)
    prepared = network.prepare(graph)

    def loss() -> torch.Tensor:
        return torch.nn.functional.cross_entropy(network(prepared)[chosen], graph.y[chosen])

    assert train(network, loss, 250, 0.02) < 0.1


def test_a_state_dict_and_a_deepcopy_bring_the_same_predictions(name: str) -> None:
    network, batch = graph_network(name), batched(molecules())
    first = network(batch)
    other = graph_network(name)
    other.reset_parameters()
    assert not torch.allclose(other(batch), first)
    other.load_state_dict(network.state_dict())
    assert other(batch).equal(first)
    assert copy.deepcopy(network)(batch).equal(first)


def test_the_same_seed_gives_the_same_output(name: str) -> None:
    batch = batched(molecules())
    assert graph_network(name)(batch).equal(graph_network(name)(batch))
    network, outputs = graph_network(name, dropout=0.5), []
    for _ in range(2):
        torch.manual_seed(5)
        network.reset_parameters()
        outputs.append(network(batch))
    assert outputs[0].equal(outputs[1])


def test_isolated_nodes_edgeless_graphs_and_empty_graphs_are_fine(name: str) -> None:
    no_edges = torch.zeros(2, 0, dtype=torch.long)
    graphs = batched([molecule(1), molecule(0)])
    edgeless = Data(x=torch.randn(5, 4, generator=generator(0)), edge_index=no_edges)
    for network, data in ((graph_network(name), graphs), (node_network(name), edgeless)):
        out = network(data)
        out.sum().backward()
        assert torch.isfinite(out).all()
        assert all(p.grad is None or torch.isfinite(p.grad).all() for p in network.parameters())
    assert node_network(name)(Data(x=torch.zeros(0, 4), edge_index=no_edges)).shape == (0, 3)


def test_double_precision_in_is_double_precision_out(name: str) -> None:
    network, graph = node_network(name), node_graph()
    single = network(graph)
    graph.x = graph.x.double()
    double = network.double()(graph)
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), single, atol=1e-4, rtol=1e-3)


def test_bf16_autocast_stays_close_and_has_finite_gradients(name: str) -> None:
    network, batch = graph_network(name), batched(molecules())
    exact = network(batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = network(batch)
    torch.testing.assert_close(rough.float(), exact, atol=0.05, rtol=0.05)
    rough.float().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters())


def test_dropout_acts_in_training_only(name: str) -> None:
    graph = node_graph()
    for option in ("dropout", "input_dropout"):
        network = node_network(name, **{option: 0.5})
        assert not network(graph).equal(network(graph))
        network.eval()
        assert network(graph).equal(network(graph))


def test_edge_types_are_used_and_may_be_integers_where_an_edge_has_one(name: str) -> None:
    network, graph = graph_network(name), molecule(9)
    graph.edge_attr = torch.nn.functional.one_hot(torch.arange(graph.num_edges) % (graph.num_edges // 2) % 3, 3).float()
    graph.edge_weight = None
    with_flags = network(batched([graph]))
    integers = graph.clone()
    integers.edge_type, integers.edge_attr = graph.edge_attr.argmax(1), None
    torch.testing.assert_close(network(batched([integers])), with_flags)
    graph.edge_attr = graph.edge_attr.roll(1, dims=1)
    assert not torch.allclose(network(batched([graph])), with_flags, atol=1e-6)


@pytest.mark.parametrize("readout", ["mean", "sum", "set2set"])
def test_every_readout_serves_every_network(name: str, readout: str) -> None:
    network = graph_network(name, readout=readout, node_input="one-hot", num_edge_types=0)
    assert network(batched(molecules())).shape == (5, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "no x: give every node features"),
        ({"x": torch.full((40, 4), float("nan"))}, "must be finite, but x.* is nan"),
        ({"x": torch.randn(40, 3)}, r"real node features \[node, 4\]"),
        ({"edge_weight": torch.rand(10)}, "one entry per edge"),
        ({"edge_index": torch.tensor([[0, 99], [99, 0]])}, "set num_nodes"),
    ],
)
def test_bad_data_says_what_was_given_and_what_to_do(name: str, change: dict, message: str) -> None:
    graph = node_graph()
    for key, value in change.items():
        graph[key] = value
    with pytest.raises(ValueError, match=message):
        node_network(name)(graph)


def test_missing_or_too_many_edge_types_are_named(name: str) -> None:
    graph = molecule(4)
    graph.edge_type = torch.full((graph.num_edges,), 3)
    with pytest.raises(ValueError, match=r"edge types must lie in 0\.\.2, but range over 3\.\.3"):
        graph_network(name)(batched([graph]))
    del graph.edge_attr, graph.edge_type
    with pytest.raises(ValueError, match=r"neither edge_type \[edge\] nor edge_attr"):
        graph_network(name)(batched([graph]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"readout": "max"}, "unknown readout 'max'"),
        ({"num_layers": 0}, "num_layers.* must be at least 1, but is 0"),
        ({"node_input": "words"}, "'features', 'one-hot' or 'learned'"),
    ],
)
def test_bad_options_say_what_was_given_and_what_to_do(name: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model(name, 4, 8, 3, **options)
