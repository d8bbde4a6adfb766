"""The loop on small data: it learns, stops, chooses, repeats itself and says what went wrong."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from lanczosnet.graphs import pack
from lanczosnet.models import MODELS
from lanczosnet.training import DivergenceError, TrainingError, architecture_for, fit, recipe, task_of
from lanczosnet.training.averaging import WeightAverage
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.engine.loaders import GraphLoader, NodeLoader, Share, loader_for
from lanczosnet.training.loop import advance
from lanczosnet.training.metrics import METRICS
from lanczosnet.training.schedule import consistency_weight, learning_rate, mixed_seed
from lanczosnet.training.state import History
from lanczosnet.training.trainer import RESTART, Trainer
from training_builders import SMALL, communities, halves, packed_molecules

CPU = torch.device("cpu")
SIZES = {"hidden_channels": 16, "num_layers": 2}


def trained(data, name="lanczosnet", seed=0, options=SMALL, **settings):
    parts = halves(data)
    chosen = recipe("modern", task_of(data, parts.train).level, {"epochs": 8, **settings})
    task = task_of(data, parts.train, regression_loss=chosen.regression_loss)
    model = architecture_for(data, task, name, options).build(seed)
    reports = []
    # On the CPU, whatever devices there are: engine/test_concurrent.py has the GPU's bits.
    fitted = fit(model, data, parts, task, chosen, seed=seed, fabric=fabric_for("cpu"), on_epoch=reports.append)
    return model, fitted, reports


@pytest.mark.parametrize("name", MODELS)
def test_every_network_learns_communities(name):
    _, fitted, reports = trained(communities(), name, options=SIZES, epochs=60, learning_rate=0.02)
    assert fitted.metrics["test"]["accuracy"] > 0.85
    assert reports[-1].train_loss < reports[0].train_loss


def test_graph_regression_with_gaps_learns_in_the_units_of_the_data():
    data = packed_molecules(80)
    _, fitted, reports = trained(data, epochs=40, learning_rate=0.01, batch_size=16)
    spread = float((data.y - data.y.nanmean(0)).abs().nanmean(0).mean())
    assert fitted.metrics["test"]["mae"] < 0.4 * spread
    for part in ("val", "test"):
        errors = fitted.by_target[part]
        assert set(errors) == {"mean", "share"}
        assert sum(errors.values()) / 2 == pytest.approx(fitted.metrics[part]["mae"])
    assert reports[-1].as_dict().keys() == {
        "epoch", "train_loss", "val_loss", "val_mae", "val_rmse", "learning_rate", "is_best"
    }  # fmt: skip


@pytest.mark.parametrize("data", [communities(), packed_molecules()], ids=["nodes", "graphs"])
def test_a_seed_determines_everything_and_the_callers_random_state_stays(data):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, one, reports = trained(data, options=SMALL | {"dropout": 0.5}, seed=3)
    assert torch.equal(before, torch.get_rng_state())
    torch.rand(1)
    second, two, again = trained(data, options=SMALL | {"dropout": 0.5}, seed=3)
    assert (one, reports) == (two, again)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert trained(data, options=SMALL | {"dropout": 0.5}, seed=4)[2] != reports


def test_the_model_ends_with_the_weights_of_the_best_epoch():
    model, fitted, reports = trained(communities(), epochs=30, learning_rate=0.1, averaging=0.0, choose_by="loss")
    best = min(reports, key=lambda report: report.val_loss)
    assert fitted.best_epoch == best.epoch < 30
    assert [report.epoch for report in reports if report.is_best][-1] == best.epoch
    assert best.metrics.items() <= fitted.metrics["val"].items()
    assert not model.training


def test_training_begins_anew_after_so_many_epochs_and_the_best_of_all_is_kept():
    data, settings = communities(), {"learning_rate": 0.05, "warmup_epochs": 1, "averaging": 0.9, "choose_by": "loss"}
    settings["options"] = SMALL | {"dropout": 0.0, "input_dropout": 0.0}  # so that first losses tell first weights
    _, alone, first = trained(data, epochs=5, **settings)
    _, fitted, reports = trained(data, epochs=15, restart_epochs=5, **settings)
    assert reports[:5] == first
    rates = [report.learning_rate for report in reports]
    assert rates == rates[:5] * 3
    losses = [report.train_loss for report in reports]
    assert losses[5] > losses[4]
    assert losses[10] > losses[9]
    assert len({losses[0], losses[5], losses[10]}) == 3
    best = min(reports, key=lambda report: report.val_loss)
    assert fitted.best_epoch == best.epoch
    assert best.metrics.items() <= fitted.metrics["val"].items()
    again = trained(data, epochs=15, restart_epochs=5, **settings)
    assert (again[1], again[2]) == (fitted, reports)
    assert alone.epochs == 5


def test_what_is_averaged_begins_anew_too():
    data = communities()
    parts = halves(data)
    task = task_of(data, parts.train)
    chosen = recipe("modern", "node", {"restart_epochs": 2})
    model = architecture_for(data, task, "lanczosnet", SMALL).build(0)
    examples = loader_for(model, data, CPU)
    trainer = Trainer(model, examples, parts, task, chosen, 0, fabric_for("cpu"))
    for _ in range(2):
        advance([trainer])
    assert trainer.state.average.count == 2
    trainer.state.restart()
    assert trainer.state.average.count == 0
    for name, weight in model.state_dict().items():
        assert torch.equal(trainer.state.average.weights[name], weight), name
    states = [tensor for state in trainer.state.optimizer.state.values() for tensor in state.values()]
    assert states
    assert not any(tensor.any() for tensor in states)


def test_rates_and_weights_begin_anew_and_a_short_last_attempt_ends_at_zero():
    chosen = recipe("modern", "graph", {"epochs": 25, "restart_epochs": 10, "consistency": 1.0})
    chosen = replace(chosen, consistency_warmup_epochs=4.0)
    rates = [learning_rate(chosen, step, 3) for step in range(75)]
    assert rates[:30] == rates[30:60]
    assert rates[29] < 0.02 * chosen.learning_rate
    assert rates[74] < 0.05 * chosen.learning_rate
    weights = [consistency_weight(chosen, step, 3) for step in range(75)]
    assert weights[:30] == weights[30:60]
    assert weights[30] < weights[29] == 1.0
    alone = recipe("modern", "graph", {"epochs": 25})
    for restart_epochs in (25, 100):
        assert learning_rate(replace(alone, restart_epochs=restart_epochs), 74, 3) == learning_rate(alone, 74, 3)


def test_the_random_numbers_of_a_restart_are_not_those_of_an_epoch():
    numbers = {mixed_seed(3, 5, *extra) for extra in ((), (0,), (1,), RESTART)}
    assert len(numbers) == 3  # an order of items and the first process share theirs


@pytest.mark.parametrize("rule", ["stop_window", "patience"])
def test_rules_that_would_end_a_run_with_its_first_start_are_refused(rule):
    with pytest.raises(TrainingError, match="set stop_window=0 and patience=0"):
        trained(communities(), restart_epochs=2, **{rule: 3})


def test_training_cannot_begin_anew_without_first_weights():
    data = communities()
    parts = halves(data)
    task = task_of(data, parts.train)
    chosen = recipe("paper", "node", {"restart_epochs": 2, "stop_window": 0})
    with pytest.raises(TrainingError, match=r"reset_parameters\(\), which Bare has not"):
        fit(Bare(), data, parts, task, chosen, fabric=fabric_for("cpu"))


class Bare(nn.Module):
    """Without `reset_parameters`."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, data):
        return self.linear(data.x)


