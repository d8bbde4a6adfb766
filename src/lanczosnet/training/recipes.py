"""How a model is trained, as data: every number has a name, and can be changed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from lanczosnet.training.errors import TrainingError

# Of standardised targets, squared or absolute; "mae" are absolute errors in the units of the data, which is what the
# metric of that name averages, relative to the mean deviation of the targets.
RegressionLoss = Literal["mse", "l1", "mae"]
# By the kind of task, as in `lanczosnet.training.metrics`; the first is the customary one.
METRIC_NAMES = {
    "classification": ("accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision"),
    "regression": ("mae", "rmse", "r2"),
}


@dataclass(frozen=True)
class Recipe:
    """All numbers of a training. Zero switches a rule off."""

    optimizer: Literal["adam", "adamw"] = "adam"
    learning_rate: float = 1e-2
    weight_decay: float = 0.0
    epochs: int = 200
    batch_size: int = 64  # graphs per step; one large graph is always one batch
    regression_loss: RegressionLoss = "mse"
    warmup_epochs: float = 0.0  # the rate rises linearly over these
    decay: Literal["none", "cosine"] = "none"  # of the rate, to zero at the last epoch, or before a restart
    clip_norm: float = 0.0  # of the gradient
    averaging: float = 0.0  # decay of the moving average of the weights, which is then what is validated and kept
    views: int = 1  # of every item in a step, with other dropout each; their losses are averaged
    consistency: float = 0.0  # weight of the passes' disagreement about all nodes of a graph (classification)
    consistency_warmup_epochs: float = 0.0  # that weight rises linearly over these
    temperature: float = 0.5  # below 1, the passes are drawn to a sharper answer than their mean
    confidence: float = 0.0  # nodes whose mean answer is less sure do not count in the disagreement
    alignment: float = 0.0  # at 1, the passes are drawn to answers with the training labels' shares of classes
    stop_window: int = 0  # stop when so many validation losses in a row were no lower than the one before
    restart_epochs: int = 0  # restart from new weights after so many epochs, again and again; the best epoch is kept
    patience: int = 0  # stop after so many epochs without a new best
    # Of the validation items: "loss", "metric" (the data's customary one) or a metric by name. The weights of the best
    # epoch are kept.
    choose_by: str = "metric"
    class_weight: Literal["none", "balanced"] = "none"  # of a class in the loss: by how rare it is in training

    def settings(self) -> dict[str, Any]:
        return asdict(self)


# Appendix of the paper: Adam, 200 epochs, a window of 10. The epoch is chosen on validation.
_PAPER = Recipe(optimizer="adam", epochs=200, stop_window=10, regression_loss="mse")
_MODERN = Recipe(optimizer="adamw", regression_loss="l1", decay="cosine", clip_norm=5.0, averaging=0.999)
# Files of molecules may have a few hundred rows: no average of weights, which needs many steps. The validation loss is
# always defined, where the ROC-AUC may not be.
_MOLECULE: dict[str, Any] = {
    "learning_rate": 1e-3,
    "weight_decay": 1e-2,
    "epochs": 60,
    "warmup_epochs": 2.0,
    "averaging": 0.0,
    "choose_by": "loss",
    "patience": 20,
}
Kind = Literal["node", "residual-node", "graph", "molecule"]

# By name, then by what is predicted: nodes of one graph are one step per epoch, graphs are many. Residual blocks on
# nodes want a lower rate and more epochs (docs/choosing.md). Molecules are graphs whose atoms a featuriser describes.
RECIPES: dict[str, dict[str, Recipe]] = {
    "paper": {
        "node": replace(_PAPER, learning_rate=1e-2, weight_decay=5e-4),
        "residual-node": replace(_PAPER, learning_rate=1e-2, weight_decay=5e-4),
        "graph": replace(_PAPER, learning_rate=1e-4),
        "molecule": replace(_PAPER, learning_rate=1e-4),
    },
    "modern": {
        "node": replace(_MODERN, learning_rate=1e-2, weight_decay=5e-4, epochs=200, warmup_epochs=10.0),
        "residual-node": replace(_MODERN, learning_rate=3e-3, weight_decay=5e-4, epochs=400, warmup_epochs=10.0),
        "graph": replace(_MODERN, learning_rate=1e-3, weight_decay=1e-2, epochs=60, warmup_epochs=2.0),
        "molecule": replace(_MODERN, **_MOLECULE),
    },
}
NAMES = tuple(field.name for field in fields(Recipe))
_CHOICES = {
    "optimizer": ("adam", "adamw"),
    "regression_loss": get_args(RegressionLoss),
    "decay": ("none", "cosine"),
    "choose_by": ("metric", "loss", *(name for names in METRIC_NAMES.values() for name in names)),
    "class_weight": ("none", "balanced"),
}


def recipe(name: str, level: str, settings: Mapping[str, Any] | None = None) -> Recipe:
    """A recipe by name for a kind of task, with some numbers changed; texts are read as numbers."""
    check_name(name)
    chosen = RECIPES[name][level]
    return replace(chosen, **{key: _read(chosen, key, value) for key, value in (settings or {}).items()})


def kind_in_form(kind: Kind, block: str | None) -> Kind:
    """What a recipe depends on: what is predicted, and on nodes the form of the network."""
    return "residual-node" if (kind, block) == ("node", "residual") else kind


def check_name(name: str) -> None:
    if name not in RECIPES:
        raise TrainingError(f"there is no recipe {name!r}; known are {', '.join(RECIPES)}")


def _read(chosen: Recipe, key: str, value: Any) -> Any:
    if key not in NAMES:
        raise TrainingError(f"there is no setting {key!r}; known are {', '.join(NAMES)}")
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            *others, last = _CHOICES[key]
            raise TrainingError(f"{key} must be {', '.join(others)} or {last}, but is {value!r}")
        return value
    kind = type(getattr(chosen, key))
    try:
        number = kind(value)
        number = None if number != float(value) else number  # half an epoch is a mistake
    except (TypeError, ValueError, OverflowError):
        number = None
    at_least = 1 if key in ("epochs", "batch_size", "views") else 0
    is_share = key in ("averaging", "confidence")
    if number is None or not at_least <= number < float("inf") or (is_share and number >= 1):
        limit = "at least 0 and below 1" if is_share else f"{kind.__name__}, at least {at_least}"
        raise TrainingError(f"{key} must be a number ({limit}), but is {value!r}")
    return number
