"""Model and data -> fitted model: tasks, recipes, the loop, checkpoints and the model directory.

The names below are imported when they are first used, so that the command line can ask for an error class or a list of
recipes without loading torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanczosnet.training.architecture import Architecture, architecture_for
    from lanczosnet.training.engine.concurrent import Outcome, Trial, fit_together
    from lanczosnet.training.errors import DivergenceError, TrainingError
    from lanczosnet.training.job import Plan, prepare, run
    from lanczosnet.training.loop import fit
    from lanczosnet.training.recipes import RECIPES, Recipe, recipe
    from lanczosnet.training.seeds import run_seeds
    from lanczosnet.training.serialization import TrainedModel
    from lanczosnet.training.state import EpochReport, Fitted
    from lanczosnet.training.tasks import Classification, Regression, task_of

_HOME = {
    "Architecture": "architecture",
    "Classification": "tasks",
    "DivergenceError": "errors",
    "EpochReport": "state",
    "Fitted": "state",
    "Outcome": "engine.concurrent",
    "Plan": "job",
    "RECIPES": "recipes",
    "Recipe": "recipes",
    "Regression": "tasks",
    "TrainedModel": "serialization",
    "TrainingError": "errors",
    "Trial": "engine.concurrent",
    "architecture_for": "architecture",
    "fit": "loop",
    "fit_together": "engine.concurrent",
    "prepare": "job",
    "recipe": "recipes",
    "run": "job",
    "run_seeds": "seeds",
    "task_of": "tasks",
}

__all__ = [
    "RECIPES",
    "Architecture",
    "Classification",
    "DivergenceError",
    "EpochReport",
    "Fitted",
    "Outcome",
    "Plan",
    "Recipe",
    "Regression",
    "TrainedModel",
    "TrainingError",
    "Trial",
    "architecture_for",
    "fit",
    "fit_together",
    "prepare",
    "recipe",
    "run",
    "run_seeds",
    "task_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