def test_ten_losses_in_a_row_that_do_not_improve_end_a_run_and_nine_do_not():
    paper = recipe("paper", "node")
    record = History()
    for loss in [5.0, *range(1, 11)]:
        record.tick(float(loss), (0.0, 0.0))
    assert record.reason_to_stop(paper) is None
    record.tick(10.0, (0.0, 0.0))
    assert "10 times in a row" in record.reason_to_stop(paper)
    record.tick(9.0, (0.0, 0.0))
    assert record.reason_to_stop(paper) is None
    assert "no better epoch in 3" in record.reason_to_stop(replace(paper, patience=3))


def test_equal_metrics_are_told_apart_by_the_loss():
    record = History()
    assert [record.tick(0, rank) for rank in [(0.5, -2.0), (0.5, -2.0), (0.5, -1.0), (0.4, 0.0)]] == [
        True, False, True, False
    ]  # fmt: skip


def test_a_diverging_run_names_the_epoch_and_keeps_the_best_weights():
    data = packed_molecules()
    task = task_of(data, halves(data).train)
    model = architecture_for(data, task, "lanczosnet", SMALL).build()
    chosen = recipe("paper", "graph", {"epochs": 30})

    def poison(report):
        if report.epoch == 3:
            next(model.parameters()).data.fill_(float("nan"))

    with pytest.raises(DivergenceError, match=r"epoch 4.*smaller learning_rate") as stop:
        fit(model, data, halves(data), task, chosen, on_epoch=poison)
    assert stop.value.best.best_epoch <= 3
    assert all(torch.isfinite(weight).all() for weight in model.parameters())


