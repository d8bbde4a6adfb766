"""Batches of graphs on a CPU stay sparse, and equal padded blocks, whatever the graphs' sizes."""

import pytest
import torch

from lanczosnet.batching import from_data
from lanczosnet.graphs import PackedGraphs, pack
from lanczosnet.models import model
from lanczosnet.training.engine.loaders import GraphLoader
from molecule_builders import NUM_EDGE_TYPES, NUM_NODE_TYPES, molecule

TYPED = {"node_input": "learned", "embedding_channels": 6, "num_edge_types": NUM_EDGE_TYPES}
FORMS = {
    "residual": {"block": "residual", "readout": "sum", "head_channels": 5, "spectral_filter": "mlp"},
    "plain": {"block": "plain", "readout": "gated"},
    "few pairs": {"block": "plain", "readout": "mean", "num_steps": 6},
    "set2set": {"block": "plain", "readout": "set2set", "long_scales": ()},
}


def graphs_of(*sizes: int) -> PackedGraphs:
    found = [molecule(size, seed) for seed, size in enumerate(sizes)]
    for graph in found:
        graph.edge_weight = graph.edge_weight.double()
    return pack(found)


def network(name: str = "lanczosnet", **options):
    torch.manual_seed(0)
    return model(name, NUM_NODE_TYPES, 8, 2, 3, **(TYPED | options)).double()


def gradients(chosen, batch) -> list[torch.Tensor | None]:
    out = chosen(batch)
    weights = torch.linspace(0.5, 1.5, out.numel(), dtype=out.dtype).view_as(out)
    return [out, *torch.autograd.grad((out * weights).sum(), list(chosen.parameters()), allow_unused=True)]


@pytest.mark.parametrize("form", FORMS)
def test_sparse_batches_equal_padded_ones(form: str, monkeypatch) -> None:
    chosen, batch = network(**FORMS[form]), graphs_of(9, 3, 20, 33, 1).batch(torch.arange(5))
    assert chosen.prepare(batch).padding is None
    found = gradients(chosen, batch)
    monkeypatch.setattr(from_data, "static_shapes", lambda tensor: True)
    assert chosen.prepare(batch).padding is not None
    for own, other in zip(found, gradients(chosen, batch), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-9, atol=1e-9)


def test_a_large_graph_changes_nothing_of_small_ones() -> None:
    chosen, graphs = network(**FORMS["residual"]), graphs_of(9, 300, 20)
    alone, together = chosen(graphs.batch([0, 2])), chosen(graphs.batch([0, 1, 2]))
    torch.testing.assert_close(alone, together[[0, 2]], rtol=1e-12, atol=1e-12)


def test_one_graph_by_itself_and_learned_affinities_keep_their_blocks() -> None:
    graphs = graphs_of(9, 20)
    assert network(**FORMS["residual"]).prepare(graphs[0]).padding is not None
    assert network("adalanczosnet", **FORMS["plain"]).prepare(graphs.batch([0, 1])).padding is not None


def test_set2set_in_double_precision_beside_a_default_of_single() -> None:
    chosen, graphs = network(**FORMS["set2set"]), graphs_of(9, 20)
    torch.testing.assert_close(chosen(chosen.prepare_all(graphs)), chosen(graphs.batch([0, 1])))


def test_ritz_pairs_of_molecules_in_several_parts_are_computed_once() -> None:
    two_parts = molecule(9, 1)
    two_parts.edge_index, two_parts.edge_attr = two_parts.edge_index[:, :0], two_parts.edge_attr[:0]
    two_parts.edge_weight = two_parts.edge_weight[:0]
    graphs = [molecule(70, 2), two_parts, molecule(3, 3)]
    for graph in graphs:
        graph.edge_weight = graph.edge_weight.double()
    chosen, data, numbers = network(**FORMS["residual"]), pack(graphs), torch.tensor([1, 0])
    loader = GraphLoader(chosen, data, torch.device("cpu"))
    assert len(loader.graphs.node["ritz_values"]) == 82
    (step,) = loader.steps(numbers, 2)
    torch.testing.assert_close(chosen(step.inputs), chosen(data.batch(numbers)), rtol=1e-9, atol=1e-9)
