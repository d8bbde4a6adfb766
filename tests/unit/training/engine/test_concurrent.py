"""Several runs at once do what each does alone, and on a GPU a replayed step does what a called one does."""

from dataclasses import replace

import pytest
import torch

from lanczosnet.graphs import load
from lanczosnet.models import GCN, MODELS
from lanczosnet.training import DivergenceError, Trial, architecture_for, fit, fit_concurrent, loop, recipe, task_of
from lanczosnet.training.checkpoint import CheckpointFile
from lanczosnet.training.engine.concurrent import in_turn
from lanczosnet.training.engine.devices import determinism_of, fabric_for
from lanczosnet.training.engine.executor import CudaGraphExecutor, EagerExecutor
from lanczosnet.training.engine.loaders import loader_for
from lanczosnet.training.trainer import Trainer
from training_builders import SMALL, communities, halves, packed_molecules
from waiting import Waits

SIZES = {"hidden_channels": 16, "num_layers": 2}


def trials_of(data, seeds, name="lanczosnet", options=SMALL | {"dropout": 0.5}):
    trials = []
    for seed in seeds:
        parts = halves(data, seed)
        task = task_of(data, parts.train)
        trials.append(Trial(architecture_for(data, task, name, options).build(seed), parts, task, seed))
    return trials


def losses_of(report):
    return [report.train_loss, report.val_loss]


@pytest.mark.parametrize("data", [communities(), packed_molecules()], ids=["nodes", "graphs"])
def test_each_run_does_what_it_does_alone(data, device):
    fabric = fabric_for(device.type)
    chosen = recipe("modern", "node", {"epochs": 5, "batch_size": 16})
    together = {seed: [] for seed in (3, 4, 5)}
    outcomes = fit_concurrent(
        trials_of(data, together), data, chosen, fabric=fabric,
        on_epoch=lambda place, report: together[3 + place].append(losses_of(report)),
    )  # fmt: skip
    for seed, outcome in zip(together, outcomes, strict=True):
        (trial,) = trials_of(data, [seed])
        alone = []
        fitted = fit(
            trial.model, data, trial.split, trial.task, chosen, seed=seed, fabric=fabric,
            on_epoch=lambda report, alone=alone: alone.append(losses_of(report)),
        )  # fmt: skip
        assert torch.allclose(torch.tensor(together[seed]), torch.tensor(alone), rtol=1e-4)
        assert outcome.fitted.metrics["test"] == pytest.approx(fitted.metrics["test"], rel=0.05)
        assert outcome.seconds > 0
    assert together[3] != together[4]


class Clock:
    """One second goes by whenever somebody looks."""

    now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def test_what_a_run_took_before_a_kill_counts(tmp_path, monkeypatch):
    data, chosen = communities(), recipe("paper", "node", {"epochs": 4, "stop_window": 0})

    def seconds(folder, until=None):
        monkeypatch.setattr(loop, "perf_counter", Clock())
        (trial,) = trials_of(data, [0])
        kept = replace(trial, checkpoints=CheckpointFile(folder / "c", {}, seconds=0.0))

        def stop(place, report):
            if report.epoch == until:
                raise KeyboardInterrupt

        (outcome,) = fit_concurrent([kept], data, chosen, fabric=fabric_for("cpu"), on_epoch=stop)
        return outcome.seconds

    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    assert seconds(tmp_path / "whole") == 6.0  # one to prepare, four epochs, one to end
    with pytest.raises(KeyboardInterrupt):
        seconds(tmp_path / "parts", until=3)  # two epochs are kept
    assert seconds(tmp_path / "parts") == 7.0  # prepared twice


