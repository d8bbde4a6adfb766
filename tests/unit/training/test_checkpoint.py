"""A run that was interrupted ends as one that was not."""

import json
import struct
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from lanczosnet.files import atomic_write
from lanczosnet.graphs import cache
from lanczosnet.training import JobSpec, TrainingError, checkpoint, prepare, run
from lanczosnet.training import serialization as saved
from lanczosnet.training.checkpoint import CheckpointFile
from lanczosnet.training.engine.devices import fabric_for
from lanczosnet.training.engine.loaders import loader_for
from lanczosnet.training.errors import DivergenceError
from lanczosnet.training.job import CHECKPOINT
from lanczosnet.training.trainer import Trainer
from training_builders import packed_molecules

FILES = ("config.json", "metrics.jsonl", "model.safetensors")
SMALL = {"hidden_channels": 8, "num_layers": 1, "num_steps": 5, "epochs": 6, "dropout": 0.3, "batch_size": 8}


class Interrupt(Exception):  # noqa: N818 - it stands for a killed process
    pass


def interrupted(job, folder, epoch, **options):
    def stop(report):
        if report.epoch == epoch:
            raise Interrupt

    with pytest.raises(Interrupt):
        run(job, folder, on_epoch=stop, checkpoint_seconds=0.0, **options)


@pytest.fixture(scope="module", params=["graphs", "nodes"])
def job(request, tmp_path_factory):
    if request.param == "nodes":
        return prepare(JobSpec("karate", settings=SMALL, split="1-per-class"))
    path = tmp_path_factory.mktemp("data") / "graphs.pt"
    torch.save(packed_molecules(20)[:], path)
    return prepare(JobSpec(str(path), settings=SMALL))


def test_an_interrupted_run_ends_bit_identical(job, tmp_path):
    run(job, tmp_path / "whole")
    interrupted(job, tmp_path / "parts", 3)
    interrupted(job, tmp_path / "parts", 3, resume=True)  # the checkpoint is of epoch 2
    interrupted(job, tmp_path / "parts", 5, resume=True)
    reports = []
    run(job, tmp_path / "parts", resume=True, on_epoch=reports.append)
    assert [report.epoch for report in reports] == [5, 6]
    for name in FILES:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name
    assert not (tmp_path / "parts" / CHECKPOINT).exists()


@pytest.mark.parametrize("epoch", [3, 4])
def test_a_run_that_is_interrupted_where_it_begins_anew_does_so(tmp_path, epoch):
    job = prepare(
        JobSpec(
            "karate", settings={**SMALL, "restart_epochs": 3, "averaging": 0.9, "stop_window": 0}, split="1-per-class"
        )
    )
    run(job, tmp_path / "whole")
    interrupted(job, tmp_path / "parts", epoch)  # the checkpoint is of the epoch before
    run(job, tmp_path / "parts", resume=True)
    for name in FILES:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name


def test_an_interrupted_run_is_not_begun_anew_by_mistake(job, tmp_path):
    interrupted(job, tmp_path, 3)
    before = (tmp_path / CHECKPOINT).read_bytes()
    with pytest.raises(TrainingError, match="holds an interrupted run: pass resume=True"):
        run(job, tmp_path)
    assert (tmp_path / CHECKPOINT).read_bytes() == before
    run(job, tmp_path, resume=True)


def test_without_a_checkpoint_resume_starts_and_a_finished_run_stays(job, tmp_path):
    first = run(job, tmp_path, resume=True)
    before = (tmp_path / "model.safetensors").stat().st_mtime_ns
    assert run(job, tmp_path, resume=True) == first
    assert (tmp_path / "model.safetensors").stat().st_mtime_ns == before


