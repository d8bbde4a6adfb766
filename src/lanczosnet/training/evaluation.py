"""A trained model against targets."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from lanczosnet.files import is_there
from lanczosnet.graphs import PackedGraphs, Split, load
from lanczosnet.schemas.model_config import DataRecord, SmilesData
from lanczosnet.training.calibration import (
    ABSENT,
    calibration_errors,
    calibration_of,
    interval_measures,
    with_calibrated,
    with_intervals,
)
from lanczosnet.training.ensemble import Ensemble
from lanczosnet.training.errors import TrainingError
from lanczosnet.training.measures import Answers, Measures
from lanczosnet.training.predict import Predictions
from lanczosnet.training.serialization import TrainedModel
from lanczosnet.training.splitting import split_again
from lanczosnet.training.tasks import (
    Classification,
    Task,
    fingerprint,
    input_fingerprint,
    is_classification,
    target_names,
    targets_of,
    task_of,
)

FILES = {"edges"}  # options of data that name one


def original_data(trained: TrainedModel | Ensemble, data_dir: Path | None = None) -> tuple[Data | PackedGraphs, Split]:
    """The data that a model was trained on and its split; changed data is an error.

    Files that are not here are looked for in the folder that the training was started in.
    """
    about, parts = trained.config.data, trained.config.split
    if isinstance(trained, Ensemble) and {member.config.split.hash for member in trained.members} != {parts.hash}:
        raise TrainingError("these models have different splits, and no test item in common: name one of them")
    options = reading_options(about, trained.task) | {
        key: _found(about, about.options[key]) for key in FILES & about.options.keys()
    }
    data = load(_found(about, about.source), data_dir=data_dir, **options)
    again = split_again(data, parts, _found(about, parts.file) if parts.file else None)
    known_inputs = {about.input_hash, input_fingerprint(data)} - {None}
    if again.hash != parts.hash or fingerprint(data) != about.targets or len(known_inputs) > 1:
        raise TrainingError(
            f"{about.source} has changed since the model was trained, and with it what was trained on. "
            "To measure on all of it, pass the new data"
        )
    return data, again


def reading_options(about: DataRecord, task: Task) -> dict[str, Any]:
    """The loader's options; molecules get the features that the model knows, whatever is the default today."""
    is_made = about.source.lower() == "qm8" or about.source.endswith(".safetensors")
    if is_made or not isinstance(about, SmilesData):
        return about.options
    # What earlier versions took for granted: every other column is a target, and numbers are not classes.
    taken: dict[str, Any] = {"targets": list(task.targets), "task": task.kind}
    return taken | about.options | {"featurizer": featurizer_of(about)}


def featurizer_of(about: SmilesData) -> str | dict[str, Any]:
    """As `molecules` takes it; models of earlier versions know the paper's input only."""
    return "paper" if about.featurizer is None else about.featurizer.document()


def _found(about: DataRecord, name: str) -> str:
    there = Path(about.folder or ".") / name  # which is the name itself where that is a whole path
    return str(there) if not is_there(name) and is_there(there) else name


def evaluate(
    trained: TrainedModel | Ensemble,
    data: Data | PackedGraphs,
    items: Tensor | None = None,
    *,
    interval: float | None = None,
) -> dict[str, Any]:
    """Metrics over the items, by default all, in the units of the data.

    With `interval`, the level of intervals, also what their coverage and width are, or how well probabilities of
    classes are calibrated.
    """
    columns = _columns(trained, data)
    y = targets_of(data)[:, columns]
    items = torch.arange(len(y)) if items is None else items
    if isinstance(trained.task, Classification):
        here = task_of(data, items)
        assert isinstance(here, Classification)
        classes = [here.classes[column] for column in columns]
        if any(not set(found) <= set(known) for found, known in zip(classes, trained.task.classes, strict=True)):
            raise TrainingError(f"{data.name} has classes that the model does not know")
        y = _recoded(y, classes, trained.task)
    known = int(trained.task.known(y[items]).any(1).sum())
    predicted = _predictions(trained, data, items)
    found = Measures(trained.task, Answers(predicted.values, predicted.probabilities), y[items])
    measured = {"items": known, **found.mean, "by_target": found.main, "metrics_by_target": found.by_target}
    return measured if interval is None else measured | _calibration(trained, predicted, y[items], interval)


def _predictions(trained: TrainedModel | Ensemble, data: Data | PackedGraphs, items: Tensor) -> Predictions:
    if isinstance(data, PackedGraphs) and len(items) < len(data):  # a graph's prediction needs no other graph
        return trained.predict([data[int(i)] for i in items])
    found = trained.predict(data)
    tables = tuple(table[items] for table in found.probabilities)
    spread = None if found.uncertainty is None else found.uncertainty[items]
    errors = tuple(found.errors[int(i)] for i in items)
    return replace(found, values=found.values[items], probabilities=tables, uncertainty=spread, errors=errors)


def unmeasured(trained: TrainedModel | Ensemble, level: float) -> str:
    """Why a model of graphs has no measures of its intervals, or of calibrated probabilities; empty where it has."""
    if trained.task.level == "node":
        return ""
    if None in trained.references:
        return ABSENT
    held = calibration_of(trained.task, trained.references)
    return "" if isinstance(trained.task, Classification) or held.suffices(level) else held.lack(level)


def _calibration(
    trained: TrainedModel | Ensemble, predicted: Predictions, y: Tensor, level: float
) -> dict[str, dict[str, float]]:
    """Of intervals, or of probabilities before and after calibration, where the model has a reference."""
    known, is_class = None not in trained.references, isinstance(trained.task, Classification)
    before = {"calibration_error": calibration_errors(predicted, y)} if is_class else {}
    if not known:
        return before
    held = calibration_of(trained.task, trained.references)
    if is_class:
        return before | {"calibrated_error": calibration_errors(with_calibrated(predicted, held), y)}
    return interval_measures(with_intervals(predicted, held, level), y) if held.suffices(level) else {}


def _columns(trained: TrainedModel | Ensemble, data: Data | PackedGraphs) -> list[int]:
    """Where the model's targets stand among those of the data: by their names, in whatever order."""
    names = target_names(data)
    missing = [target for target in trained.task.targets if target not in names]
    if missing or is_classification(data) != isinstance(trained.task, Classification):
        raise TrainingError(
            f"the model predicts {', '.join(trained.task.targets)} ({trained.task.kind}), which {data.name} does not "
            f"have: its targets are {', '.join(names)}"
        )
    return [names.index(target) for target in trained.task.targets]


def _recoded(y: Tensor, here: Sequence[Sequence[str]], there: Classification) -> Tensor:
    """Classes by the model's numbers: other data may lack some and number the others differently."""
    columns = []
    for column, names, known in zip(y.unbind(1), here, there.classes, strict=True):
        code = torch.tensor([*(known.index(name) for name in names), -1])
        columns.append(code[torch.where(column >= 0, column, len(names)).long()])
    return torch.stack(columns, 1)
