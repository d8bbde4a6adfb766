"""How every page writes its numbers and shortens its texts."""

import math
from typing import Any

METRICS = {"mae": "MAE", "rmse": "RMSE", "r2": "R²", "f1": "F1", "roc_auc": "ROC AUC"}
NOTHING = "–"  # noqa: RUF001
DIGITS = 4


def number(value: Any, digits: int | None = None) -> str:
    """A number for people: four significant digits, or so many after the point; thousands are set apart."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NOTHING
    if isinstance(value, int):
        return f"{value:,}"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if digits is not None:
        return f"{value:,.{digits}f}"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.{DIGITS}g}"


def with_deviation(mean: float | None, deviation: float | None, digits: int) -> str:
    """`81.5 ± 0.4`, or the mean alone."""
    return number(mean, digits) + ("" if deviation is None else f" ± {number(deviation, digits)}")


def metric_name(metric: str) -> str:
    """As people write it."""
    return METRICS.get(metric, metric.replace("_", " "))


def shown(value: Any) -> str:
    """Any value of a configuration."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value)) or "none"
    return str(value)


def shortened(text: str, most: int = 60) -> str:
    """At most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
