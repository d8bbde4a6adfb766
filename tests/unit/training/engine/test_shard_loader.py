"""Networks on one graph that processes share."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lanczosnet.affinity.owners import RangeOwners
from lanczosnet.baselines import GCN
from lanczosnet.batching.shard import _check_all_have_nodes, owners_of
from lanczosnet.graphs import load
from lanczosnet.graphs.formats.stored_graph import store_graph, stored_graph
from lanczosnet.models import AdaLanczosNet, LanczosNet
from lanczosnet.training import TrainingError, recipe
from lanczosnet.training.engine.shard_loader import check_shareable
from lanczosnet.training.loop import _loader

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


@pytest.mark.parametrize(
    ("sizes", "said"), [([5, 0], "process 1 has no nodes.* Start one process"), ([0, 5, 5], "Start 2 processes")]
)
def test_a_process_without_nodes_is_an_error_in_all_of_them(sizes: list[int], said: str) -> None:
    for size in sizes:
        processes: Any = SimpleNamespace(gathered=lambda own: torch.tensor(sizes))
        with pytest.raises(ValueError, match=said):
            _check_all_have_nodes(processes, size)
    _check_all_have_nodes(SimpleNamespace(gathered=lambda own: torch.tensor([5, 1])), 5)  # type: ignore[arg-type]


def test_features_of_a_shared_graph_cannot_stay_on_the_host(tmp_path) -> None:
    store_graph(load("karate"), tmp_path / "big")
    fabric: Any = SimpleNamespace(world_size=2, device=torch.device("cpu"), host_features=True)
    with pytest.raises(TrainingError, match="leave host_features out"):
        _loader(LanczosNet(*SIZES), stored_graph(tmp_path / "big"), fabric, recipe("modern", "node"))


def test_the_clusters_of_another_network_are_no_partition(tmp_path) -> None:
    store_graph(load("karate"), tmp_path / "big")
    data = stored_graph(tmp_path / "big")
    clusters = torch.arange(34) % 2
    data.partition = clusters  # as AddPartition leaves them for GPNN
    assert isinstance(owners_of(data, 2), RangeOwners)
    data.process_of_node = clusters
    assert owners_of(data, 2).nodes(1).tolist() == list(range(1, 34, 2))
