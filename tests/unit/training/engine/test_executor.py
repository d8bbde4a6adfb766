"""Captured steps, with functions in place of a GPU's graphs: what is captured when, and that it does the same."""

import copy
from contextlib import nullcontext

import pytest
import torch

from graph_builders import generator
from lanczosnet.baselines.padded_endpoints import DEVIATIONS
from lanczosnet.graphs import split
from lanczosnet.models import MPNN
from lanczosnet.training import architecture_for, loop, recipe, task_of
from lanczosnet.training.checkpoint import CheckpointFile
from lanczosnet.training.engine import executor, loaders
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.engine.executor import EagerExecutor
from lanczosnet.training.loop import advance
from lanczosnet.training.trainer import Trainer
from training_builders import communities, halves, packed_molecules


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


SETTINGS = {"paper": {}, "modern": {"averaging": 0.9, "clip_norm": 0.1, "learning_rate": 1e-2}}


def called(function) -> bool:
    function()
    return False


@pytest.fixture
def functions(monkeypatch) -> None:
    monkeypatch.setattr(executor, "CapturedGraph", Function)
    monkeypatch.setattr(executor, "PrivateGenerator", Numbers)
    monkeypatch.setattr(executor, "synchronizes", called)
    monkeypatch.setattr(executor, "_make_capturable", lambda optimizer, device: None)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", nullcontext)


def trainer_of(name: str, replays: bool, chosen: str = "paper", **options) -> Trainer:
    graphs = packed_molecules()
    parts = split(graphs, "random", fraction=0.6, seed=0)
    task, settings = task_of(graphs, parts.train), {"batch_size": 4, "epochs": 4, "stop_window": 0, **SETTINGS[chosen]}
    network = architecture_for(graphs, task, name, {"hidden_channels": 8, "num_layers": 2, **options}).build(0)
    on_device = loaders.loader_for(network, graphs, torch.device("cpu"))
    on_device.same_shape = replays
    trainer = Trainer(network, on_device, parts, task, recipe(chosen, "graph", settings), 0, fabric_for("cpu"))
    trainer.may_capture = replays
    return trainer


def losses_of(trainer: Trainer, epochs: int = 4) -> list[float]:
    reports = [report for _ in range(epochs) for report in advance([trainer])]
    return [value for report in reports for value in (report.train_loss, report.val_loss)]


def trained(name: str, replays: bool, chosen: str = "paper") -> tuple[list[float], Trainer]:
    trainer = trainer_of(name, replays, chosen)
    return losses_of(trainer), trainer


@pytest.mark.parametrize("is_paired", [True, False], ids=["paired", "alone"])
@pytest.mark.parametrize("name", ["lanczosnet", "adalanczosnet", "gcn", "ggnn"])
def test_replayed_steps_are_the_steps_that_would_be_called(functions, monkeypatch, name, is_paired) -> None:
    monkeypatch.setattr(loaders, "PAIRED", is_paired)
    expected, _ = trained(name, replays=False)
    found, trainer = trained(name, replays=True)
    assert found == pytest.approx(expected, rel=1e-5)
    widths = {width for _, width in trainer.executor.graphs}
    if is_paired and name not in ("adalanczosnet", "ggnn"):
        assert widths - {None}
    else:
        assert widths == {None}


@pytest.fixture
def in_pairs(functions, monkeypatch) -> None:
    monkeypatch.setattr(loaders, "PAIRED", True)


def test_pairs_change_the_order_inside_batches_alone(in_pairs) -> None:
    arranged, plain = trainer_of("lanczosnet", replays=True), trainer_of("lanczosnet", replays=False)
    items, expected = arranged.next_order(), plain.next_order()
    sizes = arranged.loader.sizes
    assert not items.equal(expected)
    assert arranged.next_order().equal(items)
    for batch, other in zip(items.split(4), expected.split(4), strict=True):
        assert batch.sort().values.equal(other.sort().values)
        first, second = sizes[batch].tensor_split(2)
        assert first.equal(first.sort().values)
        assert second.equal(second.sort(descending=True).values)
    assert arranged.val.sort().values.equal(plain.val.sort().values)
    assert any(arranged.val_shapes)


