"""What a folder holds before and while a run writes to it."""

import json
import shutil

import pytest

from lanczosnet.training import JobSpec, TrainingError, prepare, run
from lanczosnet.training import serialization as saved
from lanczosnet.training.metrics_file import MetricsFile
from lanczosnet.training.model_folder import CHECKPOINT, METRICS, NEW_METRICS
from lanczosnet.training.serialization import CONFIG, PREVIOUS, WEIGHTS, load_model
from lanczosnet.training.state import EpochReport

SETTINGS = {"hidden_channels": 4, "num_layers": 1, "num_steps": 3, "epochs": 4, "averaging": 0.0}
FILES = {CONFIG, WEIGHTS, METRICS}


class Killed(BaseException):
    """Nothing in the program may catch it."""


def job(seed=0, **settings):
    return prepare(JobSpec("karate", settings=SETTINGS | settings, split="1-per-class", seed=seed))


def killed_in_epoch(number):
    def on_epoch(report):
        if report.epoch == number:
            raise Killed

    return on_epoch


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def old(tmp_path):
    run(job(), tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize("epoch", [1, 3])
def test_overwriting_keeps_the_model_until_the_new_one_is_complete(old, tmp_path, epoch):
    before = contents(old)
    with pytest.raises(Killed):
        run(job(seed=1), old, overwrite=True, checkpoint_seconds=0.0, on_epoch=killed_in_epoch(epoch))
    assert {name: (old / name).read_bytes() for name in FILES} == before
    assert load_model(old).config.training.seed == 0
    run(job(seed=1), old, resume=True)
    run(job(seed=1), tmp_path / "whole")
    assert contents(old) == contents(tmp_path / "whole")


def test_overwriting_with_the_same_settings_trains_again(old):
    with pytest.raises(Killed):
        run(job(), old, overwrite=True, on_epoch=killed_in_epoch(2))
    epochs = []
    run(job(), old, resume=True, on_epoch=epochs.append)
    assert len(epochs) == 3  # after the first, which has a checkpoint
    assert {path.name for path in old.iterdir()} == FILES


def test_a_model_can_be_used_between_its_two_files(old, tmp_path, monkeypatch):
    original = saved.atomic_write

    def killing(target, **how):
        if target.name == CONFIG:
            raise Killed
        return original(target, **how)

    with monkeypatch.context() as patch:
        patch.setattr(saved, "atomic_write", killing)
        with pytest.raises(Killed):
            run(job(seed=1), old, overwrite=True)
    assert (old / PREVIOUS).exists()
    assert load_model(old).config.training.seed == 0
    run(job(seed=1), old, resume=True)
    assert {path.name for path in old.iterdir()} == FILES
    assert load_model(old).config.training.seed == 1


def test_without_resume_and_overwrite_what_is_there_stays(old):
    before = contents(old)
    with pytest.raises(TrainingError, match="already holds a model"):
        run(job(seed=1), old)
    with pytest.raises(TrainingError, match="another run"):
        run(job(seed=1), old, resume=True)
    assert contents(old) == before


def test_rests_of_the_last_steps_are_removed(old):
    for name in (CHECKPOINT, PREVIOUS):
        (old / name).touch()
    run(job(), old, resume=True)
    assert {path.name for path in old.iterdir()} == FILES


def report(epoch):
    return EpochReport(epoch, 1.0, 1.0, {"accuracy": 0.5}, 0.1, is_best=False)


def epochs_in(path):
    return [json.loads(line)["epoch"] for line in path.read_text().splitlines()]


def test_metrics_are_not_written_through_a_link(tmp_path):
    (tmp_path / "other").write_text("theirs\n")
    (tmp_path / METRICS).symlink_to("other")
    with MetricsFile(tmp_path / METRICS) as file:
        file.write(report(1))
    assert (tmp_path / "other").read_text() == "theirs\n"
    assert epochs_in(tmp_path / METRICS) == [1]


def test_metrics_are_not_changed_in_place(tmp_path):
    path = tmp_path / METRICS
    with MetricsFile(path) as file:
        for epoch in (1, 2, 3):
            file.write(report(epoch))
    with path.open() as reader, MetricsFile(path) as file:
        file.write(report(2))
        assert len(reader.readlines()) == 3
    assert epochs_in(path) == [1, 2]


def test_metrics_that_are_deleted_meanwhile_are_written_again(tmp_path):
    path = tmp_path / "out" / METRICS
    with MetricsFile(path) as file:
        file.write(report(1))
        shutil.rmtree(path.parent)
        file.write(report(2))
        assert epochs_in(path) == [1, 2]
        path.unlink()
    assert epochs_in(path) == [1, 2]


def test_the_new_metrics_are_apart_while_a_model_is_replaced(old):
    with pytest.raises(Killed):
        run(job(seed=1), old, overwrite=True, on_epoch=killed_in_epoch(2))
    assert epochs_in(old / NEW_METRICS) == [1, 2]
    assert len(epochs_in(old / METRICS)) == 4
