"""How pages and notebooks write numbers and metrics."""

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


def metric_name(metric: str) -> str:
    """As people write it."""
    return METRICS.get(metric, metric.replace("_", " "))
