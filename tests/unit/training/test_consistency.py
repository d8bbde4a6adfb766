"""Views of the same nodes, and what their disagreement adds to a loss."""

import math

import pytest
import torch

from lanczosnet.models import MODELS
from lanczosnet.training import Classification, Regression, TrainingError, architecture_for, fit, recipe, task_of
from lanczosnet.training.consistency import aligned, disagreement, sharpened
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.engine.loaders import loader_for
from lanczosnet.training.schedule import consistency_weight
from lanczosnet.training.trainer import Trainer
from training_builders import SMALL, communities, halves, packed_molecules

TWO_CLASSES = Classification("node", ("y",), (("a", "b"),))
LABELS = torch.tensor([[0], [1]])  # of training items: as many of either class


def logits(*shares):
    """Outputs whose softmax has these shares of the first class."""
    return torch.tensor([[math.log(share), math.log(1 - share)] for share in shares], dtype=torch.float64)


def node_recipe(**settings):
    return recipe("paper", "node", settings)


def test_sharpening_is_a_power_of_the_shares():
    shares = torch.tensor([[0.8, 0.2], [0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)
    squared = torch.tensor([[0.64 / 0.68, 0.04 / 0.68], [0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(sharpened(shares, 0.5), squared)
    torch.testing.assert_close(sharpened(shares, 1.0), shares, atol=1e-11, rtol=0)
    assert sharpened(shares[:1], 0.0).tolist() == [[1.0, 0.0]]
    assert sharpened(shares[2:], 1e-3).isfinite().all()


def test_the_disagreement_by_hand():
    views = [logits(0.9), logits(0.7)]  # mean 0.8, sharpened 16 / 17
    target = 16 / 17
    expected = ((0.9 - target) ** 2 + (0.7 - target) ** 2) * 2 / 2  # two classes, mean of two views
    found = disagreement(TWO_CLASSES, views, LABELS, node_recipe(temperature=0.5))
    assert found.item() == pytest.approx(expected, rel=1e-5)
    alike = disagreement(TWO_CLASSES, [logits(0.9)] * 2, LABELS, node_recipe(temperature=1.0))
    assert alike.item() == pytest.approx(0.0)


def test_items_that_are_not_confident_do_not_count():
    views = [logits(0.9, 0.6), logits(0.7, 0.4)]
    sure = disagreement(TWO_CLASSES, [logits(0.9), logits(0.7)], LABELS, node_recipe())
    torch.testing.assert_close(disagreement(TWO_CLASSES, views, LABELS, node_recipe(confidence=0.6)), sure)
    assert disagreement(TWO_CLASSES, views, LABELS, node_recipe()) != sure
    assert disagreement(TWO_CLASSES, views, LABELS, node_recipe(confidence=0.9)) == 0


def test_aligned_answers_by_hand():
    shares, mean = torch.tensor([0.25, 0.75], dtype=torch.float64), 0.6
    answers = torch.tensor([[0.8, 0.2], [0.4, 0.6]], dtype=torch.float64)
    for strength in (1.0, 0.5):
        raised = [(p * (0.25 / mean) ** strength, (1 - p) * (0.75 / (1 - mean)) ** strength) for p in (0.8, 0.4)]
        expected = [[a / (a + b), b / (a + b)] for a, b in raised]
        torch.testing.assert_close(aligned(answers, shares, strength), torch.tensor(expected, dtype=torch.float64))


def test_answers_that_have_the_shares_stay():
    answers = torch.tensor([[0.8, 0.2], [0.4, 0.6]], dtype=torch.float64)
    torch.testing.assert_close(aligned(answers, answers.mean(0), 1.0), answers)


def test_aligned_answers_are_finite_where_a_class_has_no_labels_or_no_answers():
    answers = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    found = aligned(answers, torch.tensor([0.0, 0.5, 0.5]), 1.0)
    assert found.tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert sharpened(found, 0.5).isfinite().all()


def test_an_alignment_draws_to_the_shares_of_the_training_labels():
    views = [logits(0.8, 0.4)] * 2  # mean 0.6 of the first class, of which a quarter of the labels are
    labels = torch.tensor([[0], [1], [1], [1], [-1]])  # the last is unknown
    chosen = node_recipe(temperature=1.0, alignment=1.0)
    answers = torch.tensor([[0.8, 0.2], [0.4, 0.6]], dtype=torch.float64)
    wanted = aligned(answers, torch.tensor([0.25, 0.75], dtype=torch.float64), 1.0)
    expected = (answers - wanted).square().sum(1).mean().item()
    assert disagreement(TWO_CLASSES, views, labels, chosen).item() == pytest.approx(expected, rel=1e-5)
    sure = node_recipe(temperature=1.0, alignment=1.0, confidence=0.8)  # the second alone: 0.9 of the other class
    expected = (answers - wanted).square().sum(1)[1].item()
    assert disagreement(TWO_CLASSES, views, labels, sure).item() == pytest.approx(expected, rel=1e-5)


def test_several_targets_are_averaged():
    both = Classification("node", ("y", "z"), (("a", "b"), ("a", "b")))
    views = [torch.cat([logits(0.9), logits(0.6)], 1), torch.cat([logits(0.7), logits(0.5)], 1)]
    apart = [[view[:, part] for view in views] for part in ([0, 1], [2, 3])]
    alone = [disagreement(TWO_CLASSES, part, LABELS, node_recipe()) for part in apart]
    torch.testing.assert_close(disagreement(both, views, LABELS.expand(-1, 2), node_recipe()), sum(alone) / 2)


def test_every_view_is_drawn_to_the_target_and_the_target_to_none():
    views = [logits(0.9).requires_grad_(), logits(0.7).requires_grad_()]
    disagreement(TWO_CLASSES, views, LABELS, node_recipe(temperature=0.5)).backward()
    target = 16 / 17
    for view, share in zip(views, (0.9, 0.7), strict=True):
        # of (p - t)^2 + (1 - p - 1 + t)^2, halved, with t held; dp / dlogit = p (1 - p)
        slope = 2 * (share - target) * share * (1 - share)
        assert view.grad[0].tolist() == pytest.approx([slope, -slope], rel=1e-5)


def test_regression_is_refused():
    task = Regression("graph", ("y",), (0.0,), (1.0,))
    with pytest.raises(TrainingError, match="consistency is for classes: set consistency=0"):
        disagreement(task, [torch.zeros(3, 1)], torch.zeros(3, 1), node_recipe(consistency=1.0))
    with pytest.raises(TrainingError, match="consistency=0"):
        losses_of(packed_molecules(12), consistency=1.0)


def trainer_of(dropout=0.0, **settings):
    data = communities()
    parts = halves(data)
    task = task_of(data, parts.train)
    model = architecture_for(data, task, "lanczosnet", SMALL | {"dropout": dropout}).build(0)
    fabric = fabric_for("cpu")
    examples = loader_for(model, data, fabric.device)
    return Trainer(model, examples, parts, task, node_recipe(**settings), 0, fabric)


def losses_of(data, **settings):
    parts = halves(data)
    task = task_of(data, parts.train)
    model = architecture_for(data, task, "lanczosnet", SMALL | {"dropout": 0.5}).build(0)
    losses = []
    fit(
        model, data, parts, task, node_recipe(epochs=3, **settings), fabric=fabric_for("cpu"),
        on_epoch=lambda report: losses.append(report.train_loss),
    )  # fmt: skip
    return losses


def test_the_loss_is_the_views_mean_and_a_weighted_disagreement():
    trainer = trainer_of(views=3, consistency=2.0)
    step = trainer.loader.step(trainer.split.train)
    once = trainer_of().loss(step)
    torch.testing.assert_close(trainer.loss(step), once)  # without dropout the views are one
    output = trainer.output(step)
    apart = disagreement(trainer.task, [output], step.batch_y, trainer.recipe)
    torch.testing.assert_close(trainer.loss(step, 0.5), once + 0.5 * apart)


def test_views_differ_by_their_dropout():
    data = communities()
    assert losses_of(data) != losses_of(data, views=2)
    assert losses_of(data, views=2) == losses_of(data, views=2)


def test_consistency_changes_a_run_as_far_as_its_warm_up_lets_it():
    data = communities()
    without = losses_of(data, views=2)
    full = losses_of(data, views=2, consistency=1.0)
    rising = losses_of(data, views=2, consistency=1.0, consistency_warmup_epochs=1000)
    assert full[0] > without[0]
    assert rising[0] - without[0] == pytest.approx((full[0] - without[0]) / 1000, rel=0.05)


def test_an_alignment_changes_a_run():
    data = communities()
    once = losses_of(data, views=2, consistency=1.0)
    assert losses_of(data, views=2, consistency=1.0, alignment=1.0) != once
    assert losses_of(data, views=2, consistency=1.0, alignment=0.0) == once


def test_the_weight_rises_linearly_and_stays():
    chosen = node_recipe(consistency=2.0, consistency_warmup_epochs=2)
    weights = [consistency_weight(chosen, step, 5) for step in range(15)]
    assert weights[:10] == pytest.approx([0.2 * i for i in range(1, 11)])
    assert weights[10:] == [2.0] * 5
    assert consistency_weight(node_recipe(consistency=2.0), 0, 5) == 2.0


@pytest.mark.parametrize("name", MODELS)
def test_views_of_one_graph_are_copies_in_one_forward_pass(name):
    data = communities()
    parts = halves(data)
    task = task_of(data, parts.train)
    model = architecture_for(data, task, name, {"hidden_channels": 16, "num_layers": 2, "dropout": 0.0}).build(0)
    chosen, fabric = node_recipe(views=3, consistency=2.0), fabric_for("cpu")
    passes = []
    model.register_forward_hook(lambda module, inputs, output: passes.append(len(output)))
    losses = []
    for copies in (1, 3):
        examples = loader_for(model, data, fabric.device, copies)
        trainer = Trainer(model, examples, parts, task, chosen, 0, fabric)
        losses.append(trainer.loss(next(trainer.steps(parts.train)), 0.5))
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=0)  # without dropout
    assert passes == [90, 90, 90, 270]
