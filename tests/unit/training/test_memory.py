"""The estimate of a training's memory is held to what a process takes, and says what would take less."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lanczosnet.backends.host_memory import free_host_memory
from lanczosnet.training.architecture import Architecture
from lanczosnet.training.engine.live_bytes import LiveBytes
from lanczosnet.training.memory import GraphSize, can_estimate, estimated_memory, readable

ROOT = Path(__file__).resolve().parents[3]
WITHIN = 1.25  # of the estimate, either way
SIZE = GraphSize(nodes=1_000_000, entries=10_000_000, features=32)
ON_LINUX = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are read from /proc")


def architecture(name: str = "lanczosnet", **options) -> Architecture:
    sizes = {"in_channels": 32, "hidden_channels": 16, "out_channels": 4, "num_layers": 2}
    return Architecture(name, sizes | options)


def total(size: GraphSize = SIZE, precision: str = "32-true", **options) -> int:
    return estimated_memory(architecture(**options), size, precision=precision).total


@ON_LINUX
@pytest.mark.parametrize(
    ("options", "precision"),
    [
        ({}, "32-true"),
        ({"checkpoint_activations": True}, "bf16-mixed"),
        ({"block": "plain", "num_steps": 40}, "32-true"),
    ],
)
def test_the_estimate_is_what_a_process_takes(options: dict, precision: str) -> None:
    asked = json.dumps({"options": options, "precision": precision})
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, ROOT / "tests" / "peak_of_training.py", asked]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    measured, estimated = json.loads(printed.splitlines()[-1])
    assert measured / WITHIN <= estimated <= WITHIN * measured


def test_less_is_estimated_for_what_takes_less() -> None:
    whole = total(dropout=0.5)
    for less in (
        total(dropout=0.5, checkpoint_activations=True),
        total(dropout=0.5, precision="bf16-mixed"),
        total(dropout=0.5, hidden_channels=8),
        total(dropout=0.5, num_steps=10),
        total(SIZE.shared_by(4), dropout=0.5) * 2,
    ):
        assert less < whole
    assert total(dropout=0.5, precision="64-true") > 1.8 * whole


def test_views_and_features_count() -> None:
    once = estimated_memory(architecture(), SIZE)
    assert estimated_memory(architecture(), SIZE, views=3).parts["activations"] == 3 * once.parts["activations"]
    on_host = estimated_memory(architecture(), SIZE, host_features=True)
    assert (once.parts["features"], on_host.parts["features"]) == (4 * 32 * SIZE.nodes, 0)


def test_an_estimate_leaves_random_numbers_as_they_are() -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    total()
    assert torch.equal(torch.rand(3), expected)


def test_graphs_of_node_types_and_other_networks_have_estimates() -> None:
    types = GraphSize(SIZE.nodes, SIZE.entries, 0)
    assert estimated_memory(architecture(node_input="learned"), types).parts["features"] == 4 * SIZE.nodes
    for name in ("gcn", "adalanczosnet"):
        assert estimated_memory(architecture(name), SIZE).total > SIZE.nodes * 32 * 4
    assert estimated_memory(architecture("gcn"), SIZE).parts["Ritz pairs"] == 0
    assert can_estimate(architecture())
    assert not can_estimate(architecture(num_edge_types=2))
    assert not can_estimate(architecture(magnetic=0.25))
    assert not can_estimate(architecture(readout="mean"))


def test_tensors_are_counted_while_they_live() -> None:
    given = torch.zeros(100)
    with LiveBytes() as counted:
        first = given + 1
        view = first[:50]
        assert (counted.live, counted.peak) == (400, 400)
        second = torch.zeros(1000, dtype=torch.bfloat16)
        assert counted.live == 2400
        del first
        assert counted.live == 2400  # a view holds the memory
        del view, second
        assert (counted.live, counted.peak, counted.largest) == (0, 2400, 2000)


def test_sizes_are_readable() -> None:
    assert (readable(2_340_000), readable(1.25e9), readable(1.2e12)) == ("2.3 MB", "1.2 GB", "1,200.0 GB")


def test_free_memory_is_that_of_the_machine_or_of_the_container(tmp_path: Path) -> None:
    assert free_host_memory(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   2000 kB\n")
    assert free_host_memory(tmp_path) == 2_048_000
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "memory.current").write_text("500\n")
    (group / "memory.max").write_text("max\n")
    assert free_host_memory(tmp_path) == 2_048_000
    (group / "memory.max").write_text("1500\n")
    assert free_host_memory(tmp_path) == 1000
