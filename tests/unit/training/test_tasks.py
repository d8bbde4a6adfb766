"""Losses and metrics of every task, with unknown targets."""

import json
import math

import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn_metrics
from sklearn.utils.class_weight import compute_class_weight
from torch_geometric.data import Data

from lanczosnet.graphs import pack
from lanczosnet.schemas.model_config import TaskRecord
from lanczosnet.schemas.record import checked
from lanczosnet.training import Classification, Regression, TrainingError, measures, recipe, task_of
from lanczosnet.training.metrics import METRICS
from lanczosnet.training.recipes import METRIC_NAMES
from lanczosnet.training.tasks import described, for_recipe, from_record, numbered, with_metric
from training_builders import communities, packed_molecules

NAN = float("nan")


def all_measures(task, output, y) -> measures.Measures:
    return measures.Measures(task, measures.answers_of(task, output, measures.names_of(task)), y)


@pytest.mark.parametrize("loss", ["mse", "l1"])
def test_unknown_targets_count_neither_in_loss_nor_metric_nor_gradient(loss):
    task = Regression("graph", ("a", "b"), (0.0, 0.0), (1.0, 1.0), loss=loss)
    y = torch.tensor([[1.0, NAN], [3.0, 5.0]])
    output = torch.zeros(2, 2, requires_grad=True)
    losses = task.losses(output, y)
    wanted = [[1.0, 0.0], [9.0, 25.0]] if loss == "mse" else [[1.0, 0.0], [3.0, 5.0]]
    assert losses.tolist() == wanted
    losses.sum().backward()
    assert torch.isfinite(output.grad).all()
    assert output.grad[0, 1] == 0
    found = all_measures(task, output.detach(), y)
    assert found.mean == pytest.approx({"mae": (2.0 + 5.0) / 2, "rmse": (math.sqrt(5.0) + 5.0) / 2, "r2": -4.0})
    assert found.main == {"a": 2.0, "b": 5.0}
    assert "r2" not in found.by_target["b"]  # one known item has no variance


def test_the_loss_in_units_weighs_targets_as_the_metric_does():
    task = Regression("graph", ("a", "b"), (0.0, 10.0), (1.0, 3.0), loss="mae")
    y = torch.tensor([[1.0, 16.0], [3.0, 4.0]])
    output = torch.zeros(2, 2)
    mae = all_measures(task, output, y).mean["mae"]
    assert float(task.losses(output, y).mean()) == pytest.approx(mae / 2.0)  # the mean of the deviations


def test_targets_are_standardised_by_the_training_items_and_metrics_are_in_their_own_units():
    data = packed_molecules()
    train = torch.arange(30)
    task = task_of(data, train)
    known = data.y[train][:, 0]
    known = known[~known.isnan()].double()
    assert task.mean[0] == pytest.approx(float(known.mean()))
    assert task.deviation[0] == pytest.approx(float(known.std(correction=0)))
    exact = (data.y.double() - torch.tensor(task.mean)) / torch.tensor(task.deviation)
    exact = exact.nan_to_num()
    assert float(task.losses(exact, data.y).max()) < 1e-10
    shifted = measures.Measures(task, measures.Answers(task.predicted(exact) + 2.0), data.y)
    assert shifted.mean["mae"] == pytest.approx(2.0, abs=1e-4)
    assert (task.targets, task.units) == (("mean", "share"), ("1", "100"))


def test_a_constant_target_is_not_divided_by_zero():
    graphs = pack([Data(edge_index=torch.zeros(2, 0).long(), x=torch.ones(1, 1), y=torch.tensor([[3.0]]))] * 4)
    task = task_of(graphs, torch.arange(3))
    assert (task.mean, task.deviation) == ((3.0,), (1.0,))


def test_a_target_without_training_values_is_an_error_that_names_it():
    data = packed_molecules()
    with pytest.raises(TrainingError, match="'mean'"):
        task_of(data, torch.tensor([0, 5, 10]))


def test_classes_of_several_targets_lie_side_by_side():
    task = Classification("graph", ("a", "b"), (("no", "yes"), ("x", "y", "z")))
    assert task.out_channels == 5
    y = torch.tensor([[1.0, 2.0], [NAN, 0.0]])
    output = torch.tensor([[0.0, 9.0, 0.0, 0.0, 9.0], [0.0, 0.0, 0.0, 9.0, 0.0]])
    losses = task.losses(output, y)
    assert losses[1, 0] == 0
    assert losses[0, 0] == pytest.approx(math.log1p(math.exp(-9.0)), rel=1e-2)
    assert task.predicted(output)[:, 1].tolist() == [2, 1]
    found = all_measures(task, output, y)
    assert found.main == {"a": 1.0, "b": 0.5}
    assert found.mean["accuracy"] == 0.75
    assert measures.measured(task, output, y).tolist() == [0.75]
    assert [part.shape for part in task.probabilities(output)] == [(2, 2), (2, 3)]
    assert [part.tolist() for part in task.shares(y)] == [[0.0, 1.0], [0.5, 0.0, 0.5]]


