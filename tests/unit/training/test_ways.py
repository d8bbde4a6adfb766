"""Recorded steps, with functions in place of a GPU's recordings: what is recorded when, and that it is the same."""

from contextlib import nullcontext

import pytest
import torch

from lanczosnet.graphs import split
from lanczosnet.training import architecture_for, examples, recipe, task_of, ways
from lanczosnet.training.devices import fabric_for
from lanczosnet.training.together import advance
from lanczosnet.training.trainer import Trainer
from training_builders import packed_molecules


class Function:
    def __init__(self, function) -> None:
        self.replay = function


class Numbers:
    def __init__(self, device) -> None:
        self.seed = torch.manual_seed
        self.in_use = nullcontext


class Stream:
    def __init__(self, device=None) -> None:
        self.device = device

    def wait_stream(self, other) -> None: ...

    def synchronize(self) -> None: ...


def called(function) -> bool:
    function()
    return False


@pytest.fixture
def functions(monkeypatch) -> None:
    monkeypatch.setattr(ways, "Recording", Function)
    monkeypatch.setattr(ways, "OwnRandomNumbers", Numbers)
    monkeypatch.setattr(ways, "waits_for_the_host", called)
    monkeypatch.setattr(ways, "_make_replayable", lambda optimizer, device: None)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", nullcontext)


def trained(name: str, replays: bool, **options) -> tuple[list[float], Trainer]:
    graphs = packed_molecules()
    parts = split(graphs, "random", fraction=0.6, seed=0)
    task, settings = task_of(graphs, parts.train), {"batch_size": 4, "epochs": 4, "stop_window": 0}
    network = architecture_for(graphs, task, name, {"hidden_channels": 8, "num_layers": 2, **options}).build(0)
    on_device = examples.examples_of(network, graphs, torch.device("cpu"))
    on_device.same_shape = replays
    trainer = Trainer(network, on_device, parts, task, recipe("paper", "graph", settings), 0, fabric_for("cpu"))
    trainer.may_replay = replays
    losses = [
        value for _ in range(4) for report in advance([trainer]) for value in (report.train_loss, report.val_loss)
    ]
    return losses, trainer


@pytest.mark.parametrize("is_paired", [True, False], ids=["paired", "alone"])
@pytest.mark.parametrize("name", ["lanczosnet", "gcn", "ggnn"])
def test_replayed_steps_are_the_steps_that_would_be_called(functions, monkeypatch, name, is_paired) -> None:
    monkeypatch.setattr(examples, "PAIRED", is_paired)
    expected, _ = trained(name, replays=False)
    found, trainer = trained(name, replays=True)
    assert found == pytest.approx(expected, rel=1e-5)
    widths = {width for _, width in trainer.way.recordings}
    if is_paired and name != "ggnn":
        assert widths - {None}
    else:
        assert widths == {None}