@pytest.mark.parametrize("batch_size", [4, 5, 64], ids=["even", "odd", "one batch"])
def test_outputs_in_pairs_stand_beside_their_targets(in_pairs, batch_size: int) -> None:
    trainer = trainer_of("lanczosnet", replays=True)
    data, network = trainer.loader, trainer.state.model.eval()
    shuffled = torch.randperm(30, generator=generator(0))
    arranged = data.reordered(shuffled, batch_size)
    assert (set(data.shapes(arranged, batch_size)) == {None}) == (batch_size == 5)
    for items in (shuffled, arranged):  # the other one only costs more
        shapes = data.shapes(items, batch_size)
        steps = list(data.steps(items, batch_size, shapes=shapes))
        alone = torch.cat([network(data.graphs.batch(item.view(1))) for item in items])
        torch.testing.assert_close(torch.cat([network(step.inputs) for step in steps]), alone, atol=1e-5, rtol=1e-4)
        y = torch.cat([step.y for step in steps])
        torch.testing.assert_close(y, data.y.view(len(data.y), -1)[items], equal_nan=True)


def test_a_resumed_run_in_pairs_is_an_uninterrupted_one(in_pairs, tmp_path) -> None:
    expected, _ = trained("lanczosnet", replays=True)
    first, second = (trainer_of("lanczosnet", replays=True) for _ in range(2))
    losses, checkpoint = losses_of(first, 2), CheckpointFile(tmp_path / "run", {})
    checkpoint.write(first.state)
    checkpoint.restore(second.state)
    assert losses + losses_of(second, 2) == expected


def test_replayed_steps_on_packed_edges_have_few_shapes(functions, monkeypatch) -> None:
    expected, called = trained("mpnn", replays=False)
    assert called.loader.blocks is None  # lists of edges
    monkeypatch.setattr(MPNN, "blocks_on_cpu", True)
    found, trainer = trained("mpnn", replays=True)
    assert found == pytest.approx(expected, rel=1e-5)
    shapes = set(trainer.executor.graphs)
    assert {shape for _, shape in shapes} >= {DEVIATIONS}
    assert shapes <= {(size, shape) for size in trainer.executor.sizes for shape in (DEVIATIONS, None)}


def test_validation_too_has_no_more_rows_than_usual(monkeypatch) -> None:
    monkeypatch.setattr(MPNN, "blocks_on_cpu", True)
    trainer, found = trainer_of("mpnn", replays=True), []
    trainer.state.model.register_forward_pre_hook(lambda module, inputs: found.append(inputs[0].is_usual))
    trainer.validate()
    assert found == [shape is not None for shape in trainer.val_shapes]
    assert any(found)


@pytest.mark.parametrize("restart_epochs", [0, 2])
def test_a_replayed_run_is_flat_and_does_the_same_with_clipping_and_averages(
    functions, monkeypatch, restart_epochs
) -> None:
    monkeypatch.setitem(SETTINGS["modern"], "restart_epochs", restart_epochs)
    expected, called = trained("lanczosnet", replays=False, chosen="modern")
    found, trainer = trained("lanczosnet", replays=True, chosen="modern")
    assert called.state.fused is None
    assert trainer.state.fused is not None
    assert found == pytest.approx(expected, rel=1e-4)
    averages = trainer.state.average.weights
    for name, average in called.state.average.weights.items():
        torch.testing.assert_close(averages[name], average, rtol=1e-3, atol=1e-4)


def test_a_replayed_run_goes_on_from_a_checkpoint_of_either_way(functions, tmp_path) -> None:
    expected, _ = trained("lanczosnet", replays=False, chosen="modern")
    for first_replays, second_replays in ((True, False), (False, True), (True, True)):
        checkpoint = CheckpointFile(tmp_path / f"{first_replays}{second_replays}", {})
        first = trainer_of("lanczosnet", first_replays, "modern")
        losses = losses_of(first, 2)
        checkpoint.write(first.state)
        second = trainer_of("lanczosnet", second_replays, "modern")
        checkpoint.restore(second.state)
        assert losses + losses_of(second, 2) == pytest.approx(expected, rel=1e-4)


