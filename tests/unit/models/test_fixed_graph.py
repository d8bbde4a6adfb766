"""`torch.export` of every network on a fixed graph, and of none with the graph as an input."""

import io
import warnings

import pytest
import torch
from torch_geometric.data import Batch, Data

from graph_builders import generator, random_edges
from lanczosnet.batching import from_data
from lanczosnet.models import MODELS, FixedGraph, model


def graph(num_nodes: int = 12, seed: int = 0) -> Data:
    edges = random_edges(num_nodes, seed)
    types = torch.nn.functional.one_hot((edges.sum(0) % 2), 2)
    return Data(x=torch.randn(num_nodes, 3, generator=generator(seed)), edge_index=edges, edge_attr=types)


def exported(module: FixedGraph, x: torch.Tensor, *, written: bool = True) -> torch.nn.Module:
    """Exported, and if wanted written and read again."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch's own files
        program = torch.export.export(module, (x,))
        if not written:
            return program.module()
        torch.export.save(program, file)
        file.seek(0)
        return torch.export.load(file).module()


EXPORTED = [(name, "dense") for name in MODELS if name != "adalanczosnet"]


@pytest.mark.parametrize(("name", "layout"), [*EXPORTED, ("lanczosnet", "sparse"), ("dcnn", "sparse")])
def test_an_exported_network_gives_what_the_network_gives(name, layout, monkeypatch) -> None:
    monkeypatch.setattr(from_data, "DENSE_UP_TO", 100 if layout == "dense" else 0)
    torch.manual_seed(0)
    data = graph()
    network = model(name, 3, 8, 2, 2, num_edge_types=2).eval()
    program = exported(FixedGraph(network, data), data.x, written=name == "lanczosnet")
    data.x = torch.randn(12, 3, generator=generator(5))  # not those it was exported with
    torch.testing.assert_close(program(data.x), network(data), atol=1e-5, rtol=1e-4)


def test_a_batch_of_graphs_with_a_readout_is_exported() -> None:
    batch = Batch.from_data_list([graph(12), graph(7, seed=1)])
    torch.manual_seed(0)
    network = model("lanczosnet", 3, 8, 2, 2, num_edge_types=2, readout="gated").eval()
    program = exported(FixedGraph(network, batch), batch.x)
    batch.x = torch.randn(19, 3, generator=generator(5))
    torch.testing.assert_close(program(batch.x), network(batch), atol=1e-5, rtol=1e-4)


def test_large_and_small_components_are_exported_together() -> None:
    """The vectors of large components are dense, those of small ones sparse."""
    large, small = random_edges(600), random_edges(5, seed=1) + 600
    data = Data(x=torch.randn(605, 3, generator=generator(0)), edge_index=torch.cat([large, small], 1))
    torch.manual_seed(0)
    network = model("lanczosnet", 3, 8, 2, 2).eval()
    torch.testing.assert_close(exported(FixedGraph(network, data), data.x)(data.x), network(data), atol=1e-5, rtol=1e-4)


def test_the_network_itself_stays_as_it_was() -> None:
    network = model("lanczosnet", 3, 8, 2, 2)
    fixed = FixedGraph(network, Data(x=graph().x, edge_index=graph().edge_index))
    assert network.training
    assert all(parameter.requires_grad for parameter in network.parameters())
    assert not any(parameter.requires_grad for parameter in fixed.parameters())


@pytest.mark.parametrize("name", ["lanczosnet", "gcn"])
def test_a_graph_as_an_input_is_refused(name) -> None:
    data, network = graph(), model(name, 3, 8, 2, 2).eval()
    with pytest.raises(ValueError, match=r"export FixedGraph\(model, data\) of lanczosnet\.models"):
        torch.export.export(network, (data.x, data.edge_index))


def test_other_inputs_and_other_modules_are_refused() -> None:
    data = graph()
    fixed = FixedGraph(model("lanczosnet", 3, 8, 2, 2, num_edge_types=2), data)
    with pytest.raises(ValueError, match=r"must be of shape \(12, 3\), .* but has \(11, 3\)"):
        fixed(data.x[1:])
    with pytest.raises(TypeError, match="not a Linear"):
        FixedGraph(torch.nn.Linear(3, 2), data)
    with pytest.raises(ValueError, match="AdaLanczosNet cannot be exported: it makes S of the node features"):
        FixedGraph(model("adalanczosnet", 3, 8, 2, 2), data)
