"""Intervals and calibrated probabilities from the validation part, of one model and of several."""

import math
import shutil

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression

import lanczosnet
from graph_builders import generator
from lanczosnet.graphs import PackedGraphs, pack
from lanczosnet.training import Classification, JobSpec, Regression, TrainingError, run
from lanczosnet.training.calibration import (
    Calibration,
    calibration_errors,
    calibration_of,
    conformal_quantile,
    interval_measures,
    isotonic,
    with_calibrated,
    with_intervals,
)
from lanczosnet.training.ensemble import load_models
from lanczosnet.training.evaluation import evaluate
from lanczosnet.training.job import job_of
from lanczosnet.training.predict import Predictions
from lanczosnet.training.reference import REFERENCE, ModelReference
from molecule_builders import molecule

SMALL = {"hidden_channels": 8, "num_layers": 1, "num_steps": 4, "epochs": 2, "patience": 0}
NUMBERS = Regression("graph", ("a", "b"), (0.0, 0.0), (1.0, 1.0))
CLASSES = Classification("graph", ("t",), (("no", "yes"),))


def numbers(values: torch.Tensor, spread: torch.Tensor | None = None) -> Predictions:
    return Predictions(NUMBERS, values, (), ("",) * len(values), uncertainty=spread)


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(seed))


def reference(items: torch.Tensor, y: torch.Tensor, answers: torch.Tensor) -> ModelReference:
    return ModelReference(items, y, answers, (1, 9))


def test_a_quantile_is_that_of_finite_samples_and_ignores_what_is_unknown():
    scores = torch.tensor([[1.0, 5.0], [2.0, math.nan], [3.0, math.nan], [4.0, 1.0], [9.0, 2.0]])
    found = conformal_quantile(scores, 0.6)  # the 4th of 5, and the 3rd of 3
    assert found.tolist() == [4.0, 5.0]
    assert conformal_quantile(scores, 0.9).tolist() == [math.inf, math.inf]
    assert conformal_quantile(torch.arange(1.0, 10.0).view(9, 1), 0.9).item() == 9.0


def test_intervals_hold_the_share_that_they_say():
    y, answers = noise(400, 2), torch.zeros(400, 2)
    found = with_intervals(numbers(torch.zeros(4000, 2)), Calibration(NUMBERS, y, answers), 0.8)
    measured = interval_measures(found, noise(4000, 2, seed=1))
    assert all(abs(share - 0.8) < 0.04 for share in measured["interval_coverage"].values())
    assert all(abs(width - 2 * 1.2816) < 0.3 for width in measured["interval_width"].values())


def test_a_wider_spread_of_an_ensemble_gives_a_wider_interval_of_the_same_coverage():
    sigma = torch.linspace(0.1, 4.0, 500).unsqueeze(1).expand(-1, 2)
    known = Calibration(NUMBERS, sigma * noise(500, 2), torch.zeros(500, 2), sigma)
    found = with_intervals(numbers(torch.zeros(500, 2), sigma), known, 0.9)
    width = found.upper - found.lower
    assert (width.diff(dim=0) > 0).all()
    assert width[-1, 0] > 2 * width[0, 0]
    shares = interval_measures(found, sigma * noise(500, 2, seed=1))["interval_coverage"].values()
    assert all(abs(share - 0.9) < 0.05 for share in shares)


def test_models_that_never_disagree_have_intervals_too():
    still = torch.zeros(50, 2)
    known = Calibration(NUMBERS, noise(50, 2), still, still)
    one = Calibration(NUMBERS, noise(50, 2), still)
    of_both = [with_intervals(numbers(still[:3], still[:3]), each, 0.9).upper for each in (known, one)]
    torch.testing.assert_close(*of_both)