def test_nodes_with_classes_and_nodes_with_numbers_pose_different_tasks():
    data = communities()
    task = task_of(data, torch.arange(10))
    assert (task.kind, task.level, task.out_channels) == ("classification", "node", 3)
    data.y = data.y.float()
    task = task_of(data, torch.arange(10))
    assert (task.kind, task.level, task.out_channels) == ("regression", "node", 1)
    del data.y
    with pytest.raises(TrainingError, match="has no targets"):
        task_of(data, torch.arange(10))


def record_of(task):
    return checked(json.loads(json.dumps(described(task))), TaskRecord, "task", "")


def test_a_task_survives_json():
    for task in (
        task_of(packed_molecules(), torch.arange(30), regression_loss="l1"),
        task_of(communities(), torch.arange(9)),
    ):
        assert from_record(record_of(task)) == task


def test_targets_of_one_name_are_numbered():
    assert numbered(["a", "b", "a", "a"]) == ("a", "b", "a#2", "a#3")


def test_every_kind_of_task_has_the_metrics_of_its_kind():
    assert {name for names in METRIC_NAMES.values() for name in names} == set(METRICS)
    assert all((METRICS[name].needs == "numbers") == (name in METRIC_NAMES["regression"]) for name in METRICS)


def test_all_metrics_equal_scikit_learns_for_each_target_and_on_average_where_they_are_defined():
    generator = torch.Generator().manual_seed(0)
    task = Classification("graph", ("a", "b", "alone"), (("no", "yes"),) * 3)
    output = torch.randn(80, 6, generator=generator)
    y = torch.randint(-1, 2, (80, 3), generator=generator)
    y[:, 2] = 0  # one class: no area
    found = all_measures(task, output, y)
    for column, target in enumerate(("a", "b")):
        known = y[:, column] >= 0
        true, probability = y[known, column].numpy(), task.probabilities(output)[column][known, 1].numpy()
        predicted = task.predicted(output)[known, column].numpy()
        expected = {
            "accuracy": sklearn_metrics.accuracy_score(true, predicted),
            "balanced_accuracy": sklearn_metrics.balanced_accuracy_score(true, predicted),
            "f1": sklearn_metrics.f1_score(true, predicted),
            "roc_auc": sklearn_metrics.roc_auc_score(true, probability),
            "average_precision": sklearn_metrics.average_precision_score(true, probability),
        }
        assert found.by_target[target] == pytest.approx(expected)
    assert "roc_auc" not in found.by_target["alone"]
    assert found.mean["roc_auc"] == pytest.approx(
        (found.by_target["a"]["roc_auc"] + found.by_target["b"]["roc_auc"]) / 2
    )


def test_probabilities_that_are_rounded_to_one_keep_their_order():
    task = Classification("node", ("y",), (("no", "yes"),), metric="roc_auc")
    output = torch.tensor([[0.0, 30.0], [0.0, 20.0], [0.0, -30.0]])
    assert task.probabilities(output)[0][:2, 1].tolist() == [1.0, 1.0]
    assert all_measures(task, output, torch.tensor([[1], [0], [0]])).mean["roc_auc"] == 1.0


def test_the_data_name_their_metric_and_the_recipe_another():
    data = communities()
    data.metric = "f1"
    task = task_of(data, torch.arange(9))
    assert (task.metric, task.measured) == ("f1", ("f1",))
    assert with_metric(task, "metric") == task == with_metric(task, "loss")
    assert with_metric(task, "roc_auc").metric == "roc_auc"
    with pytest.raises(TrainingError, match=r"choose_by=mae .* roc_auc"):
        with_metric(task, "mae")
    data.metric = "speed"
    assert task_of(data, torch.arange(9)).metric == "accuracy"


def test_balanced_weights_are_scikit_learns_and_weigh_the_loss():
    y = torch.tensor([0, 0, 0, 1, 2, 2, -1]).view(-1, 1)
    plain = Classification("node", ("y",), (("a", "b", "c", "absent"),))
    task = for_recipe(plain, recipe("modern", "node", {"class_weight": "balanced"}), y)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=y[:6, 0].numpy())
    assert task.class_weights[0] == pytest.approx((*expected, 1.0))
    output = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
    weights = torch.tensor(task.class_weights[0])[y.clamp(min=0)]
    assert torch.allclose(task.losses(output, y), plain.losses(output, y) * weights)
    assert for_recipe(plain, recipe("modern", "node"), y) == plain
    assert from_record(record_of(task)) == task
