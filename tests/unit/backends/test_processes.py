"""What processes that share a graph tell each other; several of them are in tests/end_to_end/test_processes.py."""

import pytest
import torch
import torch.distributed

from lanczosnet.backends.processes import Processes, _backends


@pytest.mark.parametrize(("default", "wanted"), [("gloo", "gloo"), ("nccl", "cpu:gloo,cuda:nccl")])
def test_a_group_takes_tensors_of_the_host_also_where_gpus_exchange_signals(default, wanted, monkeypatch):
    monkeypatch.setattr(torch.distributed, "get_backend", lambda: default)
    assert _backends() == wanted


def test_one_process_exchanges_nothing():
    rows = torch.arange(6.0).view(3, 2)
    alone = Processes()
    assert alone.gathered(rows) is rows
    assert torch.equal(alone.exchanged(rows, [3], [3]), rows)
    assert torch.equal(alone.total(rows), rows)