def test_a_target_with_too_few_validation_items_has_no_interval():
    y = noise(20, 2)
    y[5:, 1] = math.nan
    found = with_intervals(numbers(torch.zeros(2, 2)), Calibration(NUMBERS, y, torch.zeros(20, 2)), 0.9)
    assert found.lower[:, 0].isfinite().all()
    assert found.rows()[0]["lower_b"] is None
    with pytest.raises(TrainingError, match="need 99 validation items with a target, but there are 20"):
        with_intervals(numbers(torch.zeros(2, 2)), Calibration(NUMBERS, y, torch.zeros(20, 2)), 0.99)
    for level in (0.0, 1.0):
        with pytest.raises(TrainingError, match="between 0 and 1"):
            with_intervals(numbers(torch.zeros(2, 2)), Calibration(NUMBERS, y, torch.zeros(20, 2)), level)


def test_seeds_are_calibrated_together_and_folds_one_by_one():
    items, y = torch.arange(4), noise(4, 2)
    seeds = [reference(items, y, noise(4, 2, seed=seed)) for seed in (1, 2, 3)]
    together = calibration_of(NUMBERS, seeds)
    torch.testing.assert_close(together.answers, torch.stack([each.answers for each in seeds]).mean(0))
    torch.testing.assert_close(together.spread, torch.stack([each.answers for each in seeds]).std(0))
    folds = calibration_of(NUMBERS, [seeds[0], reference(items + 4, y, y)])
    assert folds.spread is None
    assert torch.equal(folds.answers, torch.cat([seeds[0].answers, y]))
    with pytest.raises(TrainingError, match="no answers on its validation part"):
        calibration_of(NUMBERS, [seeds[0], None])


def test_models_of_nodes_are_not_told_to_train_again():
    with pytest.raises(TrainingError, match="this one predicts nodes"):
        calibration_of(Classification("node", ("t",), (("no", "yes"),)), [None])


def test_knots_are_those_of_scikit_learn():
    scores, hits = torch.rand(200, generator=generator(0)), torch.rand(200, generator=generator(1)) < 0.5
    least = 1 / 202
    fitted = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(scores, hits)
    grid = torch.linspace(-0.5, 1.5, 300)
    np.testing.assert_allclose(isotonic(scores, hits)(grid), fitted.predict(grid), atol=1e-6)


def classes(yes: torch.Tensor) -> Predictions:
    table = torch.stack([1 - yes, yes], 1)
    return Predictions(CLASSES, table.argmax(1, keepdim=True), (table,), ("",) * len(yes))


def test_overconfident_probabilities_are_calibrated():
    truth = torch.rand(4000, generator=generator(0))
    hits = (torch.rand(4000, generator=generator(1)) < truth).float().unsqueeze(1)
    told = torch.sigmoid(4 * torch.logit(truth.clamp(0.001, 0.999)))  # too sure
    found = classes(told[2000:])
    answers = torch.stack([1 - told, told], 1)[:2000]
    better = with_calibrated(found, Calibration(CLASSES, hits[:2000], answers))
    before, after = (calibration_errors(each, hits[2000:])["t"] for each in (found, better))
    assert before > 0.15
    assert after < 0.04
    torch.testing.assert_close(better.probabilities[0].sum(1), torch.ones(2000))
    order = better.probabilities[0][told[2000:].argsort(), 1]
    assert (order.diff() >= -1e-6).all()  # no two molecules change places


def test_one_class_and_unknown_items_leave_probabilities_as_they_are():
    found = classes(torch.tensor([0.2, 0.7]))
    y = torch.tensor([[1.0], [1.0], [math.nan], [math.nan]])
    held = Calibration(CLASSES, y, torch.tensor([[0.5, 0.5], [0.1, 0.9], [0.4, 0.6], [math.nan, math.nan]]))
    assert torch.equal(with_calibrated(found, held).probabilities[0], found.probabilities[0])


def test_several_classes_are_calibrated_one_against_the_rest():
    task = Classification("graph", ("t",), (("a", "b", "c"),))
    answers = torch.softmax(noise(300, 3), 1)
    y = torch.multinomial(answers.sqrt(), 1, generator=generator(3)).float()
    found = Predictions(task, answers.argmax(1, keepdim=True), (answers,), ("",) * 300)
    table = with_calibrated(found, Calibration(task, y, answers)).probabilities[0]
    torch.testing.assert_close(table.sum(1), torch.ones(300))
    torch.testing.assert_close(table.mean(0)[0], (y == 0).float().mean(), atol=0.05, rtol=0)


