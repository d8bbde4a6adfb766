"""Graphs of all sizes in padded blocks of a few widths: values and gradients are those of sparse batches."""

from itertools import combinations

import pytest
import torch

from graph_builders import generator
from lanczosnet.batching import buckets as module
from lanczosnet.batching.buckets import Buckets, bucket_widths
from lanczosnet.graphs import PackedGraphs, pack
from lanczosnet.models import model
from lanczosnet.training.engine import loaders
from lanczosnet.training.engine.loaders import GraphLoader
from molecule_builders import NUM_EDGE_TYPES, NUM_NODE_TYPES, molecule

TYPED = {"node_input": "learned", "embedding_channels": 6, "num_edge_types": NUM_EDGE_TYPES, "readout": "gated"}
PLENTY = 2**40
SIZES = [9, 150, 20, 33, 3, 70, 5, 12, 8, 100, 31, 40, 6, 7]


def graphs_of(*sizes: int) -> PackedGraphs:
    found = [molecule(size, seed) for seed, size in enumerate(sizes)]
    for graph in found:
        graph.edge_weight = graph.edge_weight.double()
        graph.y = graph.y.double()
    return pack(found)


def network(name: str = "lanczosnet", **options):
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return model(name, NUM_NODE_TYPES, 8, 2, 2, **(TYPED | options)).double()
    finally:
        torch.set_default_dtype(before)


@pytest.fixture(autouse=True)
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def gradients(chosen, inputs, rows=None) -> list[torch.Tensor]:
    out = chosen(inputs)
    out = out if rows is None else out[rows]
    weights = torch.linspace(0.5, 1.5, out.numel()).view_as(out)
    found = torch.autograd.grad((out * weights).sum(), list(chosen.parameters()), allow_unused=True)
    return [out, *(torch.zeros(()) if grad is None else grad for grad in found)]


def bucketed(chosen, graphs: PackedGraphs) -> Buckets:
    found = chosen.prepare_buckets(graphs, PLENTY)
    assert found is not None
    assert len({each.mask.shape[1] for each in found.blocks}) > 1
    return found


FORMS = {
    "residual": {"block": "residual", "readout": "sum", "head_channels": 5, "spectral_filter": "mlp"},
    "plain": {"block": "plain", "readout": "gated"},
    "tied": {"block": "plain", "tied_scales": True},
    "few pairs": {"block": "plain", "readout": "mean", "num_steps": 6},
    "nothing learned": {"spectral_filter": "power", "long_scales": (10, float("inf"))},
    "no long scales": {"long_scales": ()},
    "all pairs": {"num_steps": 40},
}