def test_a_run_that_diverges_leaves_the_others_alone():
    data = communities()
    trials = trials_of(data, [0, 1, 2])
    torch.nn.init.constant_(next(trials[1].model.parameters()), float("nan"))
    ended = []
    outcomes = fit_concurrent(
        trials, data, recipe("paper", "node", {"epochs": 2}), fabric=fabric_for("cpu"),
        on_end=lambda place, outcome: ended.append(place),
    )  # fmt: skip
    assert ended == [0, 1, 2]
    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    assert isinstance(outcomes[1].error, DivergenceError)
    assert outcomes[1].fitted is None


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("data", [communities(), packed_molecules()], ids=["nodes", "graphs"])
def test_no_step_would_wait_for_a_gpu(name, data):
    options = SIZES | ({"exact_up_to": 32, "reorthogonalize": False} if name == "adalanczosnet" else {})
    (trial,) = trials_of(data, [0], name, options)
    fabric = fabric_for("cpu")
    trial.model.blocks_on_cpu = True
    examples = loader_for(trial.model, data, fabric.device)
    examples.same_shape = True  # as on a GPU
    assert examples.is_fixed
    chosen = recipe("paper", trial.task.level)
    trainer = Trainer(trial.model, examples, trial.split, trial.task, chosen, 0, fabric)
    items = trial.split.train[:8]
    trainer.loss(examples.step(items)).backward()
    with Waits() as waits:
        trainer.loss(examples.step(items)).backward()
    assert not waits.found


def test_no_trials_no_outcomes():
    assert fit_concurrent([], communities(), recipe("paper", "node")) == []


def test_runs_queue_their_steps_in_turn():
    order = []

    def epoch(name, num_steps):
        for step in range(num_steps):
            order.append(f"{name}{step}")
            yield
        return name

    assert in_turn([epoch("a", 3), epoch("b", 1), epoch("c", 2)]) == ["a", "b", "c"]
    assert order == ["a0", "b0", "c0", "a1", "c1", "a2"]


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="a capture needs a CUDA device")


def a_few_epochs(data, name, kind, options, deterministic=True, **settings):
    """The losses of a run on the GPU with this executor, and whether it was taken."""
    fabric = fabric_for("cuda", deterministic=deterministic)
    (trial,) = trials_of(data, [0], name, options)
    trial.model.to(fabric.device)
    chosen = recipe("modern", "node", {"epochs": 6, "batch_size": 16, **settings})
    values = []
    with determinism_of(fabric):
        trainer = Trainer(
            trial.model, loader_for(trial.model, data, fabric.device), trial.split, trial.task, chosen, 0, fabric
        )
        trainer.may_capture = trainer.may_capture and kind is CudaGraphExecutor
        for _ in range(6):
            (queued,) = in_turn([trainer.queue_epoch()])
            with trainer.stream:
                values.append(queued.tolist())
            trainer.conclude_epoch(values[-1])
    return torch.tensor(values), isinstance(trainer.executor, kind)


@needs_cuda
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_replayed_step_does_what_a_called_one_does(name, deterministic):
    options = SIZES | {"dropout": 0.5}
    called, _ = a_few_epochs(communities(), name, EagerExecutor, options, deterministic)
    replayed, is_replayed = a_few_epochs(communities(), name, CudaGraphExecutor, options, deterministic)
    assert is_replayed
    assert torch.allclose(called, replayed, rtol=1e-3)


def many_communities():
    """So many that non-deterministic sums would show."""
    data = load("block-model", sizes=(400, 400, 400), seed=1)
    data.x = torch.randn(1200, 40, generator=torch.Generator().manual_seed(0))
    data.x[:, :3] += torch.nn.functional.one_hot(data.y, 3)
    return data


@needs_cuda
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("data", [many_communities, packed_molecules], ids=["nodes", "graphs"])
def test_a_seed_determines_every_bit_on_a_gpu(name, data, recwarn):
    data, fabric = data(), fabric_for("cuda")
    chosen = recipe("modern", "node", {"epochs": 20, "batch_size": 16})
    options = SIZES | {"dropout": 0.5}
    weights = []
    for seeds in ((0, 1), (1, 2), (1,)):
        trials = trials_of(data, seeds, name, options)
        fit_concurrent(trials, data, chosen, fabric=fabric)
        weights.append(trials[seeds.index(1)].model.state_dict())
    for other in weights[1:]:
        assert all(torch.equal(value, other[key]) for key, value in weights[0].items())
    assert not [warning for warning in recwarn if "deterministic" in str(warning.message)]


@needs_cuda
def test_a_model_that_waits_for_the_host_is_called(monkeypatch):
    original = GCN.forward
    monkeypatch.setattr(GCN, "forward", lambda self, data: _with_a_wait(original(self, data)))
    values, is_replayed = a_few_epochs(communities(), "gcn", CudaGraphExecutor, SIZES)
    assert not is_replayed
    assert torch.isfinite(values).all()


def _with_a_wait(output):
    return output if float(output.detach().abs().sum()) >= 0 else -output