def test_a_run_that_diverges_at_once_has_nothing_to_keep():
    data = communities()
    data.x = data.x.sign() * 3e38
    with pytest.raises(DivergenceError, match="epoch 1") as stop:
        trained(data)
    assert stop.value.best is None


class OutOfMemory(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, data):
        raise torch.OutOfMemoryError("CUDA out of memory")


def test_out_of_memory_suggests_a_smaller_batch():
    data = packed_molecules()
    task = task_of(data, halves(data).train)
    with pytest.raises(TrainingError, match="batches of 64: try batch_size=32"):
        fit(OutOfMemory(), data, halves(data), task, recipe("paper", "graph"))


def test_out_of_memory_on_one_graph_does_not_speak_of_batches():
    data = communities()
    task = task_of(data, halves(data).train)
    with pytest.raises(TrainingError, match="out of memory: try fewer num_steps, a smaller hidden_channels, or"):
        fit(OutOfMemory(), data, halves(data), task, recipe("paper", "node"))


def test_clipping_and_averaging_and_decay_are_not_ignored():
    plain = {"clip_norm": 0.0, "averaging": 0.0, "decay": "none", "warmup_epochs": 0.0}
    reports = trained(communities(), **plain)[2]
    for change in ({"clip_norm": 1e-3}, {"averaging": 0.9}, {"decay": "cosine"}, {"warmup_epochs": 4}):
        changed = trained(communities(), **(plain | change))[2]
        assert [r.val_loss for r in changed] != [r.val_loss for r in reports], change


def test_the_average_is_a_moving_one_and_young_averages_forget_faster():
    model = nn.Linear(1, 1)
    average = WeightAverage(model, 0.999)
    nn.init.constant_(model.weight, 1.0)
    before = average.weights["weight"].clone()
    average.update(model, average.next_share())
    assert torch.allclose(average.weights["weight"], before + (1 - 2 / 11) * (1 - before))


def assert_steps_equal_single_graphs(model, examples, data):
    model.eval()
    order = torch.tensor([7, 3, 11, 0, 5])
    steps = list(examples.steps(order, 2))
    together = torch.cat([model(step.inputs) for step in steps])
    alone = torch.cat([model(data[int(i)]) for i in order])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)
    assert torch.equal(torch.cat([s.y for s in steps]).nan_to_num(), data.y[order].nan_to_num())


