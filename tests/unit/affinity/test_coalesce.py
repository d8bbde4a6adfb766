"""An adjacency that is made range by range equals the one that is made at once."""

import pytest
import torch

from graph_builders import random_edges, random_weights
from lanczosnet.affinity import adjacency, coalesce, normalized, sparse_operator


@pytest.fixture
def in_ranges(monkeypatch):
    monkeypatch.setattr(coalesce, "ENTRIES_AT_A_TIME", 7)
    monkeypatch.setattr(coalesce, "MOST_RANGES", 5)
    monkeypatch.setattr(sparse_operator, "ENTRIES_AT_A_TIME", 7)


def shuffled(num_nodes, seed):
    edges = random_edges(num_nodes, seed)
    weights = random_weights(edges, seed)
    edges, weights = torch.cat([edges, edges[:, :10].flip(0)], 1), torch.cat([weights, weights[:10]])
    order = torch.randperm(len(weights), generator=torch.Generator().manual_seed(seed))
    return edges[:, order], weights[order]


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("num_nodes", [0, 1, 9, 40])
def test_ranges_change_no_bit(num_nodes, is_weighted, monkeypatch, device):
    edges, weights = (part.to(device) for part in shuffled(num_nodes, 3))
    options = {"num_nodes": num_nodes, "directed": True, "dtype": torch.float32}
    weights = weights if is_weighted else None
    whole = adjacency(edges, weights, **options)
    assert len(coalesce.row_ranges(whole.row_pointer.diff().long())) == 1
    monkeypatch.setattr(coalesce, "ENTRIES_AT_A_TIME", 7)
    in_ranges = adjacency(edges, weights, **options)
    assert num_nodes < 9 or len(coalesce.row_ranges(whole.row_pointer.diff().long())) > 3
    for name in ("row_pointer", "column", "values", "diagonal_position"):
        assert torch.equal(getattr(whole, name), getattr(in_ranges, name))


def test_scaling_in_pieces_changes_no_bit(monkeypatch, dtype, device):
    operator = adjacency(random_edges(30, 1).to(device), dtype=dtype)
    whole = normalized(operator)
    monkeypatch.setattr(sparse_operator, "ENTRIES_AT_A_TIME", 7)
    assert torch.equal(normalized(operator).values, whole.values)


@pytest.mark.usefixtures("in_ranges")
def test_gradients_reach_the_weights_of_every_range(device):
    edges, weights = (part.to(device) for part in shuffled(20, 2))
    weights.requires_grad_()
    (adjacency(edges, weights, directed=True).values.square().sum() / 2).backward()
    dense = torch.zeros(20, 20, dtype=weights.dtype, device=device)
    dense.index_put_((edges[0], edges[1]), weights.detach(), accumulate=True)
    torch.testing.assert_close(weights.grad, dense[edges[0], edges[1]])


@pytest.mark.usefixtures("in_ranges")
class TestChecks:
    edges = random_edges(30, 5)

    @pytest.mark.parametrize("missing", [0, 17, -1])
    def test_an_edge_without_its_reverse_is_found_in_any_range(self, missing, device):
        edge = self.edges[:, missing].tolist()
        rest = (self.edges != self.edges[:, missing : missing + 1 or None]).any(0)
        pair = f"of nodes {edge[1]} and {edge[0]} only|of nodes {edge[0]} and {edge[1]} only"
        with pytest.raises(ValueError, match=pair):
            adjacency(self.edges[:, rest].to(device), num_nodes=30)

    def test_a_weight_that_differs_from_its_reverse_is_found_in_any_range(self, device):
        weights = random_weights(self.edges, 5)
        adjacency(self.edges.to(device), weights.to(device))
        weights[-1] += 1
        with pytest.raises(ValueError, match=r"the weights are not symmetric: .* differ by 1"):
            adjacency(self.edges.to(device), weights.to(device))
