"""Losses and metrics of every task, with unknown targets."""

import json
import math

import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.graphs import pack
from lanczosnet.training import Classification, Regression, TrainingError, task_of
from lanczosnet.training.tasks import described, from_description, numbered
from training_builders import communities, packed_molecules

NAN = float("nan")


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
    assert task.metrics(output.detach(), y) == {"mae": (2.0 + 5.0) / 2, "rmse": (math.sqrt(5.0) + 5.0) / 2}
    assert task.by_target(output.detach(), y) == {"a": 2.0, "b": 5.0}


def test_the_loss_in_units_weighs_targets_as_the_metric_does():
    task = Regression("graph", ("a", "b"), (0.0, 10.0), (1.0, 3.0), loss="mae")
    y = torch.tensor([[1.0, 16.0], [3.0, 4.0]])
    output = torch.zeros(2, 2)
    measured = task.metrics(task.predicted(output), y)["mae"]
    assert float(task.losses(output, y).mean()) == pytest.approx(measured / 2.0)  # the mean of the deviations


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
    assert task.metrics(task.predicted(exact) + 2.0, data.y)["mae"] == pytest.approx(2.0, abs=1e-4)
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
    assert task.by_target(task.predicted(output), y) == {"a": 1.0, "b": 0.5}
    assert task.metrics(task.predicted(output), y) == {"accuracy": 0.75}
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


def test_a_task_survives_json():
    for task in (
        task_of(packed_molecules(), torch.arange(30), regression_loss="l1"),
        task_of(communities(), torch.arange(9)),
    ):
        assert from_description(json.loads(json.dumps(described(task)))) == task


def test_targets_of_one_name_are_numbered():
    assert numbered(["a", "b", "a", "a"]) == ("a", "b", "a#2", "a#3")
