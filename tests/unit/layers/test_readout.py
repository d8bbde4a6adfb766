import copy

import pytest
import torch
from torch_geometric.nn.aggr import Set2Set

from forced import implementation
from graph_builders import generator
from interpreted import call_interpreted, needs_triton
from lanczosnet.backends import serves
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


def compare_blocks(device: str = "cpu") -> None:
    """Of one and of two graphs in every block, with an empty one among them."""
    sizes = torch.tensor([3, 5, 4, 1, 0, 2])
    mask = (torch.arange(5) < sizes.unsqueeze(1)).float().to(device)
    read = implementation("read_blocks", "triton").load()
    torch.manual_seed(0)
    for out_channels in (2, 3):
        module = GatedMeanReadout(4, out_channels).to(device)
        for num_blocks, width in ((6, 5), (3, 8)):
            x = torch.randn(num_blocks, width, 4, generator=generator(0)).to(device).requires_grad_()
            apart = x if num_blocks == 6 else torch.cat([x[:, :5], x.flip(1)[:, :5]])
            weight = torch.randn(6, out_channels, generator=generator(1)).to(device)
            outcomes = []
            for found in (read(x, module, mask), module.padded(apart.flatten(0, 1), mask)):
                outcomes.append((found, *torch.autograd.grad((found * weight).sum(), [x, *module.parameters()])))
            torch.testing.assert_close(*outcomes, atol=1e-5, rtol=1e-4)


@needs_triton
def test_the_kernel_of_the_gated_mean_is_plain_pytorch_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_blocks")


@needs_triton
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernel_of_the_gated_mean_is_plain_pytorch_on_a_gpu() -> None:
    compare_blocks("cuda")
    x = torch.zeros(1, 1, 4, device="cuda")
    assert serves("read_blocks", "triton", x, GatedMeanReadout(4, 2).cuda(), x[..., 0])


def test_the_gated_mean_has_no_state_but_its_weights() -> None:
    module = GatedMeanReadout(4, 2)
    assert set(module.state_dict()) == {"gate.weight", "gate.bias", "linear.weight", "linear.bias"}
    copy.deepcopy(module).load_state_dict(module.state_dict())
