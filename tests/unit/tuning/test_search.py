"""A search: equal budgets, chosen on validation items alone, and the same whether it was killed or not."""

import csv
from copy import copy
from dataclasses import replace

import pytest
import torch

from lanczosnet.graphs import load
from lanczosnet.schemas.run_config import read_run_config
from lanczosnet.training import JobSpec, TrainingError
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.job import MetricsFile, job_of
from lanczosnet.training.trainer import Trainer
from lanczosnet.tuning import Search, search, space_for
from lanczosnet.tuning.networks import tune_networks

SETTINGS = {"epochs": 4, "hidden_channels": 8, "num_layers": 1}
OPTIONS = {"source": "karate", "split": "20/40/40"}
TIMES = ("seconds",)


class Killed(BaseException):
    """Nothing in the program may catch it."""


@pytest.fixture(scope="module")
def karate():
    return load("karate")


def searches(names=("gcn",), trials=3, splits=1, settings=SETTINGS, **how):
    found = []
    for name in names:
        space = space_for(name, "node", settings)
        spec = JobSpec("karate", model=space.model, settings=dict(space.fixed), split="20/40/40")
        found.append(Search(space, [replace(spec, split_seed=i) for i in range(splits)], trials, **how))
    return found


def tuned(wanted, karate, folder, **how):
    return tune_networks(wanted, karate, folder, OPTIONS, fabric_for("cpu"), **how)


def table(folder):
    with (folder / "trials.csv").open() as stream:
        return [{key: value for key, value in row.items() if key not in TIMES} for row in csv.DictReader(stream)]


def killing(monkeypatch, after):
    original, left = MetricsFile.write, after

    def write(self, report):
        nonlocal left
        original(self, report)
        left -= 1
        if left == 0:
            raise Killed

    monkeypatch.setattr(MetricsFile, "write", write)


def test_every_network_has_its_trials_and_leaves_its_best(karate, tmp_path):
    found = tuned(searches(("gcn", "lanczosnet"), splits=2), karate, tmp_path)
    rows = table(tmp_path)
    assert [row["network"] for row in rows] == ["gcn"] * 3 + ["lanczosnet"] * 3
    assert rows[0]["learning_rate"] == ""  # the first trial has the defaults
    for one in found:
        values = [float(row["value"]) for row in rows if row["network"] == one.network and row["state"] == "complete"]
        assert one.value == max(values)
        config = read_run_config(one.config)
        assert config.model == one.network
        assert config.table("settings") == one.settings
        assert config.options()["split"] == "20/40/40"
    best = max(found, key=lambda one: one.value)
    assert (tmp_path / "best.toml").read_text() == best.config.read_text()


@pytest.mark.parametrize("after", [2, 9])
def test_a_search_that_was_killed_finds_the_same(karate, tmp_path, monkeypatch, after):
    tuned(searches(), karate, tmp_path / "whole")
    with monkeypatch.context() as patch:
        killing(patch, after)
        with pytest.raises(Killed):
            tuned(searches(), karate, tmp_path / "killed")
    tuned(searches(), karate, tmp_path / "killed")
    assert table(tmp_path / "killed") == table(tmp_path / "whole")


def test_a_metric_that_the_validation_items_do_not_define_ends_a_search_with_the_reason(karate, tmp_path):
    one_class = copy(karate)
    one_class.y = torch.zeros_like(karate.y)
    one_class.y[job_of(searches()[0].specs[0], karate).split.train[0]] = 1
    wanted = searches(trials=1, settings=SETTINGS | {"choose_by": "loss"})
    one_class.metric = "roc_auc"
    with pytest.raises(TrainingError, match=r"no trial of gcn ran to its end: roc_auc is not defined"):
        tuned(wanted, one_class, tmp_path)
    assert [(row["state"], "choose_by" in row["fault"]) for row in table(tmp_path)] == [("fail", True)]


def test_more_trials_prolong_a_search_and_finished_ones_are_not_repeated(karate, tmp_path, monkeypatch):
    tuned(searches(trials=2), karate, tmp_path)
    tuned(searches(trials=3), karate, tmp_path)
    monkeypatch.setattr(Trainer, "queue_epoch", None)
    tuned(searches(trials=3), karate, tmp_path)
    assert len(table(tmp_path)) == 3


def test_another_search_does_not_go_on_in_the_same_folder(karate, tmp_path):
    tuned(searches(trials=1), karate, tmp_path)
    with pytest.raises(TrainingError, match="another search"):
        tuned(searches(trials=1, settings=SETTINGS | {"epochs": 5}), karate, tmp_path)
    tuned(searches(trials=1, settings=SETTINGS | {"epochs": 5}), karate, tmp_path, overwrite=True)


def test_no_metric_of_test_items_is_looked_at(karate, tmp_path, monkeypatch):
    first = tuned(searches(), karate, tmp_path / "a")
    finish = Trainer.finish

    def without_test(self, reason):
        result = finish(self, reason)
        return replace(result, metrics={"val": result.metrics["val"]}, by_target={}, metrics_by_target={})

    monkeypatch.setattr(Trainer, "finish", without_test)
    second = tuned(searches(), karate, tmp_path / "b")
    assert [one.settings for one in first] == [one.settings for one in second]


def test_a_trial_that_cannot_be_trained_counts_and_says_why(karate, tmp_path):
    space = space_for("gcn", "node", SETTINGS)
    spec = JobSpec("karate", model="gcn", settings=dict(space.fixed), split="20/40/40")
    dimensions = {"dropout": replace_choices(space.dimensions["dropout"], [7.0])}
    wanted = Search(replace(space, dimensions=dimensions), [spec], trials=3)
    (found,) = tuned([wanted], karate, tmp_path)
    rows = table(tmp_path)
    assert [row["state"] for row in rows] == ["complete", "fail", "fail"]
    assert "dropout" in rows[1]["fault"]
    assert found.settings == wanted.specs[0].settings


def replace_choices(dimension, choices):
    return type(dimension)(choices=choices)


def test_poor_trials_are_ended_early(karate, tmp_path, monkeypatch):
    monkeypatch.setattr(search, "FIRST_UNPRUNED", 1)
    tuned(searches(trials=5), karate, tmp_path / "pruned")
    assert "pruned" in {row["state"] for row in table(tmp_path / "pruned")}
    tuned(searches(trials=5, pruner="none"), karate, tmp_path / "whole")
    assert {row["state"] for row in table(tmp_path / "whole")} == {"complete"}
