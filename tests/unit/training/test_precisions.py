"""Every precision serves every network and task, and is recorded."""

import json
import math
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins.precision import MixedPrecision

from lanczosnet.graphs import load
from lanczosnet.models import MODELS
from lanczosnet.training import JobSpec, TrainingError, prepare, run
from lanczosnet.training.engine import PRECISIONS
from lanczosnet.training.engine.devices import fabric_for, numerics_of
from lanczosnet.training.engine.precision import loss_scaler, restart_scaler
from lanczosnet.training.evaluation import evaluate
from lanczosnet.training.job import job_of, run_jobs
from lanczosnet.training.serialization import load_model
from training_builders import packed_molecules

SETTINGS = {"hidden_channels": 4, "num_layers": 1, "epochs": 2}


def job(kind="nodes", name="gcn", seed=0, **settings):
    data = packed_molecules(20) if kind == "graphs" else load("karate")
    split = None if kind == "graphs" else "1-per-class"
    return job_of(JobSpec(kind, name, settings=SETTINGS | settings, split=split, seed=seed), data)


ON_A_CPU = ("bf16-mixed", "64-true")  # the others are one of these there, or 32-true
ON_A_GPU = PRECISIONS if torch.cuda.is_available() else ()
PLACES = [("cpu", precision) for precision in ON_A_CPU] + [("cuda", precision) for precision in ON_A_GPU]


@pytest.mark.parametrize(("device", "precision"), PLACES)
@pytest.mark.parametrize("kind", ["nodes", "graphs"])
@pytest.mark.parametrize("name", MODELS)
def test_every_network_learns_in_every_precision(name, kind, device, precision):
    asked = job(kind, name)
    (outcome,) = run_jobs([asked], fabric_for(device, precision))
    result = outcome.result()
    assert result.epochs == 2
    assert math.isfinite(result.metrics["val"][asked.task.metric])


def scaled() -> Fabric:
    """What 16-mixed is on a GPU, here."""
    return Fabric(accelerator="cpu", devices=1, plugins=[MixedPrecision("16-mixed", "cpu")])


def test_16_mixed_is_bfloat16_on_a_cpu():
    assert numerics_of(fabric_for("cpu", "16-mixed")) == {"precision": "bf16-mixed", "deterministic": True}


def recorded(folder):
    training = json.loads((folder / "config.json").read_text())["training"]
    return training["precision"], training["deterministic"]


@pytest.mark.parametrize(
    ("fabric", "expected"),
    [
        (None, ("32-true", True)),
        (fabric_for("cpu", "32-exact", deterministic=False), ("32-exact", False)),
        (fabric_for("cpu", "64-true"), ("64-true", True)),
    ],
)
def test_precision_and_determinism_are_recorded(fabric, expected, tmp_path):
    run(job(), tmp_path, fabric=fabric)
    assert recorded(tmp_path) == expected


@pytest.mark.parametrize("kind", ["nodes", "graphs"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_64_bits_predicts_in_64_bits(name, kind, tmp_path):
    asked = job(kind, name)
    trained = run(asked, tmp_path, fabric=fabric_for("cpu", "64-true"))
    model = load_model(tmp_path)
    assert {weight.dtype for weight in model.network.parameters()} == {torch.float64}
    predicted = model.predict(asked.data)
    assert (predicted.probabilities[0] if predicted.probabilities else predicted.values).dtype == torch.float64
    metric = asked.task.metric
    parts = asked.split
    assert evaluate(model, asked.data, parts.test)[metric] == pytest.approx(trained.metrics["test"][metric], rel=1e-12)


@pytest.mark.parametrize("kind", ["nodes", "graphs"])
def test_predictions_of_64_bits_have_more_than_24(kind, tmp_path):
    asked = job(kind, "lanczosnet")
    run(asked, tmp_path, fabric=fabric_for("cpu", "64-true"))
    model = load_model(tmp_path)
    single = replace(model, network=deepcopy(model.network).float())
    exact, rounded = (
        (found.probabilities or (found.values,))[0].double()
        for found in (model.predict(asked.data), single.predict(asked.data))
    )
    torch.testing.assert_close(exact, rounded, rtol=1e-4, atol=1e-5)
    assert not torch.equal(exact, exact.float().double())
    assert (exact - rounded).abs().max() > 0


def test_types_as_one_hot_have_64_bits(tmp_path):
    asked = job("graphs", "lanczosnet", node_input="one-hot")
    run(asked, tmp_path, fabric=fabric_for("cpu", "64-true"))
    assert load_model(tmp_path).predict(asked.data).values.isfinite().all()
    assert torch.get_default_dtype() == torch.float32


def test_fingerprints_of_64_bits_have_more_than_24(tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "mols.csv").write_text("smiles,y\n" + "\n".join(f"{'C' * i}O,{i}" for i in range(1, 21)) + "\n")
    spec = JobSpec(str(tmp_path / "mols.csv"), settings=SETTINGS | {"head_channels": 4})
    run(prepare(spec, tmp_path), tmp_path / "model", fabric=fabric_for("cpu", "64-true"))
    fingerprints, errors = load_model(tmp_path / "model").encode(["CCO", "CCCO"])
    assert not any(errors)
    assert not torch.equal(fingerprints, fingerprints.float().double())


def stop_in_epoch(number):
    def on_epoch(report):
        if report.epoch == number:
            raise KeyboardInterrupt

    return on_epoch


def test_a_run_does_not_go_on_in_another_precision(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(job(), tmp_path, checkpoint_seconds=0.0, on_epoch=stop_in_epoch(2))
    with pytest.raises(TrainingError, match="precision differ"):
        run(job(), tmp_path, fabric=fabric_for("cpu", "64-true"), resume=True)
    run(job(), tmp_path, resume=True)
    with pytest.raises(TrainingError, match="another run"):
        run(job(), tmp_path, fabric=fabric_for("cpu", "64-true"), resume=True)


def test_the_loss_scale_is_kept_with_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.amp.GradScaler.get_growth_interval", lambda self: 2)
    monkeypatch.setattr(torch.amp.GradScaler, "__init__", growing(torch.amp.GradScaler.__init__))
    settings = {"epochs": 6, "dropout": 0.5}
    whole = run(job("graphs", **settings), tmp_path / "whole", fabric=scaled())
    with pytest.raises(KeyboardInterrupt):
        run(
            job("graphs", **settings),
            tmp_path / "killed",
            fabric=scaled(),
            checkpoint_seconds=0.0,
            on_epoch=stop_in_epoch(4),
        )
    states = []
    original = torch.amp.GradScaler.load_state_dict
    monkeypatch.setattr(
        torch.amp.GradScaler, "load_state_dict", lambda self, state: (states.append(state), original(self, state))
    )
    assert run(job("graphs", **settings), tmp_path / "killed", fabric=scaled(), resume=True).metrics == whole.metrics
    assert states[0]["scale"] > 65536.0
    for name in ("model.safetensors", "metrics.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def growing(original):
    return lambda self, device="cuda", **how: original(self, device, growth_interval=2)


def test_runs_beside_one_another_have_their_own_scales():
    fabric = scaled()
    first, second = loss_scaler(fabric), loss_scaler(fabric)
    assert first is not second
    first.load_state_dict(first.state_dict() | {"scale": 8.0})
    restart_scaler(first)
    assert first.get_scale() == second.get_scale() == 65536.0
    assert loss_scaler(fabric_for("cpu")) is None
