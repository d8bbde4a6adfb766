"""The figures of a trained model: learning curves, predictions against targets, filters, the diffusion map."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lanczosnet._extras import require
from lanczosnet.report.blocks import Chart
from lanczosnet.report.charts import (
    axis,
    chart,
    color,
    curve_axis,
    diagonal,
    line,
    log_axis,
    middle_range,
    plain,
    points,
    thinned,
)
from lanczosnet.report.numbers import metric_name, number, shortened

MOST_CURVES = 12  # classes with a ROC curve of their own
MOST_CLASSES = 60  # of a confusion matrix with numbers and names
BINS = 10
SHARES = [-0.02, 1.02]  # of an axis
PART_NAMES = {"train": "training", "val": "validation", "test": "test", "none": "in no part"}


def learning_charts(epochs: Sequence[Mapping[str, Any]], best: int, metric: str) -> list[Chart]:
    """Losses, and the metric on the validation items, over the epochs."""
    kept = [epochs[int(i)] for i in thinned(len(epochs))]
    x = [epoch["epoch"] for epoch in kept]
    losses = [(f"{PART_NAMES[part]} loss", [epoch[f"{part}_loss"] for epoch in kept]) for part in ("train", "val")]
    name, values = metric_name(metric), [epoch.get(f"val_{metric}") for epoch in kept]
    every = log_axis("loss", [value for _, values in losses for value in values])
    return [
        _learning("Loss", x, losses, best, every),
        _learning(f"{name[0].upper()}{name[1:]}", x, [(f"validation {name}", values)], best, curve_axis(name, values)),
    ]


def _learning(
    title: str, x: Sequence[int], curves: Sequence[tuple[str, list[Any]]], best: int, y_axis: Mapping[str, Any]
) -> Chart:
    traces = [line(x, y, name, place) for place, (name, y) in enumerate(curves)]
    mark = {"type": "line", "x0": best, "x1": best, "yref": "paper", "y0": 0, "y1": 1}
    shapes = [mark | {"line": {"color": "--muted", "dash": "dot", "width": 1}}]
    said = "; ".join(f"{name} from {number(y[0])} to {number(y[-1])}" for name, y in curves)
    alt = f"{title} over {x[-1]} epochs: {said}. The dotted line marks the best epoch, {best}."
    return chart(title, alt, traces, axis("epoch"), y_axis, shapes=shapes)


def parity_chart(title: str, name: str, unit: str, parts: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Chart:
    """Predictions over targets, `{part: (targets, predictions)}`."""
    both = np.concatenate([np.concatenate(pair) for pair in parts.values()])
    traces = [diagonal(float(both.min()), float(both.max()))]
    for place, (part, pair) in enumerate(parts.items()):
        y, value = (column[thinned(len(column))] for column in pair)
        traces.append(points(y, value, PART_NAMES[part], place))
    y, value = list(parts.values())[-1]
    alt = f"Predictions of {name} over targets, {_counted(len(y))}: correlation {number(_correlation(y, value))}."
    axes = axis(f"target{unit}"), axis(f"prediction{unit}")
    return chart(title, alt, traces, *axes)


def residual_chart(title: str, name: str, unit: str, parts: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Chart:
    """Prediction less target, as histograms."""
    errors = {part: value - y for part, (y, value) in parts.items()}
    edges = np.histogram_bin_edges(np.concatenate(list(errors.values())), 40)
    traces: list[dict[str, Any]] = []
    for place, (part, error) in enumerate(errors.items()):
        shares = np.histogram(error, edges)[0] / len(error)
        style = {"marker": {"color": color(place)}, "opacity": 0.6, "hovertemplate": "%{x:.4g}: %{y:.1%}"}
        x = (edges[1:] + edges[:-1]) / 2
        traces.append({"type": "bar", "x": x, "y": shares, "name": PART_NAMES[part], **style})
    last = list(errors.values())[-1]
    spread = f"mean {number(float(last.mean()))}, deviation {number(float(last.std()))}"
    alt = f"Histogram of prediction less target of {name}, {len(last):,} items: {spread}."
    axes = axis(f"prediction less target{unit}"), axis("share of items", tickformat=".0%")
    return chart(title, alt, traces, *axes, barmode="overlay", bargap=0)


def group_means_chart(title: str, name: str, unit: str, y: np.ndarray, value: np.ndarray) -> Chart:
    """Calibration of numbers: mean targets of equal groups, ordered by their prediction."""
    groups = np.array_split(np.argsort(value, kind="stable"), min(BINS, len(y)))
    x, means = ([float(column[group].mean()) for group in groups] for column in (value, y))
    traces = [diagonal(min(x + means), max(x + means)), points(x, means, "groups", 0, mode="lines+markers")]
    worst = max(abs(a - b) for a, b in zip(x, means, strict=True))
    alt = (
        f"Mean target over mean prediction of {name} in {len(x)} equal groups. They differ by at most {number(worst)}."
    )
    axes = axis(f"mean prediction{unit}"), axis(f"mean target{unit}")
    return chart(title, alt, traces, *axes, showlegend=False)


def confusion_chart(title: str, name: str, classes: Sequence[str], y: np.ndarray, value: np.ndarray) -> Chart:
    """How often which class is taken for which, in shares of the true class."""
    size = len(classes)
    counts = np.zeros((size, size), dtype=int)
    np.add.at(counts, (y, value), 1)
    shares = counts / counts.sum(1, keepdims=True).clip(min=1)
    labels = [plain(label) for label in classes]
    trace = {"type": "heatmap", "z": shares, "text": counts, "x": labels, "y": labels, "zmin": 0, "zmax": 1}
    trace |= {"colorscale": [[0, "--surface"], [1, "--accent"]], "xgap": 1, "ygap": 1, "colorbar": {"thickness": 12}}
    trace["hovertemplate"] = "true %{y}, predicted %{x}: %{text} items, %{z:.1%}<extra></extra>"
    if size <= BINS:
        trace |= {"texttemplate": "%{text}", "textfont": {"size": 11}}
    ticks = {"type": "category"} if size <= MOST_CLASSES else {"type": "category", "showticklabels": False}
    right = int(np.trace(counts))
    alt = f"Confusion matrix of {name}: {right:,} of {len(y):,} items are on the diagonal.{_confused(classes, counts)}"
    return chart(title, alt, [trace], axis("predicted", **ticks), axis("true", autorange="reversed", **ticks))


def _confused(classes: Sequence[str], counts: np.ndarray) -> str:
    """The pair that is mistaken most."""
    wrong = counts - np.diag(np.diag(counts))
    if not wrong.any():
        return ""
    i, j = np.unravel_index(wrong.argmax(), wrong.shape)
    return f" Most often {classes[i]} is taken for {classes[j]}, {wrong[i, j]:,} times."


def curve_charts(name: str, classes: Sequence[str], y: np.ndarray, table: np.ndarray) -> list[Chart]:
    """ROC and precision-recall curves of every class against the others."""
    codes = _frequent(y, len(classes))
    if not codes:
        return [Chart("ROC curves", f"All items have the same {name}, so that there are no curves.", {})]
    count = f"{name}, {len(codes)} of {len(classes)} classes, each against the others"
    return [_roc(count, classes, codes, y, table), _precision_recall(count, classes, codes, y, table)]


def _roc(name: str, classes: Sequence[str], codes: Sequence[int], y: np.ndarray, table: np.ndarray) -> Chart:
    require("sklearn", to="to draw ROC curves")
    from sklearn.metrics import auc, roc_curve

    traces, areas = [diagonal(0, 1)], []
    for place, code in enumerate(codes):
        false, true, _ = roc_curve(y == code, table[:, code])
        areas.append(float(auc(false, true)))
        label = f"{shortened(classes[code], 30)}, area {number(areas[-1], 3)}"
        traces.append(_stepped(false, true, label, place))
    alt = f"ROC curves of {name}: mean area {number(sum(areas) / len(areas), 3)}."
    axes = axis("false positive rate", range=SHARES), axis("true positive rate", range=SHARES)
    return chart("ROC curves", alt, traces, *axes)


def _precision_recall(
    name: str, classes: Sequence[str], codes: Sequence[int], y: np.ndarray, table: np.ndarray
) -> Chart:
    from sklearn.metrics import average_precision_score, precision_recall_curve

    traces, means = [], []
    for place, code in enumerate(codes):
        precision, recall, _ = precision_recall_curve(y == code, table[:, code])
        means.append(float(average_precision_score(y == code, table[:, code])))
        traces.append(
            _stepped(recall, precision, f"{shortened(classes[code], 30)}, mean {number(means[-1], 3)}", place)
        )
    alt = f"Precision-recall curves of {name}: mean average precision {number(sum(means) / len(means), 3)}."
    return chart("Precision and recall", alt, traces, axis("recall", range=SHARES), axis("precision", range=SHARES))


def _frequent(y: np.ndarray, size: int) -> list[int]:
    """The most frequent classes that are there and do not stand alone, in their order; of two, the second."""
    counts = np.bincount(y, minlength=size)
    there = [int(code) for code in np.argsort(-counts, kind="stable") if 0 < counts[code] < len(y)]
    return [1] if len(there) == size == 2 else sorted(there[:MOST_CURVES])


def _stepped(x: np.ndarray, y: np.ndarray, name: str, place: int) -> dict[str, Any]:
    kept = thinned(len(x), 300)
    return line(x[kept], y[kept], name, place)


def reliability_chart(title: str, name: str, y: np.ndarray, table: np.ndarray) -> Chart:
    """Calibration of classes: how often the likeliest is right, over the probability that it is given."""
    confidence, right = table.max(1), table.argmax(1) == y
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    used = [i for i in range(BINS) if (place == i).any()]
    x, shares = ([float(column[place == i].mean()) for i in used] for column in (confidence, right))
    counts = [int((place == i).sum()) for i in used]
    error = sum(n * abs(a - b) for n, a, b in zip(counts, x, shares, strict=True)) / len(y)
    more = {"customdata": counts, "hovertemplate": "said %{x:.3f}, right %{y:.3f}, %{customdata} items<extra></extra>"}
    traces = [diagonal(0, 1), points(x, shares, "groups", 0, mode="lines+markers", **more)]
    alt = f"How often the likeliest class of {name} is right over its probability. Expected calibration error "
    axes = axis("probability of the likeliest class", range=SHARES), axis("share that is right", range=SHARES)
    return chart(title, f"{alt}{number(float(error), 3)}.", traces, *axes, showlegend=False)


def filter_chart(layer: Mapping[str, Any], ritz_values: np.ndarray) -> Chart:
    """f_i(r) of one layer, and the graph's Ritz values below."""
    curves = list(zip(layer["scales"], np.asarray(layer["f"]).T, strict=True))
    traces = [line(layer["r"], f, f"s = {number(scale)}", place) for place, (scale, f) in enumerate(curves)]
    if len(ritz_values):
        traces.append(_rug(ritz_values, min(0.0, min(float(f.min()) for _, f in curves))))
    ends = "; ".join(f"scale {number(scale)}: {number(float(f[-1]))} at r = 1" for scale, f in curves)
    alt = f"Filter responses of layer {layer['layer']} over Ritz values from -1 to 1. {ends}."
    return chart(f"Layer {layer['layer']}", alt, traces, axis("r", range=[-1.05, 1.05]), axis("f(r)"))


