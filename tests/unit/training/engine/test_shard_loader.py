"""Networks on one graph that processes share."""

import pytest
import torch

from lanczosnet.baselines import GCN
from lanczosnet.models import AdaLanczosNet, LanczosNet
from lanczosnet.training.engine.shard_loader import check_shareable

SIZES = (12, 8, 4)


@pytest.mark.parametrize("network", [LanczosNet(*SIZES), AdaLanczosNet(*SIZES), AdaLanczosNet(*SIZES, exact_up_to=0)])
def test_networks_whose_affinity_is_fixed_are_shared_out(network):
    check_shareable(network)


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (GCN(*SIZES), "GCN cannot be shared out over processes: take one of LanczosNet, AdaLanczosNet"),
        (LanczosNet(*SIZES, num_edge_types=2), "no edge types: set num_edge_types=0"),
        (AdaLanczosNet(*SIZES, kernel_channels=(8,)), "learns its affinity, .* leave kernel_channels"),
        (AdaLanczosNet(*SIZES, node_input="learned"), "learns its affinity"),
        (AdaLanczosNet(*SIZES, start="random"), "set start='ones'"),
        (AdaLanczosNet(*SIZES, exact_up_to=1024), "exact_up_to is 1024, but components of 1,024 nodes"),
    ],
)
def test_other_networks_are_refused_before_the_work_begins(network: torch.nn.Module, said: str):
    with pytest.raises(ValueError, match=said):
        check_shareable(network)
