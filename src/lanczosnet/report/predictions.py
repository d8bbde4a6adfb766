"""Predictions beside targets: figures, calibration, the diffusion map, the best and the worst."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lanczosnet.report.blocks import Block, Card, Cards, Chart, Charts, Paragraph
from lanczosnet.report.charts import COLORS, color, thinned
from lanczosnet.report.model_charts import (
    PART_NAMES,
    confusion_chart,
    curve_charts,
    group_means_chart,
    map_chart,
    parity_chart,
    reliability_chart,
    residual_chart,
    shaded_map_chart,
)
from lanczosnet.report.molecules import picture_of
from lanczosnet.report.numbers import number, shortened

Found = Mapping[str, Any]
MOST_TARGETS = 16  # with figures of their own
CARDS = 8  # best predictions, and worst ones


def prediction_blocks(found: Found) -> list[Block]:
    """Predictions over targets and residuals, or confusion matrix, ROC and precision-recall curves."""
    make = _number_charts if _is_regression(found) else _class_charts
    return [Paragraph(_how_many(found["predictions"])), _sets(make(found))]


def calibration_blocks(found: Found) -> list[Block]:
    """Whether predictions are right on average, or probabilities as often as they say."""
    if _is_regression(found):
        text = "Items in at most ten equal groups by prediction. On the dashed line, the mean of a group is right."
        charts = {
            name: [group_means_chart("Calibration", name, unit, *list(parts.values())[-1])]
            for name, unit, parts in _by_part(found)
        }
    else:
        text = "Below the dashed line the network is surer than it should be. Above it, it is less sure."
        charts = {name: [reliability_chart("Calibration", name, y, p)] for name, _, y, _, p in _classified(found)}
    return [Paragraph(text), _sets(charts)]


def _is_regression(found: Found) -> bool:
    return bool(found["config"]["task"]["kind"] == "regression")


def _sets(charts: Mapping[str, Sequence[Chart]]) -> Charts:
    """The figures of one target at a time."""
    if not charts:
        raise ValueError("no item outside the training part has a target")
    return Charts(charts, "Target")


def _number_charts(found: Found) -> dict[str, list[Chart]]:
    return {
        name: [
            parity_chart("Predictions over targets", name, unit, parts),
            residual_chart("Residuals", name, unit, parts),
        ]
        for name, unit, parts in _by_part(found)
    }


def _class_charts(found: Found) -> dict[str, list[Chart]]:
    return {
        name: [confusion_chart("Confusion matrix", name, classes, y, value), *curve_charts(name, classes, y, p)]
        for name, classes, y, value, p in _classified(found)
    }


def _by_part(found: Found) -> Iterable[tuple[str, str, dict[str, tuple[np.ndarray, np.ndarray]]]]:
    """The name of every target, its unit, and known targets and predictions by part."""
    table, task = found["predictions"], found["config"]["task"]
    names = zip(task["targets"][:MOST_TARGETS], units_of(task, " ({})"), strict=False)
    for column, (name, unit) in enumerate(names):
        parts = {}
        for part in ("val", "test"):
            is_here = (table["part"] == part) & table["known"][:, column]
            if is_here.any():
                parts[part] = table["y"][is_here, column], table["values"][is_here, column]
        if parts:
            yield name, unit, parts


def _classified(found: Found) -> Iterable[tuple[str, list[str], np.ndarray, np.ndarray, np.ndarray]]:
    """For every target its classes, and of the test items the true and the likeliest class and all probabilities."""
    table, task = found["predictions"], found["config"]["task"]
    for column, name in enumerate(task["targets"][:MOST_TARGETS]):
        is_here = _tested(table) & table["known"][:, column]
        if is_here.any():
            codes = (table[key][is_here, column].astype(int) for key in ("y", "values"))
            yield name, task["classes"][column], *codes, table["probabilities"][column][is_here]


def _tested(table: Mapping[str, Any]) -> np.ndarray:
    """The test items or, where none has a target, those for validation."""
    is_test = table["part"] == "test"
    return is_test if (is_test[:, None] & table["known"]).any() else table["part"] == "val"


def _how_many(table: Mapping[str, Any]) -> str:
    is_here = _tested(table)
    part = str(table["part"][is_here][0]) if is_here.any() else "test"
    count, total = int(is_here.sum()), table["total"][part]
    cut = "" if count == total else f" of {total:,}, evenly chosen"
    return f"From {count:,} {PART_NAMES[part]} items{cut}. A figure shows at most 2,000 points of a part."


def map_blocks(found: Found) -> list[Block]:
    """Of the nodes of one graph, or of many graphs by what the network makes of them."""
    drawn, table = found["map"], found["predictions"]
    kept = thinned(len(drawn["rows"]), 3000)
    rows, xy = drawn["rows"][kept], np.asarray(drawn["coordinates"])[kept]
    about = _about_nodes if found["config"]["task"]["level"] == "node" else _about_graphs
    make = _number_maps if _is_regression(found) else _class_maps
    return [Paragraph(about(drawn, len(kept))), Charts({"": make(found, table, rows, xy)})]


def _about_nodes(drawn: Mapping[str, Any], count: int) -> str:
    size, total = len(drawn["rows"]), drawn["total"]
    more = "" if size == total else f"; the largest component has {size:,}"
    near = "near nodes are reached from one another in few steps of a random walk on the graph"
    return f"Diffusion map, {count:,} of {total:,} nodes{more}: {near}."


def _about_graphs(drawn: Mapping[str, Any], count: int) -> str:
    near = "near graphs are alike to the network, by the mean of their node states before the readout"
    return f"Diffusion map, {count:,} of {drawn['total']:,} graphs that were not trained on: {near}."


def _class_maps(found: Found, table: Mapping[str, Any], rows: np.ndarray, xy: np.ndarray) -> list[Chart]:
    predicted, y, known = (table[key][rows, 0] for key in ("values", "y", "known"))
    task = found["config"]["task"]
    name, classes = task["targets"][0], task["classes"][0]
    groups = [(label, predicted == code, color(code), _symbol(code)) for code, label in enumerate(classes)]
    counts = ", ".join(f"{shortened(label)}: {int(is_here.sum()):,}" for label, is_here, *_ in groups[:20])
    is_right = (predicted == y) & known
    is_held = np.isin(table["part"][rows], ("val", "test")) & known
    errors = [
        ("trained on, or unknown", ~is_held, "--muted", "circle-open"),
        ("right", is_held & is_right, "--c0", "circle"),
        ("wrong", is_held & ~is_right, "--c1", "x"),
    ]
    wrong = int((is_held & ~is_right).sum())
    return [
        map_chart("Predicted class", f"Diffusion map by the predicted {name}: {counts}.", xy, groups),
        map_chart("Errors", f"The same by error: {wrong:,} of {int(is_held.sum()):,} are wrong.", xy, errors),
    ]


def _symbol(code: int) -> str:
    """Classes beyond the ten colours, too, can be told apart."""
    return ("circle", "diamond", "square", "triangle-up")[code // COLORS % 4]


def _number_maps(found: Found, table: Mapping[str, Any], rows: np.ndarray, xy: np.ndarray) -> list[Chart]:
    predicted, y, known = (table[key][rows, 0] for key in ("values", "y", "known"))
    name = found["config"]["task"]["targets"][0]
    error = np.abs(predicted - y)[known]
    low, high = number(float(predicted.min())), number(float(predicted.max()))
    alts = f"Diffusion map by the prediction of {name}, {low} to {high}.", f"The same by the error of {name}."
    return [
        shaded_map_chart("Prediction", alts[0], xy, predicted),
        shaded_map_chart("Absolute error", alts[1], xy[known], error),
    ]


def extreme_blocks(found: Found) -> list[Block]:
    """Items whose prediction is best and worst, over all targets."""
    table, task = found["predictions"], found["config"]["task"]
    score = _errors(table, task)
    places = np.flatnonzero(_tested(table) & ~np.isnan(score))
    ordered = places[np.argsort(score[places], kind="stable")]
    if not len(ordered):
        raise ValueError("no item outside the training part has a target")
    count = min(CARDS, (len(ordered) + 1) // 2)
    text = (
        "Ordered by the mean error over the targets, each in units of its standard deviation in training."
        if task["kind"] == "regression"
        else "Ordered by the probability of the true class."
    )
    best, worst = ([_card(found, int(i)) for i in chosen] for chosen in (ordered[:count], ordered[::-1][:count]))
    return [Paragraph(text), Cards("Best", best), Cards("Worst", worst)]


def _errors(table: Mapping[str, Any], task: Mapping[str, Any]) -> np.ndarray:
    if task["kind"] == "regression":
        each = np.abs(table["values"] - table["y"]) / np.asarray(task["deviation"])
    else:
        each = np.stack([_doubt(table, column) for column in range(len(task["targets"]))], 1)
    count = table["known"].sum(1)
    total = np.where(table["known"], each, 0.0).sum(1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _doubt(table: Mapping[str, Any], column: int) -> np.ndarray:
    """One less the probability of the true class."""
    code = np.where(table["known"][:, column], table["y"][:, column], 0).astype(int)
    return 1.0 - table["probabilities"][column][np.arange(len(code)), code]


def _card(found: Found, place: int) -> Card:
    table, task = found["predictions"], found["config"]["task"]
    text = table["smiles"][place] if table["smiles"] else None
    title = f"{'Node' if task['level'] == 'node' else 'Graph'} {table['items'][place]:,}" if text is None else text
    rows = {}
    for column, target in enumerate(task["targets"][:3]):
        if table["known"][place, column]:
            rows[target] = _told(table, task, place, column)
    picture = "" if text is None else picture_of(text)
    return Card(title, picture, f"Structure of {title}", rows)


def _told(table: Mapping[str, Any], task: Mapping[str, Any], place: int, column: int) -> str:
    y, value = table["y"][place, column], table["values"][place, column]
    if task["kind"] == "regression":
        return f"{number(float(value))}, target {number(float(y))}"
    classes = task["classes"][column]
    probability = number(float(table["probabilities"][column][place, int(value)]), 2)
    return f"{classes[int(value)]} ({probability}), true {classes[int(y)]}"


def units_of(task: Mapping[str, Any], form: str = "{}") -> list[str]:
    units = task.get("units") or [""] * len(task["targets"])
    return [form.format(unit) if unit else "" for unit in units]
