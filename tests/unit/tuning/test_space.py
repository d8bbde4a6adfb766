"""Search spaces are data: built in, and a user's own."""

import optuna
import pytest

from lanczosnet.models import MODELS
from lanczosnet.schemas.record import FileError
from lanczosnet.training import TrainingError
from lanczosnet.training.architecture import option_names
from lanczosnet.training.recipes import NAMES
from lanczosnet.tuning import space_for, spaces
from lanczosnet.tuning.space import values_of

LEVELS = ("node", "graph")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", list(spaces().networks))
def test_every_built_in_setting_exists(name, level):
    space = space_for(name, level, {})
    assert space.model in MODELS
    known = {*NAMES, *option_names(space.model)}
    assert space.dimensions.keys() | space.fixed.keys() <= known


@pytest.mark.parametrize("level", LEVELS)
def test_what_networks_share_is_searched_alike(level):
    shared = getattr(spaces(), level)
    for name in ("lanczosnet", "adalanczosnet", "gcn", "residual-gcn"):
        dimensions = space_for(name, level, {}).dimensions
        assert {key: dimensions[key] for key in shared} == shared


def test_a_trial_gets_values_of_their_types():
    space = space_for("lanczosnet", "node", {"epochs": 3, "dropout": 0.3})
    assert "dropout" not in space.dimensions
    assert space.fixed == {"epochs": 3, "dropout": 0.3}
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    values = space.suggested(trial)
    assert isinstance(values["short_scales"], list)
    assert isinstance(values["num_layers"], int)
    assert 5e-4 <= values["learning_rate"] <= 2e-2
    assert values_of(trial.params, space.dimensions) == values


def test_a_file_takes_the_place_of_what_it_names(tmp_path):
    file = tmp_path / "spaces.toml"
    file.write_text(
        "[node]\nlearning_rate = { low = 0.01, high = 0.1 }\n[networks.wide]\nmodel = 'gcn'\n"
        "fixed = { hidden_channels = 512 }\n[networks.wide.node]\nnum_layers = { choices = [2] }\n"
    )
    space = space_for("wide", "node", {}, file)
    assert (space.model, space.fixed, list(space.dimensions)) == (
        "gcn", {"hidden_channels": 512}, ["learning_rate", "num_layers"]
    )  # fmt: skip
    assert "lanczosnet" in spaces(file).networks
    assert spaces(file).graph == spaces().graph


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[node]\na = { low = 1 }", "low and high"),
        ("[node]\na = { low = 2, high = 1 }", "below high"),
        ("[node]\na = { low = 0, high = 1, log = true }", "above 0"),
        ("[node]\na = { choices = [] }", "at least one"),
        ("[node]\na = { choices = [1], low = 2 }", "without low"),
        ("[node]\na = { values = [1] }", "unknown field 'values'"),
        ("[networks.a]\nfixed = {}", "'model' is missing"),
        ("[node", "not a TOML file"),
    ],
)
def test_a_mistake_in_a_file_is_told(tmp_path, text, message):
    (tmp_path / "spaces.toml").write_text(text)
    with pytest.raises(FileError, match=message):
        spaces(tmp_path / "spaces.toml")


def test_mistakes_are_told():
    with pytest.raises(TrainingError, match="no network 'gnc' to tune; known are lanczosnet"):
        space_for("gnc", "node", {})
    space = space_for("gcn", "node", {})
    with pytest.raises(TrainingError, match="nothing to search"):
        space_for("gcn", "node", dict.fromkeys(space.dimensions, 1))
