"""Figures as plain data for plotly.js.

Colours are named by roles (`--c0`, `--accent`), which the theme of the page fills in. Texts from data pass through
`plain`, as plotly.js reads tags and entities in texts.
"""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lanczosnet.report.blocks import Chart
from lanczosnet.report.numbers import shortened

COLORS = 10
MOST_POINTS = 2000  # of one trace
FAR = 2  # times the range of the middle values


def plain(text: Any) -> str:
    """A text that plotly.js shows as it is, neither as tags nor, between `$` signs, as a formula."""
    return html.escape(shortened(str(text)), quote=False).replace("$", "&#36;")


def color(place: int) -> str:
    return f"--c{place % COLORS}"


def dash(place: int) -> str:
    """Lines beyond the first ten differ by their dashes."""
    return ("solid", "dash", "dot")[place // COLORS % 3]


def thinned(count: int, most: int = MOST_POINTS) -> np.ndarray:
    """Which of so many points are shown, evenly."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).astype(int)


def line(x: Any, y: Any, name: Any, place: int, **more: Any) -> dict[str, Any]:
    style = {"color": color(place), "width": 2, "dash": dash(place)}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": plain(name), "line": style} | more


def points(x: Any, y: Any, name: Any, place: int, **more: Any) -> dict[str, Any]:
    style = {"color": color(place), "size": 6, "opacity": 0.75} | more.pop("marker", {})
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, "name": plain(name), "marker": style} | more


def diagonal(low: float, high: float) -> dict[str, Any]:
    """Where predictions are right."""
    style = {"color": "--muted", "width": 1, "dash": "dash"}
    ends = [low, high]
    more = {"showlegend": False, "hoverinfo": "skip"}
    return {"type": "scatter", "mode": "lines", "x": ends, "y": ends, "line": style} | more


def axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": plain(title)}, "automargin": True} | more


def curve_axis(title: str, values: Sequence[float | None]) -> dict[str, Any]:
    """Close around a curve that does not change, for which plotly.js would take an axis from -1 to 1 about it."""
    found = {value for value in values if value is not None}
    middle = found.pop() if len(found) == 1 else None
    return axis(title) if middle is None else axis(title, range=[middle - 0.05, middle + 0.05])


def log_axis(title: str, values: Sequence[float]) -> dict[str, Any]:
    """Logarithmic, with no more labels than have room."""
    found = [value for value in values if value is not None and value > 0]
    span = max(found) / min(found) if found else 1.0
    step: dict[str, Any] = {} if span < 5 else {"dtick": "D2" if span < 1000 else 1}
    return axis(title, type="log", tickformat=".3~g", **step)


def middle_range(values: np.ndarray) -> list[float] | None:
    """The range of the middle 98 % of the values, where some lie far outside; else None."""
    low, high = np.quantile(values, (0.01, 0.99))
    room = 0.05 * (high - low)
    if high == low or np.ptp(values) < FAR * (high - low):
        return None
    return [float(low - room), float(high + room)]


def chart(
    title: str,
    alt: str,
    traces: Sequence[Mapping[str, Any]],
    x: Mapping[str, Any],
    y: Mapping[str, Any],
    **layout: Any,
) -> Chart:
    return Chart(title, alt, {"data": list(traces), "layout": {"xaxis": dict(x), "yaxis": dict(y)} | layout})