def assert_twins(chosen, graphs: PackedGraphs) -> None:
    blocks = bucketed(chosen, graphs)
    for numbers in ([0, 2, 4], [1, 0, 5, 13, 9, 3], [1], list(range(len(graphs)))):
        items = torch.tensor(numbers)
        ordered = items[blocks.order(items)]
        counts = blocks.counts(ordered)
        expected = gradients(chosen, graphs.batch(ordered))
        found = gradients(chosen, blocks.gather(ordered, counts))
        for own, other in zip(found, expected, strict=True):
            torch.testing.assert_close(own, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_blocks_of_several_widths_equal_sparse_batches(form: str) -> None:
    assert_twins(network(**FORMS[form]), graphs_of(*SIZES))


@pytest.mark.parametrize("name", ["gcn", "gcnfp", "chebynet", "dcnn"])
def test_networks_that_multiply_with_known_operators_have_blocks_too(name: str) -> None:
    assert_twins(network(name), graphs_of(*SIZES))


@pytest.mark.parametrize("name", ["adalanczosnet", "mpnn", "gat"])
def test_networks_whose_blocks_cannot_be_joined_stay_sparse(name: str) -> None:
    assert network(name).prepare_buckets(graphs_of(*SIZES), PLENTY) is None


def test_a_bucket_may_be_prepared_in_parts(monkeypatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 3)
    assert_twins(network(**FORMS["residual"]), graphs_of(*SIZES))


def best_by_trial(sizes: torch.Tensor, most: int) -> int:
    widths = sorted({-(-int(size) // 4) * 4 for size in sizes})
    choices = [[*cut, widths[-1]] for count in range(most) for cut in combinations(widths[:-1], count)]
    return min(sum(min(w for w in choice if w >= size) ** 2 for size in sizes.tolist()) for choice in choices)


@pytest.mark.parametrize("seed", range(4))
def test_widths_have_the_fewest_entries(seed: int) -> None:
    sizes = torch.randint(1, 60, (30,), generator=generator(seed))
    widths = bucket_widths(sizes, 3)
    assert len(widths) <= 3
    assert widths == sorted(set(widths))
    assert all(width % 4 == 0 for width in widths)
    entries = sum(min(w for w in widths if w >= size) ** 2 for size in sizes.tolist())
    assert entries == best_by_trial(sizes, 3)
    assert bucket_widths(torch.tensor([7, 5])) == [8]


def test_one_large_graph_leaves_the_blocks_of_small_ones_small() -> None:
    sizes = [*range(5, 35), 400]
    found = network(num_steps=4).prepare_buckets(graphs_of(*sizes), PLENTY)
    assert [each.mask.shape[1] for each in found.blocks][-1] == 400
    assert len(found.blocks[-1]) == 1
    assert found.blocks[-2].mask.shape[1] == 36


@pytest.mark.parametrize("reason", ["bytes", "waste", "widest", "no readout"])
def test_graphs_that_do_not_fit_stay_sparse(reason: str, monkeypatch) -> None:
    chosen, graphs = network(readout=None if reason == "no readout" else "sum"), graphs_of(*SIZES)
    if reason == "waste":
        monkeypatch.setattr(module, "MOST_WASTE", 1.0)
    if reason == "widest":
        monkeypatch.setattr(module, "WIDEST", 149)
    assert chosen.prepare_buckets(graphs, 1000 if reason == "bytes" else PLENTY) is None


def test_batches_are_filled_bucket_by_bucket_with_the_same_shapes_in_every_epoch() -> None:
    sizes = torch.randint(3, 160, (103,), generator=generator(0)).tolist()
    found = bucketed(network(num_steps=4), graphs_of(*sizes))
    shapes, orders = set(), set()
    for epoch in range(4):
        items = torch.randperm(103, generator=generator(epoch))
        ordered = found.reordered(items, 8)
        assert ordered.sort().values.tolist() == list(range(103))
        counts = [found.counts(batch) for batch in ordered.split(8)]
        assert None not in counts
        assert sum(sum(count > 0 for count in each) > 1 for each in counts) < len(found.blocks)
        shapes.add(tuple(sorted(counts)))
        orders.add(tuple(counts))
    assert len(shapes) == 1
    assert len(orders) > 1  # large graphs do not always come last


@pytest.fixture
def loader(monkeypatch) -> GraphLoader:
    monkeypatch.setattr(loaders, "_buckets", lambda chosen, graphs: chosen.prepare_buckets(graphs, PLENTY))
    monkeypatch.setattr(loaders, "_blocks", lambda chosen, graphs: None)
    found = GraphLoader(network(num_steps=6), graphs_of(*SIZES), torch.device("cpu"))
    found.same_shape = True
    return found


def test_a_loader_gives_items_in_their_order_whatever_it_is_told(loader) -> None:
    chosen, graphs, items = loader.model, graphs_of(*SIZES), torch.tensor([1, 4, 0, 9, 2, 13, 5])
    assert loader.is_fixed
    expected = chosen(graphs.batch(items))
    steps = list(loader.steps(items, 3))
    found = torch.cat([chosen(step.inputs)[slice(None) if step.rows is None else step.rows] for step in steps])
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(torch.cat([step.y for step in steps]), graphs.y[items])
    ordered = loader.reordered(items, 3)
    shapes = loader.shapes(ordered, 3)
    told = list(loader.steps(ordered, 3, shapes=shapes))
    assert all(step.rows is None for step in told)
    assert [sum(shape) for shape in shapes] == [3, 3, 1]
    found = torch.cat([chosen(step.inputs) for step in told])
    torch.testing.assert_close(found, chosen(graphs.batch(ordered)), rtol=1e-8, atol=1e-8)
    one = loader.step(ordered[:3], shapes[0])
    torch.testing.assert_close(chosen(one.inputs), chosen(graphs.batch(ordered[:3])), rtol=1e-8, atol=1e-8)


def test_on_a_cpu_graphs_stay_sparse() -> None:
    found = GraphLoader(network(num_steps=6), graphs_of(*SIZES), torch.device("cpu"))
    assert found.buckets is None
    assert not found.is_fixed