def test_padded_blocks_change_no_output():
    data = packed_molecules(12)
    model = architecture_for(data, task_of(data, torch.arange(8)), "lanczosnet", SMALL).build()
    examples = GraphLoader(model, data, CPU)
    assert_steps_equal_single_graphs(model, examples, data)
    assert examples.blocks is not None


def test_networks_of_messages_stay_with_edges_on_a_cpu():
    data = packed_molecules(12)
    task = task_of(data, torch.arange(8))
    for name, has_blocks in (("gcn", True), ("gpnn", True), ("ggnn", False), ("mpnn", False), ("gat", False)):
        model = architecture_for(data, task, name, SIZES).build()
        examples = GraphLoader(model, data, CPU)
        assert (examples.blocks is not None) == has_blocks, name
        assert_steps_equal_single_graphs(model, examples, data)


def test_precomputed_pairs_change_no_output_where_blocks_would_take_too_much_memory(monkeypatch):
    monkeypatch.setattr("lanczosnet.batching.padded.MOST_BYTES", 0)
    data = packed_molecules(12)
    model = architecture_for(data, task_of(data, torch.arange(8)), "lanczosnet", SMALL).build()
    examples = GraphLoader(model, data, CPU)
    assert examples.blocks is None
    assert {"ritz_values", "ritz_vectors", "component_index"} <= {*examples.graphs.node, *examples.graphs.graph}
    assert_steps_equal_single_graphs(model, examples, data)


def test_training_leaves_the_callers_data_as_it_was(device):
    data = communities()
    x, keys = data.x, set(data.keys())
    model = architecture_for(data, task_of(data, torch.arange(9)), "lanczosnet", SMALL).build().to(device)
    NodeLoader(model, data, device)
    assert data.x is x
    assert set(data.keys()) == keys


