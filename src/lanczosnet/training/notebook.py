"""What a notebook shows of a trained model, of a training and of predictions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lanczosnet._notebook import facts, table
from lanczosnet._numbers import metric_name, number

if TYPE_CHECKING:
    from lanczosnet.training.predict import Predictions
    from lanczosnet.training.serialization import TrainedModel
    from lanczosnet.training.state import FitResult

MOST_ROWS = 10
PARTS = {"val": "validation", "test": "test"}


def model_line(model: "TrainedModel") -> str:
    """The model in one line."""
    config, name = model.config, type(model.network).__name__
    metric = model.task.metric
    found = f"{metric_name(metric)} {number(config.result.metrics['test'].get(metric))}"
    return f"TrainedModel({name} on {config.data.name}, {found} on {number(config.split.test)} test items)"


def model_html(model: "TrainedModel") -> str:
    """What was trained on what, and its metrics."""
    config, task = model.config, model.task
    parameters = sum(parameter.numel() for parameter in model.network.parameters())
    shown = {
        "network": f"{type(model.network).__name__}, {number(parameters)} parameters",
        "data": config.data.source,
        "task": f"{task.kind} of {', '.join(task.targets[:5])}{', ...' if len(task.targets) > 5 else ''}",
        "split": f"{config.split.kind}: {number(config.split.train)} training, {number(config.split.val)} validation, "
        f"{number(config.split.test)} test",
        "training": f"recipe {config.training.recipe}, seed {config.training.seed}, best epoch "
        f"{number(config.result.best_epoch)} of {number(config.result.epochs)}",
    }
    return facts(f"{type(model.network).__name__} on {config.data.name}", shown) + metrics_html(config.result.metrics)


def fit_html(result: "FitResult") -> str:
    """How the training ended, and the metrics of the best epoch."""
    caption = f"Best epoch {number(result.best_epoch)} of {number(result.epochs)}: {result.stopped}"
    return metrics_html(result.metrics, caption)


def metrics_html(metrics: Mapping[str, Mapping[str, float]], caption: str = "Metrics") -> str:
    names = list(dict.fromkeys(name for values in metrics.values() for name in values))
    rows = [[PARTS[part], *(number(values.get(name)) for name in names)] for part, values in metrics.items()]
    return table(caption, ["part", *map(metric_name, names)], rows)


def predictions_html(predictions: "Predictions") -> str:
    """The first rows."""
    rows = predictions.rows(MOST_ROWS)
    header = list(rows[0]) if rows else [*predictions.task.targets, "error"]
    shown = [[place, *(_text(row[name]) for name in header)] for place, row in enumerate(rows)]
    more = [f"{len(predictions):,} in all"] if len(predictions) > MOST_ROWS else []
    return table("Predictions", ["", *header], shown, more)


def _text(value: str | float | None) -> str:
    return value if isinstance(value, str) else number(value)