@pytest.fixture
def replays_everywhere(functions, monkeypatch) -> None:
    """Runs of `fit_concurrent` on a CPU go side by side, as on a GPU."""
    monkeypatch.setattr("lanczosnet.training.trainer.can_capture", lambda loader, fabric, model: True)
    monkeypatch.setattr(loop, "side_by_side", lambda fabric: True)


def views_of_two_runs(on_epoch=lambda place, report: None):
    data = communities()
    parts = halves(data)
    task = task_of(data, parts.train)
    networks = [architecture_for(data, task, "gcn", {"hidden_channels": 8}).build(seed) for seed in range(2)]
    passes = []
    for number, network in enumerate(networks):
        network.register_forward_hook(lambda *call, number=number: passes.append((number, len(call[2]))))
    trials = [loop.Trial(network, parts, task, seed) for seed, network in enumerate(networks)]
    chosen = recipe("paper", "node", {"epochs": 2, "views": 3, "stop_window": 0})
    try:
        loop.fit_concurrent(trials, data, chosen, fabric=fabric_for("cpu"), on_epoch=on_epoch)
    finally:
        for network in networks:
            parameters = list(network.parameters())
            assert len({parameter.untyped_storage().data_ptr() for parameter in parameters}) == len(parameters)
            assert all(parameter.grad is None for parameter in parameters)
    return passes


def test_runs_side_by_side_alternate_with_their_views_and_end_with_memory_of_their_own(replays_everywhere) -> None:
    epoch, end = [(0, 270), (1, 270), (0, 90), (1, 90)], [(0, 90), (0, 90), (1, 90), (1, 90)]
    assert views_of_two_runs()[-8:] == epoch + end  # training, validation; what is measured at the end


def test_runs_that_are_interrupted_have_memory_of_their_own_too(replays_everywhere) -> None:
    def stop(place, report) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        views_of_two_runs(stop)


def test_a_released_run_has_memory_of_its_own(functions) -> None:
    _, trainer = trained("gcn", replays=True)
    weights = copy.deepcopy(trainer.state.model.state_dict())
    trainer.release()
    assert trainer.state.fused is None
    parameters = list(trainer.state.model.parameters())
    assert len({parameter.untyped_storage().data_ptr() for parameter in parameters}) == len(parameters)
    torch.testing.assert_close(trainer.state.model.state_dict(), weights)


def test_a_run_that_cannot_be_replayed_is_not_flat(functions, monkeypatch) -> None:
    expected, _ = trained("gcn", replays=False)
    monkeypatch.setattr(executor, "synchronizes", lambda function: True)
    found, trainer = trained("gcn", replays=True)
    assert isinstance(trainer.executor, EagerExecutor)
    assert trainer.state.fused is None
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["lanczosnet", "gcn"])
def test_steps_on_graphs_of_all_sizes_are_captured_once_per_bucket(functions, monkeypatch, name) -> None:
    monkeypatch.setattr(loaders, "_blocks", lambda model, graphs: None)
    monkeypatch.setattr(loaders, "_buckets", lambda model, graphs: model.prepare_buckets(graphs, 2**30))
    trainer = trainer_of(name, replays=True)
    buckets = trainer.loader.buckets
    widths = [each.mask.shape[1] for each in buckets.blocks]
    assert widths == [4, 8, 12]
    found = losses_of(trainer)
    replayed = set(trainer.executor.graphs)
    assert all(isinstance(counts, tuple) and sum(counts) == size for size, counts in replayed)
    assert len(replayed) <= 2 * len(widths)
    assert found[-2] < found[0]  # it learns
    called = trainer_of(name, replays=True)
    called.may_capture = False
    assert losses_of(called) == pytest.approx(found, rel=1e-5)
    assert isinstance(called.executor, EagerExecutor)
    metrics = trainer.finish("done").metrics["test"]
    assert metrics["mae"] == pytest.approx(called.finish("done").metrics["test"]["mae"], rel=1e-4)
