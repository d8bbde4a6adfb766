"""config.json is checked once: types, ranges, laws between fields, and its version."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lanczosnet.graphs.molecules.featurizer import MOLECULE
from lanczosnet.schemas.model_config import ModelConfig, model_config
from lanczosnet.schemas.record import FileError

OLD = Path(__file__).resolve().parents[2] / "data" / "model" / "config.json"
PUBLISHED = Path(__file__).resolve().parents[3] / "pretrained" / "qm8" / "config.json"


def read(change: Callable[[dict[str, Any]], Any], path: Path = PUBLISHED) -> ModelConfig:
    document = json.loads(path.read_bytes())
    change(document)
    return model_config(json.dumps(document).encode(), path)


@pytest.mark.parametrize("path", [OLD, PUBLISHED])
def test_models_of_earlier_versions_keep_every_field_and_are_of_the_published_form(path):
    expected = json.loads(path.read_bytes())
    if expected["format"] == 1:
        expected["format"] = 2
        expected["architecture"]["options"]["block"] = "plain"
    config = model_config(path.read_bytes(), path)
    assert json.loads(json.dumps(config.document())) == expected
    assert config.architecture.options["block"] == "plain"


@pytest.mark.parametrize("name", ["lanczosnet", "LanczosNet", "AdaLanczosNet"])
def test_the_form_that_an_earlier_version_names_stays(name):
    chosen = {"name": name}
    assert read(lambda c: c["architecture"].update(chosen)).architecture.options["block"] == "plain"
    chosen["options"] = {"block": "residual"}
    assert read(lambda c: c["architecture"].update(chosen)).architecture.options == {"block": "residual"}


def test_another_network_of_an_earlier_version_gets_no_form():
    assert "block" not in read(lambda c: c["architecture"].update(name="gcn")).architecture.options


def test_fields_are_attributes_and_keys():
    config = model_config(OLD.read_bytes(), OLD)
    assert config.training.seed == config["training"]["seed"] == 3
    assert config.task.kind == config["task"]["kind"] == "classification"
    assert "folder" not in config.data
    assert config.data.get("folder", ".") == "."
    with pytest.raises(KeyError):
        config["data"]["colour"]


WRONG: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a field less": (lambda c: c.pop("task"), "the field 'task' is missing"),
    "a field too many": (lambda c: c["data"].update(colour=1), "data: unknown field 'colour'"),
    "a text for a number": (lambda c: c["split"].update(seed="0"), "split.seed: expected a whole number"),
    "NaN": (lambda c: c["task"]["mean"].__setitem__(2, float("nan")), r"task.mean\[2\]: expected a number"),
    "a deviation of zero": (lambda c: c["task"]["deviation"].__setitem__(0, 0.0), r"task.deviation\[0\]"),
    "a mean less": (lambda c: c["task"]["mean"].pop(), r"one value per target \(16\), but has 15"),
    "a unit less": (lambda c: c["task"]["units"].pop(), "units must have one value per target"),
    "a target twice": (lambda c: c["task"]["targets"].__setitem__(1, c["task"]["targets"][0]), "some are repeated"),
    "other outputs": (lambda c: c["architecture"]["options"].update(out_channels=5), "out_channels is 5, but"),
    "other inputs": (lambda c: c["data"].update(inputs="words"), "data.inputs: Invalid value 'words'"),
    "no elements": (lambda c: c["data"].update(atom_types=[]), "data.atom_types"),
    "nodes for graphs": (lambda c: c["task"].update(level="node"), "task.level is 'node'"),
    "many layers": (lambda c: c["architecture"]["options"].update(num_layers=10**7), "LANCZOSNET_MAX_LAYERS"),
    "a huge number": (lambda c: c["architecture"]["options"].update(num_steps=10**400), "LANCZOSNET_MAX_STEPS"),
    "a long scale": (lambda c: c["architecture"]["options"].update(long_scales=[1e308]), "LANCZOSNET_MAX_LONG_SCALE"),
    "a text as a number": (
        lambda c: c["data"].update(featurizer=MOLECULE.described() | {"atoms": {"ring": ["", 1]}}),
        "atoms.ring must have only whole numbers",
    ),
    "a number as a text": (
        lambda c: c["data"].update(featurizer=MOLECULE.described() | {"atoms": {"chirality": [1]}}),
        "atoms.chirality must have only texts",
    ),
    "a newer format": (lambda c: c.update(format=3), "format 3, this program reads up to 2: update lanczosnet"),
    "no format": (lambda c: c.update(format=None), "format: expected a version number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_named_with_its_file(name):
    change, message = WRONG[name]
    with pytest.raises(FileError, match=message) as caught:
        read(change)
    assert str(PUBLISHED) in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"[" * 100_000, b"\xff\xfe", b"1" * 5000])
def test_what_is_no_json_object_is_one_message(text):
    with pytest.raises(FileError, match=r"config.json: (not a JSON document|expected a JSON object)"):
        model_config(text, Path("config.json"))


def test_a_limit_is_raised_by_its_variable(monkeypatch):
    monkeypatch.setenv("LANCZOSNET_MAX_LAYERS", "2e7")
    read(lambda c: c["architecture"]["options"].update(num_layers=10**7))
    monkeypatch.setenv("LANCZOSNET_MAX_LAYERS", "many")
    with pytest.raises(FileError, match="must be a positive number"):
        read(lambda c: None)