def _rug(values: np.ndarray, height: float) -> dict[str, Any]:
    kept = np.sort(values)[thinned(len(values), 400)]
    style = {"symbol": "line-ns-open", "size": 10, "color": "--text", "opacity": 0.6}
    hover = "Ritz value %{x:.4f}<extra></extra>"
    return points(kept, np.full(len(kept), height), "Ritz values", 0, marker=style, hovertemplate=hover)


def ritz_chart(values: np.ndarray, graphs: int) -> Chart:
    """The Ritz values in falling order, or as a histogram where there are many graphs."""
    low, high = (number(float(edge)) for edge in (values.min(), values.max()))
    alt = f"{len(values):,} Ritz values of {_counted(graphs, 'graph')}, from {low} to {high}."
    if graphs > 1:
        trace = {"type": "histogram", "x": values, "nbinsx": 60, "marker": {"color": color(0)}}
        return chart("Ritz values", alt, [trace], axis("Ritz value", range=[-1.05, 1.05]), axis("count"))
    falling = np.sort(values)[::-1][thinned(len(values))]
    trace = points(np.arange(1, len(falling) + 1), falling, "Ritz values", 0, showlegend=False)
    return chart("Ritz values", alt, [trace], axis("place"), axis("Ritz value", range=[-1.05, 1.05]))


