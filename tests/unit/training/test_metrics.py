"""Metrics against scikit-learn's, with ties, unknown targets and missing classes."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as sklearn_metrics

from lanczosnet.training.metrics import METRICS

UNKNOWN = -1
# Few values, so that ties are common; and any values.
SCORES = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), st.floats(-1e3, 1e3))
NUMBERS = st.floats(-100, 100).map(lambda number: round(number, 3))


@st.composite
def classified(draw, least: int = 2, most: int = 5):
    """Probabilities `[item, class]` and targets in which some are unknown."""
    classes, items = draw(st.integers(least, most)), draw(st.integers(1, 40))
    weights = draw(arrays(float, (items, classes), elements=st.sampled_from([0.5, 1.0, 2.0, 3.0])))
    target = draw(arrays(np.int64, items, elements=st.integers(UNKNOWN, classes - 1)))
    return weights / weights.sum(1, keepdims=True), target


@st.composite
def ranked(draw):
    """Scores of two classes with ties, and targets in which some are unknown."""
    items = draw(st.integers(1, 60))
    return draw(arrays(float, items, elements=SCORES)), draw(arrays(int, items, elements=st.integers(UNKNOWN, 1)))


@st.composite
def numbers(draw):
    items = draw(st.integers(1, 40))
    predicted, target = (draw(arrays(float, items, elements=NUMBERS)) for _ in range(2))
    return predicted, target, draw(arrays(bool, items))


def ours(name: str, prediction: np.ndarray, target: np.ndarray, *more: int) -> float:
    value = METRICS[name].function(torch.from_numpy(prediction), torch.from_numpy(target), *more)
    assert value.dtype == torch.float64
    assert value.shape == ()
    return float(value)


def same(value: float, expected: float) -> bool:
    return value == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(classified())
@settings(deadline=None)
def test_metrics_of_classes_equal_those_of_scikit_learn(case):
    probabilities, target = case
    predicted, classes, known = probabilities.argmax(1), probabilities.shape[1], target >= 0
    values = {name: ours(name, predicted, target, classes) for name in ("accuracy", "balanced_accuracy", "f1")}
    if not known.any():
        assert all(math.isnan(value) for value in values.values())
        return
    truth, guess = target[known], predicted[known]
    assert same(values["accuracy"], sklearn_metrics.accuracy_score(truth, guess))
    recall = sklearn_metrics.recall_score(truth, guess, labels=np.unique(truth), average="macro", zero_division=0)
    assert same(values["balanced_accuracy"], recall)  # scikit-learn's own warns about classes that are only predicted
    if classes > 2:
        assert same(values["f1"], sklearn_metrics.f1_score(truth, guess, average="macro"))
    elif (truth == 1).any() or (guess == 1).any():
        assert same(values["f1"], sklearn_metrics.f1_score(truth, guess))
    else:
        assert math.isnan(values["f1"])


@given(classified())
@settings(deadline=None)
def test_balanced_accuracy_is_that_of_scikit_learn_if_every_predicted_class_occurs(case):
    probabilities, target = case
    predicted, known = probabilities.argmax(1), target >= 0
    if known.any() and set(predicted[known]) <= set(target[known]) and len(set(target[known])) > 1:
        expected = sklearn_metrics.balanced_accuracy_score(target[known], predicted[known])
        assert same(ours("balanced_accuracy", predicted, target, probabilities.shape[1]), expected)


@given(ranked())
@settings(deadline=None)
def test_metrics_of_two_classes_scores_equal_those_of_scikit_learn(case):
    scores, target = case
    known = target >= 0
    area, precision = ours("roc_auc", scores, target), ours("average_precision", scores, target)
    if set(target[known]) == {0, 1}:
        assert same(area, sklearn_metrics.roc_auc_score(target[known], scores[known]))
    else:
        assert math.isnan(area)
    if (target == 1).any():
        assert same(precision, sklearn_metrics.average_precision_score(target[known], scores[known]))
    else:
        assert math.isnan(precision)


@given(classified(least=3))
@settings(deadline=None)
def test_metrics_of_several_classes_scores_equal_those_of_scikit_learn(case):
    scores, target = case
    known, classes = target >= 0, scores.shape[1]
    area, precision = ours("roc_auc", scores, target), ours("average_precision", scores, target)
    if len(set(target[known])) == classes:
        expected = sklearn_metrics.roc_auc_score(target[known], scores[known], multi_class="ovr", average="macro")
        assert same(area, expected)
        assert same(precision, sklearn_metrics.average_precision_score(target[known], scores[known]))
    else:
        assert math.isnan(area)
        assert math.isnan(precision)


@given(numbers())
@settings(deadline=None)
def test_metrics_of_numbers_equal_those_of_scikit_learn(case):
    predicted, target, known = case
    masked = np.where(known, target, np.nan)
    values = {name: ours(name, predicted, masked) for name in ("mae", "rmse", "r2")}
    if not known.any():
        assert all(math.isnan(value) for value in values.values())
        return
    truth, guess = target[known], predicted[known]
    assert same(values["mae"], sklearn_metrics.mean_absolute_error(truth, guess))
    assert same(values["rmse"], sklearn_metrics.root_mean_squared_error(truth, guess))
    if np.ptp(truth) > 0:
        # The variance of almost equal numbers is as exact as its largest term, not as itself.
        tolerance = 1e-12 * max(1.0, abs(truth).max() ** 2 / truth.var(), (truth - guess).max() ** 2 / truth.var())
        assert values["r2"] == pytest.approx(sklearn_metrics.r2_score(truth, guess), rel=tolerance, abs=tolerance)
    else:
        assert math.isnan(values["r2"])


@pytest.mark.parametrize("name", ["mae", "rmse", "r2"])
def test_columns_are_averaged_and_unknown_ones_left_out(name):
    generator = np.random.default_rng(0)
    predicted, target = generator.normal(size=(2, 20, 3))
    expected = {
        "mae": sklearn_metrics.mean_absolute_error,
        "rmse": sklearn_metrics.root_mean_squared_error,
        "r2": sklearn_metrics.r2_score,
    }[name]
    assert same(ours(name, predicted, target), expected(target, predicted))
    target[:, 1] = np.nan
    assert same(ours(name, predicted, target), expected(target[:, [0, 2]], predicted[:, [0, 2]]))
    predicted[3, 0] = np.nan  # a model that fails is not better than others
    assert math.isnan(ours(name, predicted, target))


@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
def test_two_columns_of_scores_are_those_of_two_classes(name):
    generator = np.random.default_rng(0)
    logits, target = generator.normal(size=(50, 2)), generator.integers(0, 2, 50)
    difference = logits[:, 1] - logits[:, 0]
    probability = torch.from_numpy(logits).softmax(1)
    assert ours(name, logits, target) == ours(name, difference, target) == ours(name, difference[:, None], target)
    assert same(ours(name, probability.numpy(), target), ours(name, difference, target))


@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
def test_a_score_that_is_not_a_number_shows(name):
    target = np.array([0, 1, 1, 0])
    assert math.isnan(ours(name, np.array([0.0, math.nan, 1.0, 2.0]), target))
    target[1] = UNKNOWN
    assert not math.isnan(ours(name, np.array([0.0, math.nan, 1.0, 2.0]), target))


@pytest.mark.parametrize("name", METRICS)
def test_the_registry_says_which_direction_is_better(name):
    metric = METRICS[name]
    target = torch.tensor([0, 1, 1, 0])
    good, bad = target.double(), 1 - target.double()
    if metric.needs == "classes":
        values = [metric.function(guess.long(), target, 2) for guess in (good, bad)]
    else:
        values = [metric.function(guess, target.double()) for guess in (good, bad)]
    assert (values[0] > values[1]) == metric.higher_is_better


@pytest.mark.parametrize("name", METRICS)
def test_metrics_stay_on_the_device(device, name):
    metric = METRICS[name]
    target = torch.tensor([0, 1, 1, 0, 1], device=device)
    scores = torch.tensor([0.0, 1.0, 1.0, 1.0, 0.0], device=device)
    predicted, wanted = (scores.long(), target) if metric.needs == "classes" else (scores, target.double())
    more = (2,) if metric.needs == "classes" else ()
    metric.function(predicted, wanted, *more)  # what is loaded on the first call may make the host wait
    if device.type == "cuda":
        torch.cuda.set_sync_debug_mode("error")
    try:
        value = metric.function(predicted, wanted, *more)
    finally:
        if device.type == "cuda":
            torch.cuda.set_sync_debug_mode("default")
    assert value.device == target.device
