"""Laws of packed graphs and splits over random inputs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from lanczosnet.graphs import DataError, pack, split


@st.composite
def graph_lists(draw) -> list[Data]:
    """Up to eight graphs, single nodes and graphs without edges among them."""
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=8))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    graphs = []
    for size in sizes:
        edges = draw(st.integers(0, 10))
        edge_index = torch.randint(size, (2, edges), generator=generator)
        weights = torch.rand(edges, 2, generator=generator)
        y = torch.randn(1, 2, generator=generator)
        graphs.append(Data(x=torch.randn(size, 3, generator=generator), edge_index=edge_index, edge_attr=weights, y=y))
    return graphs


def assert_equal(left: Data, right: Data) -> None:
    assert set(left.keys()) == set(right.keys())
    assert all(torch.equal(left[key], right[key]) for key in left.keys())  # noqa: SIM118


@settings(deadline=None)
@given(graphs=graph_lists(), data=st.data())
def test_a_packed_batch_is_the_batch_of_the_graphs(graphs, data):
    chosen = data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=12))
    assert_equal(pack(graphs).batch(chosen), Batch.from_data_list([graphs[i] for i in chosen]))


@settings(deadline=None)
@given(graphs=graph_lists(), batch_size=st.integers(1, 9))
def test_batches_are_the_graphs_in_order(graphs, batch_size):
    singles = [single for batch in pack(graphs).batches(batch_size) for single in batch.to_data_list()]
    assert len(singles) == len(graphs)
    for single, original in zip(singles, graphs, strict=True):
        assert_equal(single, original)


@settings(deadline=None)
@given(
    counts=st.lists(st.integers(4, 60), min_size=2, max_size=5),
    fraction=st.integers(1, 60).map(lambda percent: percent / 100),
    kind=st.sampled_from(["uniform", "stratified", "2-per-class"]),
    seed=st.integers(0, 1000),
)
def test_splits_are_disjoint_repeatable_and_never_empty(counts, fraction, kind, seed):
    y = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    data = Data(x=torch.ones(len(y), 1), edge_index=torch.empty(2, 0, dtype=torch.long), y=y, name="any")
    request = {"fraction": None if kind == "2-per-class" else fraction, "seed": seed}
    try:
        chosen = split(data, kind, **request)
    except DataError:  # too few nodes for three parts
        assert len(y) < 40
        return
    everything = torch.cat([chosen.train, chosen.val, chosen.test])
    assert len(everything.unique()) == len(everything)
    assert min(len(chosen.train), len(chosen.val), len(chosen.test)) > 0
    assert chosen == split(data, kind, **request)


def test_the_laws_can_fail():
    with pytest.raises(AssertionError):
        assert_equal(Data(x=torch.ones(1)), Data(x=torch.zeros(1)))