def graphs(task: str) -> PackedGraphs:
    found = [molecule(3 + i % 7, 10 * i) for i in range(60)]
    for i, data in enumerate(found):
        share = (data.x == 0).float().mean()
        data.y = (share + 0.1 * (i % 3) if task == "regression" else (share > 0.1).float()).view(1, 1)
    about = {"classes": (("no", "yes"),)} if task == "classification" else {}
    return pack(found, "atoms", targets=("t",), task=task, **about)


def trained(task: str, folder, seed: int = 0):
    run(job_of(JobSpec("atoms", settings=SMALL, seed=seed, split="random", fraction=0.5), graphs(task)), folder)
    return lanczosnet.load_model(folder)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    for seed in (0, 1):
        trained("regression", folder / f"seed-{seed}", seed)
    return folder


def test_a_model_directory_keeps_what_predictions_are_compared_with(seeds):
    model, data = lanczosnet.load_model(seeds / "seed-0"), graphs("regression")
    held = model.reference
    assert len(held.items) == model.config.split.val
    assert torch.equal(held.y, data.y[held.items].view(-1, 1))
    answers = model.predict([data[int(i)] for i in held.items]).values
    torch.testing.assert_close(held.answers, answers)
    found = model.predict([data[0]], interval=0.6)
    half = conformal_quantile((held.y - held.answers).abs(), 0.6)
    torch.testing.assert_close(found.upper - found.values, half.view(1, 1))
    assert set(found.rows()[0]) == {"t", "lower_t", "upper_t", "error"}


def test_an_ensemble_scales_its_intervals_by_its_spread(seeds):
    data = graphs("regression")
    found = load_models(seeds).predict([data[i] for i in range(20)], interval=0.6)
    width = (found.upper - found.lower).squeeze(1)
    order = found.uncertainty.squeeze(1).argsort()
    assert (width[order].diff() >= -1e-6).all()
    assert width.max() > width.min()
    measured = evaluate(load_models(seeds), data, interval=0.6)
    assert 0 <= measured["interval_coverage"]["t"] <= 1
    assert measured["interval_width"]["t"] > 0


def test_classes_are_calibrated_on_request_and_measured(tmp_path):
    model, data = trained("classification", tmp_path / "model"), graphs("classification")
    plain, better = (model.predict(data, calibrated=on).probabilities[0] for on in (False, True))
    assert not torch.equal(plain, better)
    measured = evaluate(model, data, interval=0.9)
    assert set(measured) >= {"calibration_error", "calibrated_error"}
    with pytest.raises(TrainingError, match="intervals are for numbers"):
        model.predict(data, interval=0.9)


def test_models_without_the_file_predict_and_say_what_they_cannot(seeds, tmp_path):
    folder, data = tmp_path / "model", graphs("regression")
    shutil.copytree(seeds / "seed-0", folder)
    (folder / REFERENCE).unlink()
    model = lanczosnet.load_model(folder)
    assert model.predict(data).values.isfinite().all()
    assert "interval_width" not in evaluate(model, data, interval=0.9)
    with pytest.raises(TrainingError, match="train it again"):
        model.predict(data, interval=0.9)


def test_the_file_of_another_model_is_not_used_and_a_torn_one_is_an_error(seeds, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(seeds / "seed-0", folder)
    shutil.copyfile(seeds / "seed-1" / REFERENCE, folder / REFERENCE)
    assert lanczosnet.load_model(folder).reference is None
    content = bytearray((seeds / "seed-0" / REFERENCE).read_bytes())
    (folder / REFERENCE).write_bytes(content[:-8])
    with pytest.raises(TrainingError, match=r"reference\.safetensors.*torn.*delete this file"):
        lanczosnet.load_model(folder)
    content[-1] ^= 1
    (folder / REFERENCE).write_bytes(content)
    with pytest.raises(TrainingError, match="does not fit its checksum"):
        lanczosnet.load_model(folder)
