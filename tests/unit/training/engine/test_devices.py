"""Devices and precisions by name."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from lightning.fabric import Fabric

from lanczosnet.models import GCN
from lanczosnet.training import TrainingError, fit, recipe, task_of
from lanczosnet.training.engine import PRECISIONS, concurrent
from lanczosnet.training.engine.devices import (
    determinism_of,
    exact_matmul,
    fabric_for,
    matmul_precision,
    matmul_precision_of,
)
from training_builders import communities, halves


@pytest.mark.parametrize(("name", "products"), [("32-true", "high"), ("32-exact", "highest"), ("64-true", "highest")])
def test_a_precision_says_how_float32_matrices_are_multiplied(name, products):
    fabric = fabric_for("cpu", name)
    with matmul_precision_of(fabric):
        assert torch.get_float32_matmul_precision() == products
    assert fabric._precision.precision == name.replace("exact", "true")


class Recorder:
    """In place of a Fabric."""

    def __init__(self, devices, **_):
        self.devices = devices

    def launch(self): ...


def test_workers_take_several_gpus_in_turn_and_one_cpu(monkeypatch):
    monkeypatch.setattr("lightning.fabric.Fabric", Recorder)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [fabric_for("cuda", gpu=number).devices for number in (None, 0, 1, 2)] == [1, [0], [1], [0]]
    assert fabric_for("cpu", gpu=3).devices == 1


def test_products_are_for_a_while_what_they_are_to_be():
    fabric = fabric_for("cpu")
    assert torch.get_float32_matmul_precision() == "highest"
    with matmul_precision_of(fabric), exact_matmul():
        assert torch.get_float32_matmul_precision() == "highest"
    with matmul_precision("medium"), matmul_precision_of(Fabric()):
        assert torch.get_float32_matmul_precision() == "medium"
    assert torch.get_float32_matmul_precision() == "highest"


def test_training_has_the_products_of_its_fabric_and_leaves_the_callers():
    data = communities()
    parts = halves(data)
    during = []
    fit(
        GCN(data.num_features, 8, 3), data, parts, task_of(data, parts.train), recipe("paper", "node", {"epochs": 1}),
        fabric=fabric_for("cpu"), on_epoch=lambda report: during.append(torch.get_float32_matmul_precision()),
    )  # fmt: skip
    assert during == ["high"]
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize(
    ("device", "how", "is_asked_for"),
    [
        ("cuda", {"deterministic": True}, True),
        ("cuda", {}, True),
        ("cuda", {"deterministic": False}, False),
        ("cpu", {}, False),
    ],
)
def test_a_gpu_is_deterministic_for_a_while(device, how, is_asked_for):
    fabric = SimpleNamespace(device=torch.device(device), **how)
    with determinism_of(fabric):
        assert torch.are_deterministic_algorithms_enabled() is is_asked_for
        assert torch.utils.deterministic.fill_uninitialized_memory is not is_asked_for
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory


def test_the_old_name_of_determinism_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match="use deterministic"):
        assert not fabric_for("cpu", any_order=True).deterministic
    with pytest.warns(DeprecationWarning, match="use deterministic"):
        assert fabric_for("cpu", any_order=False).deterministic
    assert fabric_for("cpu").deterministic


@pytest.mark.parametrize("warn_only", [True, False])
def test_what_the_caller_has_asked_for_holds(warn_only):
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    try:
        with determinism_of(SimpleNamespace(device=torch.device("cuda"))):
            assert torch.is_deterministic_algorithms_warn_only_enabled() is warn_only
            assert torch.utils.deterministic.fill_uninitialized_memory
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


def test_training_is_as_deterministic_as_its_fabric(monkeypatch):
    data, parts, fabric, entered = communities(), halves(communities()), fabric_for("cpu"), []
    monkeypatch.setattr(concurrent, "determinism_of", lambda fabric: nullcontext(entered.append(fabric)))
    settings = recipe("paper", "node", {"epochs": 1})
    fit(GCN(data.num_features, 8, 3), data, parts, task_of(data, parts.train), settings, fabric=fabric)
    assert entered == [fabric]


def test_a_name_that_is_none_lists_those_that_are():
    with pytest.raises(TrainingError, match=f"no precision '32'; known are {', '.join(PRECISIONS)}"):
        fabric_for("cpu", "32")
    with pytest.raises(TrainingError, match="no device 'gpu'; known are auto, cpu, cuda, mps"):
        fabric_for("gpu")


def test_lightning_finds_nothing_to_advise_at_its_start(monkeypatch) -> None:
    """On a GPU it would tell everyone to set a lower precision, which training does for itself."""
    seen = []
    monkeypatch.setattr(
        "lightning.fabric.Fabric.launch", lambda self: seen.append(torch.get_float32_matmul_precision())
    )
    fabric_for("cpu")
    assert seen == ["high"]
    assert torch.get_float32_matmul_precision() == "highest"