def map_chart(title: str, alt: str, xy: np.ndarray, groups: Sequence[tuple[str, np.ndarray, str, str]]) -> Chart:
    """A diffusion map whose items are marked by group: name, which items, colour, symbol."""
    traces = []
    for name, is_here, shade, symbol in groups:
        if not is_here.any():
            continue
        style = {"color": shade, "size": 5, "opacity": 0.8, "symbol": symbol}
        traces.append(points(xy[is_here, 0], xy[is_here, 1], name, 0, marker=style))
    return _map(title, alt, traces, xy)


def shaded_map_chart(title: str, alt: str, xy: np.ndarray, values: np.ndarray) -> Chart:
    """The same with items coloured by a number."""
    style = {"color": values, "colorscale": "Viridis", "size": 6, "colorbar": {"thickness": 12}}
    style |= {"line": {"color": "--muted", "width": 0.5}}  # in sight on either background
    hover = "%{marker.color:.4g}<extra></extra>"
    trace = points(xy[:, 0], xy[:, 1], title, 0, marker=style, showlegend=False, hovertemplate=hover)
    return _map(title, alt, [trace], xy)


def _map(title: str, alt: str, traces: Sequence[Mapping[str, Any]], xy: np.ndarray) -> Chart:
    """With the middle of the items in sight."""
    ranges = [middle_range(column) for column in xy.T]
    is_far = np.zeros(len(xy), dtype=bool)
    for column, found in zip(xy.T, ranges, strict=True):
        is_far |= False if found is None else (column < found[0]) | (column > found[1])
    if is_far.any():
        alt += f" {int(is_far.sum()):,} points lie outside the axes; a double click shows them."
    axes = (
        axis(f"{place} coordinate", **({"range": r} if r else {}))
        for place, r in zip(("first", "second"), ranges, strict=True)
    )
    return chart(title, alt, traces, *axes)


def _correlation(y: np.ndarray, value: np.ndarray) -> float | None:
    return float(np.corrcoef(y, value)[0, 1]) if len(y) > 1 and y.std() > 0 and value.std() > 0 else None


def _counted(count: int, what: str = "item") -> str:
    shown = f", {thinned(count).size:,} of them shown" if count > len(thinned(count)) else ""
    return f"{count:,} {what}{'' if count == 1 else 's'}{shown}"
