"""Recipes are data; a misspelt setting is an error."""

import dataclasses
import itertools

import pytest

from lanczosnet.training import RECIPES, TrainingError, recipe
from lanczosnet.training.schedule import learning_rate


def test_the_papers_numbers():
    node, graph = recipe("paper", "node"), recipe("paper", "graph")
    assert (node.optimizer, node.learning_rate, node.weight_decay) == ("adam", 1e-2, 5e-4)
    assert (graph.learning_rate, graph.epochs, graph.stop_window, graph.regression_loss) == (1e-4, 200, 10, "mse")


def test_every_number_can_be_overridden_also_by_text():
    for key, value in recipe("modern", "graph").settings().items():
        if not isinstance(value, str):
            changed = recipe("modern", "graph", {key: "0.5" if isinstance(value, float) else "7"})
            assert getattr(changed, key) == (0.5 if isinstance(value, float) else 7), key
    assert recipe("paper", "node", {"decay": "cosine"}).decay == "cosine"


def test_views_and_consistency_are_off_unless_asked_for():
    for name in RECIPES:
        chosen = recipe(name, "node")
        assert (chosen.views, chosen.consistency, chosen.consistency_warmup_epochs) == (1, 0.0, 0.0)
    asked = recipe("paper", "node", {"views": "4", "consistency": 1, "consistency_warmup_epochs": "2.5"})
    assert (asked.views, asked.consistency, asked.consistency_warmup_epochs) == (4, 1.0, 2.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learningrate": 1}, "learning_rate, weight_decay"),
        ({"learning_rate": "fast"}, "learning_rate must be a number"),
        ({"epochs": "0"}, "at least 1"),
        ({"averaging": "1.0"}, "below 1"),
        ({"optimizer": "sgd"}, "adam or adamw"),
        ({"views": "0"}, r"views must be a number \(int, at least 1\)"),
        ({"views": "1.5"}, "views must be a number"),
        ({"views": 1.5}, "views must be a number"),
        ({"consistency": "-1"}, r"consistency must be a number \(float, at least 0\)"),
        ({"consistency_warmup_epochs": "inf"}, "consistency_warmup_epochs must be a number"),
        ({"confidence": "1"}, "confidence must be a number .at least 0 and below 1"),
    ],
)
def test_a_wrong_setting_lists_the_right_ones(settings, message):
    with pytest.raises(TrainingError, match=message):
        recipe("paper", "node", settings)
    with pytest.raises(TrainingError, match="paper, modern"):
        recipe("papre", "node")


def test_a_recipe_cannot_be_changed_in_place():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RECIPES["paper"]["node"].epochs = 3  # type: ignore[misc]


def test_the_rate_rises_then_falls_to_zero():
    chosen = recipe("modern", "graph", {"epochs": 10, "warmup_epochs": 2, "learning_rate": 1.0})
    rates = [learning_rate(chosen, step, 5) for step in range(51)]
    assert rates[:10] == pytest.approx([0.1 * i for i in range(1, 11)])
    assert all(a >= b for a, b in itertools.pairwise(rates[9:]))
    assert rates[30] == pytest.approx(0.5)
    assert rates[50] == pytest.approx(0.0)
    assert learning_rate(recipe("paper", "node"), 10_000, 1) == 1e-2