@pytest.mark.parametrize("most_bytes", [2**31, 0], ids=["blocks", "packed"])
def test_graphs_in_several_parts_are_trained_as_they_are(most_bytes, monkeypatch):
    monkeypatch.setattr("lanczosnet.batching.padded.MOST_BYTES", most_bytes)
    graphs = packed_molecules(6)[:]
    parts = Batch.from_data_list(graphs[:2])
    graphs.append(Data(**{key: parts[key] for key in graphs[0].keys() if key != "y"}, y=graphs[0].y))  # noqa: SIM118
    data = pack(graphs)
    model = architecture_for(data, task_of(data, torch.arange(1, 7)), "lanczosnet", SMALL).build().eval()
    examples = GraphLoader(model, data, CPU)
    assert (examples.blocks is None) == (most_bytes == 0)
    (step,) = examples.steps(torch.arange(7), 7)
    alone = torch.cat([model(graph) for graph in graphs])
    torch.testing.assert_close(model(step.inputs), alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("data", [communities(), packed_molecules(11)], ids=["nodes", "graphs"])
def test_processes_share_a_batch_without_overlap(data):
    task = task_of(data, torch.arange(9))
    model = architecture_for(data, task, "lanczosnet", SMALL).build()
    examples = (GraphLoader if task.level == "graph" else NodeLoader)(model, data, CPU)
    items = torch.randperm(9)
    whole = list(examples.steps(items, 4))
    parts = [list(examples.steps(items, 4, Share(process, 2))) for process in range(2)]
    for joint, shares in zip(whole, zip(*parts, strict=True), strict=True):
        counts = [int(task.known(share.y).sum()) for share in shares]
        assert sum(counts) == int(task.known(joint.y).sum())
        assert all(torch.equal(share.batch_y.nan_to_num(), joint.y.nan_to_num()) for share in shares)


def test_a_batch_that_does_not_divide_among_processes_is_refused():
    data = packed_molecules(8)
    model = architecture_for(data, task_of(data, torch.arange(6)), "lanczosnet", SMALL).build()
    with pytest.raises(TrainingError, match="multiple of the 2 processes"):
        next(GraphLoader(model, data, CPU).steps(torch.arange(6), 3, Share(0, 2)))


def test_double_precision_is_that_of_the_weights_too():
    data = communities()
    parts = halves(data)
    model = MODELS["gcn"](data.num_features, 8, 3)
    data.x = data.x.double()
    fit(
        model,
        data,
        parts,
        task_of(data, parts.train),
        recipe("paper", "node", {"epochs": 2}),
        fabric=fabric_for("cpu", "64-true"),
    )
    assert any((parameter != parameter.float().double()).any() for parameter in model.parameters())


def test_the_epoch_is_chosen_by_the_metric_that_is_named():
    data = communities()
    _, fitted, reports = trained(data, epochs=12, learning_rate=0.05, averaging=0.0, choose_by="roc_auc")
    best = max(reports, key=lambda report: (report.metrics["roc_auc"], -report.val_loss))
    assert {tuple(report.metrics) for report in reports} == {("roc_auc",)}  # no other costs time in an epoch
    assert fitted.best_epoch == best.epoch
    assert list(fitted.metrics["test"]) == ["roc_auc", "accuracy", "balanced_accuracy", "f1", "average_precision"]
    assert fitted.metrics_by_target["test"] == {"y": fitted.metrics["test"]}


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_may_choose_the_epoch(name):
    data = packed_molecules(80) if METRICS[name].needs == "numbers" else communities()
    settings = {"learning_rate": 0.05, "averaging": 0.0, "batch_size": 16}
    _, fitted, reports = trained(data, epochs=12, **settings, choose_by=name)
    sign = 1 if METRICS[name].higher_is_better else -1
    best = max(reports, key=lambda report: (sign * report.metrics[name], -report.val_loss))
    assert fitted.best_epoch == best.epoch
    assert [report.is_best for report in reports][best.epoch - 1 :] == [True] + [False] * (12 - best.epoch)
    assert fitted.metrics["val"][name] == pytest.approx(best.metrics[name])


def test_patience_ends_a_run_that_gets_no_better_and_keeps_its_best_epoch():
    data, settings = communities(), {"epochs": 60, "learning_rate": 0.3, "averaging": 0.0, "choose_by": "loss"}
    _, whole, all_reports = trained(data, **settings)
    _, fitted, reports = trained(data, **settings, patience=5)
    best = 0
    for report in all_reports:
        best = report.epoch if report.is_best else best
        if report.epoch == best + 5:
            break
    assert reports == all_reports[: best + 5]
    assert (fitted.best_epoch, fitted.epochs, whole.epochs) == (best, best + 5, 60)
    assert "no better epoch in 5" in fitted.stopped


def test_a_metric_that_is_not_defined_is_an_error_that_says_what_to_do():
    data = communities()
    parts = halves(data)
    one_class = replace(parts, val=parts.val[data.y[parts.val] == 0])
    task, chosen = task_of(data, parts.train), recipe("modern", "node", {"epochs": 2, "choose_by": "roc_auc"})
    model = architecture_for(data, task, "gcn", {}).build()
    with pytest.raises(TrainingError, match="roc_auc is not defined on the validation items"):
        fit(model, data, one_class, task, chosen, fabric=fabric_for("cpu"))


def test_checkpointed_activations_change_no_metric_and_do_not_tell_runs_apart() -> None:
    data, parts = communities(), halves(communities())
    task, chosen = task_of(data, parts.train), recipe("modern", "node", {"epochs": 3})
    options = [SMALL, SMALL | {"checkpoint_activations": True}]
    architectures = [architecture_for(data, task, "lanczosnet", each | {"dropout": 0.5}) for each in options]
    plain, checkpointed = (fit(each.build(0), data, parts, task, chosen) for each in architectures)
    assert plain == checkpointed
    assert architectures[0].identity() == architectures[1].identity()
    assert architectures[1].build(0).residual_stack.checkpoint_activations
