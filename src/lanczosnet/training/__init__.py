"""Model and data -> fitted model: tasks, recipes, the loop, checkpoints and the model directory.

The names below are imported when they are first used, so that the command line can ask for an error class or a list of
recipes without loading torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanczosnet.training.architecture import Architecture, architecture_for
    from lanczosnet.training.errors import DivergenceError, TrainingError
    from lanczosnet.training.loop import fit
    from lanczosnet.training.plan import Plan, prepare, run
    from lanczosnet.training.progress import EpochReport, Fitted
    from lanczosnet.training.recipes import RECIPES, Recipe, recipe
    from lanczosnet.training.saved import TrainedModel
    from lanczosnet.training.seeds import run_seeds
    from lanczosnet.training.tasks import Classification, Regression, task_of
    from lanczosnet.training.together import Outcome, Trial, fit_together

_HOME = {
    "Architecture": "architecture",
    "Classification": "tasks",
    "DivergenceError": "errors",
    "EpochReport": "progress",
    "Fitted": "progress",
    "Outcome": "together",
    "Plan": "plan",
    "RECIPES": "recipes",
    "Recipe": "recipes",
    "Regression": "tasks",
    "TrainedModel": "saved",
    "TrainingError": "errors",
    "Trial": "together",
    "architecture_for": "architecture",
    "fit": "loop",
    "fit_together": "together",
    "prepare": "plan",
    "recipe": "recipes",
    "run": "plan",
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
