"""What is searched: the settings of a network and the values of each, as data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanczosnet.schemas.search_space import Dimension, SearchSpace, read_search_space
from lanczosnet.training.errors import TrainingError

if TYPE_CHECKING:
    from optuna.trial import Trial

BUILT_IN = "spaces.toml"


@dataclass(frozen=True)
class Space:
    """The search of one network."""

    name: str  # of the contestant
    model: str
    fixed: Mapping[str, Any]
    dimensions: Mapping[str, Dimension]

    def suggested(self, trial: "Trial") -> dict[str, Any]:
        """Values of all dimensions that a sampler chooses."""
        return {name: _suggested(trial, name, dimension) for name, dimension in self.dimensions.items()}

    def described(self) -> dict[str, Any]:
        """As JSON holds it."""
        dimensions = {name: dimension.document() for name, dimension in self.dimensions.items()}
        return {"model": self.model, "fixed": dict(self.fixed), "dimensions": dimensions}


def built_in() -> str:
    """The text of the built-in spaces."""
    return files(__package__).joinpath(BUILT_IN).read_text(encoding="utf-8")


def space_for(name: str, level: str, settings: Mapping[str, Any], file: Path | None = None) -> Space:
    """The space of a network for "node" or "graph" tasks; what the settings fix is not searched."""
    held = spaces(file)
    if name not in held.networks:
        raise TrainingError(f"there is no network {name!r} to tune; known are {', '.join(held.networks)}")
    one = held.networks[name]
    dimensions = {**getattr(held, level), **getattr(one, level)}
    searched = {key: dimension for key, dimension in dimensions.items() if key not in settings}
    if not searched:
        raise TrainingError(f"there is nothing to search for {name}: every setting of its space is fixed")
    return Space(name, one.model, {**one.fixed, **settings}, searched)


@cache
def spaces(file: Path | None = None) -> SearchSpace:
    """The built-in spaces; a file replaces those that it names."""
    with as_file(files(__package__).joinpath(BUILT_IN)) as path:
        ours = read_search_space(path)
    if file is None:
        return ours
    theirs = read_search_space(file)
    networks = {**ours.networks, **theirs.networks}
    return SearchSpace(node=theirs.node or ours.node, graph=theirs.graph or ours.graph, networks=networks)


def value_text(value: Any) -> str:
    """A value as a sampler keeps it: lists are no values of theirs."""
    return json.dumps(value)


def values_of(parameters: Mapping[str, Any], dimensions: Mapping[str, Dimension]) -> dict[str, Any]:
    """The settings that the parameters of a trial stand for."""
    return {
        name: json.loads(value) if dimensions[name].choices is not None else value for name, value in parameters.items()
    }


def _suggested(trial: "Trial", name: str, dimension: Dimension) -> Any:
    low, high = dimension.low, dimension.high
    if dimension.choices is not None:
        return json.loads(trial.suggest_categorical(name, [value_text(choice) for choice in dimension.choices]))
    assert low is not None
    assert high is not None
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(name, low, high, log=dimension.log)
    return trial.suggest_float(name, low, high, log=dimension.log)
