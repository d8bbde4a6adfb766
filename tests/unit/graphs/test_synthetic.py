import math

import pytest
import torch
from torch_geometric.utils import to_dense_adj

from lanczosnet.graphs import DataError, load


def dense(data):
    return to_dense_adj(data.edge_index, max_num_nodes=data.num_nodes)[0].double()


@pytest.mark.parametrize("name", ["path", "ring", "clique"])
@pytest.mark.parametrize("n", [3, 4, 17])
def test_the_stated_eigenvalues_are_those_of_the_adjacency_matrix(name, n):
    data = load(name, n=n)
    computed = torch.linalg.eigvalsh(dense(data)).flip(0)
    assert torch.allclose(data.adjacency_eigenvalues, computed, atol=1e-12)


def test_a_path_may_be_a_single_node():
    data = load("path", n=1)
    assert (data.num_nodes, data.num_edges) == (1, 0)
    assert torch.allclose(data.adjacency_eigenvalues, torch.zeros(1, dtype=torch.float64), atol=1e-12)


def test_the_block_model_has_its_blocks_rates_and_expected_spectrum():
    sizes = (300, 200, 100)
    data = load("block-model", sizes=sizes, inside=0.3, between=0.05, seed=1)
    same = data.y[:, None] == data.y
    A = dense(data)
    pairs_inside = sum(size * (size - 1) for size in sizes)
    assert float(A[same].sum()) / pairs_inside == pytest.approx(0.3, rel=0.05)
    assert float(A[~same].mean()) == pytest.approx(0.05, rel=0.05)
    expected = torch.where(same, 0.3, 0.05).double().fill_diagonal_(0.0)
    assert torch.allclose(data.expected_adjacency_eigenvalues, torch.linalg.eigvalsh(expected).flip(0), atol=1e-6)
    # the leading eigenvalues of a draw lie near those of the expectation
    assert torch.allclose(torch.linalg.eigvalsh(A).flip(0)[:3], data.expected_adjacency_eigenvalues[:3], rtol=0.1)


@pytest.mark.parametrize("name", ["block-model", "swiss-roll"])
def test_the_seed_decides_what_is_drawn(name):
    assert torch.equal(load(name, seed=3).edge_index, load(name, seed=3).edge_index)
    assert not torch.equal(load(name, seed=3).edge_index, load(name, seed=4).edge_index)


def test_the_swiss_roll_is_a_rolled_up_rectangle():
    data = load("swiss-roll", n=2000)
    radius = data.pos[:, [0, 2]].norm(dim=1)
    assert float(radius.min()) >= 1.5 * math.pi - 1e-4
    assert float(radius.max()) <= 4.5 * math.pi + 1e-4
    assert torch.allclose(data.coordinates[:, 1], data.pos[:, 1])
    assert torch.equal(data.coordinates[:, 0], data.y)
    # uniform on the sheet: half of the points lie in the first half of the arc
    assert float((data.y < data.y.max() / 2).float().mean()) == pytest.approx(0.5, abs=0.05)


def test_along_the_sheet_distances_are_those_of_the_rectangle():
    data = load("swiss-roll", n=4000)
    source, target = data.edge_index
    rolled = (data.pos[source] - data.pos[target]).norm(dim=1)
    flat = (data.coordinates[source] - data.coordinates[target]).norm(dim=1)
    assert torch.allclose(rolled, flat, rtol=0.05, atol=0.01)


def test_the_manifold_eigenvalues_are_those_of_a_rectangle():
    values = load("swiss-roll").manifold_eigenvalues
    arc = 0.5 * math.pi**2 * (4.5**2 - 1.5**2)  # to leading order
    assert values[0] == 0
    assert float(values[1]) == pytest.approx((math.pi / arc) ** 2, rel=0.1)
    assert (values.diff() >= 0).all()
    assert torch.isclose(values, torch.tensor((math.pi / 21) ** 2, dtype=torch.float64)).any()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("path", {"n": 0}),
        ("ring", {"n": 2}),
        ("clique", {"n": 1}),
        ("swiss-roll", {"n": 10, "k": 10}),
        ("block-model", {"sizes": ()}),
        ("block-model", {"inside": 1.5}),
    ],
)
def test_impossible_sizes_are_answered(name, options):
    with pytest.raises(DataError, match="needs"):
        load(name, **options)
