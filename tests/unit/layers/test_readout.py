import pytest
import torch
from torch_geometric.nn.aggr import Set2Set

from lanczosnet.layers import GatedMeanReadout, readout

X = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
BATCH = torch.tensor([0, 0, 1, 1, 1])


@pytest.mark.parametrize(("name", "pool"), [("mean", torch.mean), ("sum", torch.sum)])
def test_mean_and_sum_pool_the_nodes_of_each_graph(name: str, pool) -> None:
    module = readout(name, 4, 2)
    expected = module.linear(torch.stack([pool(X[:2], 0), pool(X[2:], 0)]))
    torch.testing.assert_close(module(X, BATCH, 2), expected)


def test_the_gated_mean_weighs_every_node_by_its_own_gate() -> None:
    module = GatedMeanReadout(4, 2)
    nodes = torch.sigmoid(module.gate(X)) * module.linear(X)
    torch.testing.assert_close(module(X, BATCH, 2), torch.stack([nodes[:2].mean(0), nodes[2:].mean(0)]))


def test_set2set_is_that_of_pyg() -> None:
    module = readout("set2set", 4, 2)
    assert isinstance(module.pool, Set2Set)
    assert module(X, BATCH, 2).shape == (2, 2)


@pytest.mark.parametrize("name", ["mean", "sum", "gated", "set2set"])
def test_an_empty_last_graph_gets_a_row_and_changes_no_other(name: str) -> None:
    torch.manual_seed(0)
    module = readout(name, 4, 2)
    torch.testing.assert_close(module(X, BATCH, 3)[:2], module(X, BATCH, 2))
    assert torch.isfinite(module(X, BATCH, 3)).all()


def test_a_wrong_name_lists_the_right_ones() -> None:
    with pytest.raises(ValueError, match="unknown readout 'max': choose one of mean, sum, gated, set2set"):
        readout("max", 4, 2)
