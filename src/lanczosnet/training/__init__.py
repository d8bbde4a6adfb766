"""Model and data -> fitted model: tasks, recipes, the loop, checkpoints and the model directory.

The names below are imported when they are first used, so that the command line can ask for an error class or a list of
recipes without loading torch.
"""

from typing import TYPE_CHECKING

from lanczosnet._lazy import lazy_names

if TYPE_CHECKING:
    from lanczosnet.training.architecture import Architecture, architecture_for
    from lanczosnet.training.errors import DivergenceError, TrainingError
    from lanczosnet.training.job import Job, JobSpec, prepare, run
    from lanczosnet.training.loop import Outcome, Trial, fit, fit_concurrent
    from lanczosnet.training.recipes import RECIPES, Recipe, recipe
    from lanczosnet.training.seeds import run_seeds
    from lanczosnet.training.serialization import TrainedModel
    from lanczosnet.training.state import EpochReport, FitResult
    from lanczosnet.training.tasks import Classification, Regression, task_of

__all__ = [
    "RECIPES",
    "Architecture",
    "Classification",
    "DivergenceError",
    "EpochReport",
    "FitResult",
    "Job",
    "JobSpec",
    "Outcome",
    "Recipe",
    "Regression",
    "TrainedModel",
    "TrainingError",
    "Trial",
    "architecture_for",
    "fit",
    "fit_concurrent",
    "prepare",
    "recipe",
    "run",
    "run_seeds",
    "task_of",
]

_NAMES_IN = {
    "architecture": ("Architecture", "architecture_for"),
    "errors": ("DivergenceError", "TrainingError"),
    "job": ("Job", "JobSpec", "prepare", "run"),
    "loop": ("Outcome", "Trial", "fit", "fit_concurrent"),
    "recipes": ("RECIPES", "Recipe", "recipe"),
    "seeds": ("run_seeds",),
    "serialization": ("TrainedModel",),
    "state": ("EpochReport", "FitResult"),
    "tasks": ("Classification", "Regression", "task_of"),
}

__getattr__, __dir__ = lazy_names(
    __name__,
    {name: f"{__name__}.{module}" for module, names in _NAMES_IN.items() for name in names},
    renamed={"Fitted": "FitResult", "Plan": "JobSpec", "fit_together": "fit_concurrent"},
)
