"""What a model directory holds before a run: nothing, a model, a run that was interrupted, or both of them.

A model that is to be replaced stays until the new one is complete. Meanwhile the new run has its metrics under another
name, which marks it.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanczosnet.files import REPORT
from lanczosnet.training.architecture import Architecture
from lanczosnet.training.checkpoint import differences
from lanczosnet.training.errors import DIVERGED, DivergenceError, TrainingError
from lanczosnet.training.reference import REFERENCE
from lanczosnet.training.serialization import CONFIG, PREVIOUS, WEIGHTS, read_config
from lanczosnet.training.state import FitResult

if TYPE_CHECKING:
    from lanczosnet.training.job import Job

METRICS, CHECKPOINT = "metrics.jsonl", "checkpoint.safetensors"
NEW_METRICS = "metrics.new.jsonl"  # of a run whose model will replace the one in the folder


def metrics_path(folder: Path) -> Path:
    """Where a run writes its lines."""
    return folder / (NEW_METRICS if (folder / NEW_METRICS).exists() else METRICS)


def begin_anew(job: "Job", folders: Sequence[Path]) -> None:
    """Discard interrupted runs; models stay until `settle`."""
    job.architecture.build()  # options that no network can be built with are noticed first
    for folder in folders:
        (folder / CHECKPOINT).unlink(missing_ok=True)
        if (folder / CONFIG).exists():
            (folder / NEW_METRICS).unlink(missing_ok=True)
            (folder / NEW_METRICS).touch(exist_ok=False)
        else:
            for name in (NEW_METRICS, METRICS, WEIGHTS, REFERENCE, REPORT):
                (folder / name).unlink(missing_ok=True)


def settle(folder: Path) -> None:
    """After the new model is written: its metrics take their place, and what was of the old one goes."""
    (folder / REPORT).unlink(missing_ok=True)
    if (folder / NEW_METRICS).exists():
        os.replace(folder / NEW_METRICS, folder / METRICS)


def finished_before(job: "Job", resume: bool) -> FitResult | None:
    """The result in the job's folder, if the job is done; an error if the folder holds what must not be replaced."""
    folder, checkpoint = job.outputs.model, job.outputs.checkpoint
    assert folder is not None
    assert checkpoint is not None
    has_model, is_replaced = (folder / CONFIG).exists(), (folder / NEW_METRICS).exists()
    if not resume and has_model:
        raise TrainingError(f"{folder} already holds a model: pass overwrite=True, or choose another folder")
    if not resume and checkpoint.path.exists():
        raise TrainingError(
            f"{folder} holds an interrupted run: pass resume=True to continue, overwrite=True to start over, or "
            "choose another folder"
        )
    if not has_model or is_replaced:
        return None
    result = _saved_result(job, folder)
    for path in (checkpoint.path, folder / PREVIOUS):  # of a run that was killed in one of its last steps
        path.unlink(missing_ok=True)
    return result


def as_it_ended(job: "Job", result: FitResult) -> FitResult:
    """The result of a run that is found done; raises the error of one that diverged."""
    if result.stopped == DIVERGED:
        raise DivergenceError(result.epochs + 1, job.recipe.learning_rate, result)
    return result


def _saved_result(job: "Job", folder: Path) -> FitResult:
    config = read_config(folder)
    found = {
        "split": config.split.hash,
        "targets": config.data.targets,
        "inputs": config.data.input_hash,
        "architecture": Architecture(**config.architecture.document()).identity(),
        "recipe": config.training.settings,
        "seed": config.training.seed,
        "precision": config.training.precision,
        **({"scaling": config.data.scaling.document()} if config.data.scaling else {}),
    }
    assert job.outputs.checkpoint is not None
    if differences(json.loads(json.dumps(found)), job.outputs.checkpoint.identity):
        raise TrainingError(f"{folder} holds a model of another run: choose another folder")
    return FitResult(**config.result.document())