def test_a_run_that_cannot_start_leaves_nothing(tmp_path):
    job = prepare(JobSpec("karate", settings={**SMALL, "restart_epochs": 3, "patience": 2}, split="1-per-class"))
    with pytest.raises(TrainingError, match="restart_epochs needs all epochs"):
        run(job, tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def test_the_checkpoint_of_another_run_is_refused(tmp_path):
    spec = JobSpec("karate", settings=SMALL, split="1-per-class")
    interrupted(prepare(spec), tmp_path, 3)
    with pytest.raises(TrainingError, match="another run: seed differ"):
        run(prepare(JobSpec("karate", settings=SMALL, split="1-per-class", seed=1)), tmp_path, resume=True)


def test_a_version_that_lacked_a_setting_had_it_switched_off(tmp_path):
    job = prepare(JobSpec("karate", settings=SMALL, split="1-per-class"))
    own = json.loads(json.dumps(job.identity()))
    older = own | {"recipe": {key: value for key, value in own["recipe"].items() if key != "restart_epochs"}}
    assert not checkpoint.differences(older, own)
    assert checkpoint.differences(older, own | {"recipe": own["recipe"] | {"restart_epochs": 2}}) == ["recipe"]
    done = run(job, tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    del config["training"]["settings"]["restart_epochs"], config["checksum"]
    path.write_text(json.dumps(config))
    assert run(job, tmp_path, resume=True) == done


def test_a_torn_checkpoint_is_an_error_that_says_so(tmp_path):
    job = prepare(JobSpec("karate", settings=SMALL, split="1-per-class"))
    interrupted(job, tmp_path, 3)
    path = tmp_path / CHECKPOINT
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(TrainingError, match="delete it and start again"):
        run(job, tmp_path, resume=True)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that was interrupted, and the content of its checkpoint."""
    folder = tmp_path_factory.mktemp("stopped")
    job = prepare(JobSpec("karate", settings=SMALL | {"averaging": 0.9}, split="1-per-class"))
    interrupted(job, folder, 3)
    return job.saved_in(folder, 0.0), (folder / CHECKPOINT).read_bytes()


def restored(job, content):
    job.outputs.checkpoint.path.write_bytes(content)
    trial = job.trial()
    trainer = Trainer(
        trial.model, loader_for(trial.model, job.data, torch.device("cpu"), 1), job.split, job.task, job.recipe, 0,
        fabric_for("cpu"),
    )  # fmt: skip
    job.outputs.checkpoint.restore(trainer.state)
    return trainer.state


def test_no_flipped_bit_resumes(stopped):
    job, content = stopped
    assert restored(job, content).history.epoch == 2
    for place in np.random.default_rng(0).integers(0, len(content), 40):
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(place) % 8
        with pytest.raises(TrainingError, match=CHECKPOINT):
            restored(job, bytes(flipped))


def rewritten(content, change_tensors=lambda tensors: None, change_record=lambda record: None):
    """The file with other content under a checksum that fits."""
    tensors = load(content)
    (length,) = struct.unpack("<Q", content[:8])
    record = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["run"])
    change_tensors(tensors)
    change_record(record)
    text = json.dumps(record)
    return save(tensors, {"run": text, "checksum": checkpoint._checksum(tensors, text)})


WRONG_TENSORS = {
    "a whole number": lambda t: t.update({k: v.long() for k, v in t.items() if k.endswith("bias")}),
    "NaN": lambda t: next(v for k, v in t.items() if k.startswith("best/")).fill_(float("nan")),
    "another shape": lambda t: t.update({k: v[None] for k, v in t.items() if k.startswith("average/")}),
    "another shape of a moment": lambda t: t.update({"optimizer/0/exp_avg": torch.zeros(7)}),
    "NaN in a moment": lambda t: t["optimizer/0/exp_avg"].view(-1)[:1].fill_(float("nan")),
    "a negative mean of squares": lambda t: t["optimizer/0/exp_avg_sq"].view(-1)[:1].fill_(-1.0),
    "a moment less": lambda t: t.pop("optimizer/0/step"),
    "a moment of no parameter": lambda t: t.update({"optimizer/999/step": torch.zeros(())}),
    "no such group": lambda t: t.pop("optimizer/0/step") and [t.pop(k) for k in list(t) if k.startswith("model/")],
}


@pytest.mark.parametrize("name", WRONG_TENSORS)
def test_tensors_that_do_not_fit_are_refused(stopped, name):
    job, content = stopped
    with pytest.raises(TrainingError, match=CHECKPOINT):
        restored(job, rewritten(content, WRONG_TENSORS[name]))


@pytest.mark.parametrize("steps", [-1.0, 0.5, 1e30, float("nan"), float("inf")])
def test_steps_of_the_optimizer_are_whole_and_no_more_than_those_of_the_run(stopped, steps):
    job, content = stopped
    message = rf"{CHECKPOINT}: optimizer/0/step is {steps:g}, but should be .* from 0 to 2. Delete it and start again"
    with pytest.raises(TrainingError, match=message.replace("+", r"\+")):
        restored(job, rewritten(content, lambda tensors: tensors["optimizer/0/step"].fill_(steps)))


WRONG_RECORDS = {
    "a newer format": (lambda r: r.update(format=99), "format 99, this program reads up to 2: update lanczosnet"),
    "a loss less": (lambda r: r["progress"]["val_losses"].pop(), r"one value per epoch \(2\), but has 1"),
    "a text for a number": (lambda r: r.update(step="5"), "step: expected a whole number"),
    "a field too many": (lambda r: r.update(colour=1), "unknown field 'colour'"),
    "a recipe of numbers": (lambda r: r["identity"].update(recipe=5), "identity.recipe: expected an object"),
    "another step": (lambda r: r.update(step=r["step"] + 1), "do not fit 2 epochs"),
    "no steps": (lambda r: r.update(step=0), "do not fit 2 epochs"),
    "no average": (lambda r: r.update(averaged=0), "averaged is 0, which does not fit the recipe"),
    "another best loss": (lambda r: r["progress"].update(best_rank=[0.5, 0.5]), "best_rank does not hold"),
    "a best epoch to come": (lambda r: r["progress"].update(best_epoch=9), "best_epoch is 9"),
}


@pytest.mark.parametrize("name", WRONG_RECORDS)
def test_a_record_that_does_not_fit_is_refused_by_its_field(stopped, name):
    change, message = WRONG_RECORDS[name]
    job, content = stopped
    with pytest.raises(TrainingError, match=message):
        restored(job, rewritten(content, change_record=change))


def test_a_run_that_diverged_fails_again_when_it_is_resumed(tmp_path, monkeypatch):
    job = prepare(JobSpec("karate", settings=SMALL | {"averaging": 0.0}, split="1-per-class"))
    conclude = Trainer.conclude_epoch

    def concluded(self, values):
        return conclude(self, [float("nan")] * len(values) if self.state.history.epoch == 2 else values)

    monkeypatch.setattr(Trainer, "conclude_epoch", concluded)
    for resume in (False, True, True):
        with pytest.raises(DivergenceError, match="epoch 3"):
            run(job, tmp_path, resume=resume)


def test_a_killed_write_leaves_the_last_good_checkpoint(tmp_path, monkeypatch):
    job = prepare(JobSpec("karate", settings=SMALL, split="1-per-class"))
    interrupted(job, tmp_path, 3)
    before = (tmp_path / CHECKPOINT).read_bytes()

    def torn(path, content):
        path.write_text("half")
        raise Interrupt

    monkeypatch.setattr(Path, "write_bytes", torn)
    with pytest.raises(Interrupt):
        run(job, tmp_path, resume=True, checkpoint_seconds=0.0)
    assert (tmp_path / CHECKPOINT).read_bytes() == before


def test_a_run_killed_between_its_model_and_its_end_leaves_no_checkpoint(tmp_path):
    job = prepare(JobSpec("karate", settings=SMALL, split="1-per-class"))
    interrupted(job, tmp_path, 3)
    before = (tmp_path / CHECKPOINT).read_bytes()
    fitted = run(job, tmp_path, resume=True)
    (tmp_path / CHECKPOINT).write_bytes(before)
    assert run(job, tmp_path, resume=True) == fitted
    assert not (tmp_path / CHECKPOINT).exists()


def test_files_are_written_under_the_temporary_names_alone(tmp_path, monkeypatch):
    """safetensors' own writer goes through a file of another name, which a kill would leave behind."""
    seen = []

    @contextmanager
    def watched(target, **how):
        with atomic_write(target, **how) as temporary:
            number = temporary.stat().st_ino
            yield temporary
            seen.append((target.name, temporary.stat().st_ino == number))

    for module in (checkpoint, saved, cache):
        monkeypatch.setattr(module, "atomic_write", watched)
    job = prepare(JobSpec("karate", settings=SMALL, split="1-per-class"))
    run(job, tmp_path, checkpoint_seconds=0.0)
    cache.write_cache(tmp_path / "cache", {"x": np.zeros(3)}, {})
    assert set(seen) == {(name, True) for name in (CHECKPOINT, "model.safetensors", "config.json", "cache")}


def test_writing_takes_at_most_a_tenth_of_the_time(tmp_path, monkeypatch):
    clock, written = iter([0.0, 5.0, 8.0, 30.0, 62.0]), []
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: next(clock))
    file = CheckpointFile(tmp_path / "c", {}, seconds=1.0)

    def write(run):
        written.append(run)
        file._last, file._took = 8.0, 3.0

    file.write = write
    for number in range(5):
        file.keep(number)
    assert written == [0, 4]
