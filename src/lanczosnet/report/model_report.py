"""A trained model as sections of a page, from the plain data that `lanczosnet.training.report_data` collects."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lanczosnet.report.blocks import (
    Block,
    Charts,
    Code,
    DataTable,
    Facts,
    Paragraph,
    Section,
    TableCell,
)
from lanczosnet.report.model_charts import (
    PART_NAMES,
    filter_chart,
    learning_charts,
    ritz_chart,
)
from lanczosnet.report.numbers import metric_name, number, shortened, shown
from lanczosnet.report.predictions import (
    calibration_blocks,
    extreme_blocks,
    map_blocks,
    prediction_blocks,
    units_of,
)

Found = Mapping[str, Any]
SCALED = {"row": "rows sum to one", "standardise": "columns have mean 0 and deviation 1 in training"}


def model_sections(found: Found) -> list[Section]:
    """All sections in their order; one that cannot be made says why."""
    makers: list[tuple[str, Callable[[Found], Sequence[Block]], tuple[str, ...]]] = [
        ("What was trained", _overview, ()),
        ("Metrics", _metrics, ()),
        ("Learning curves", _learning, ("epochs",)),
        ("Predictions", prediction_blocks, ("predictions",)),
        ("Calibration", calibration_blocks, ("predictions",)),
        ("Ritz values", _ritz, ("ritz_values",)),
        ("Learned filters", _filters, ("filters",)),
        ("Diffusion map", map_blocks, ("map", "predictions")),
        ("Best and worst predictions", extreme_blocks, ("predictions",)),
        ("Reproduce", _reproduce, ()),
    ]
    return [_section(found, *maker) for maker in makers]


def model_title(found: Found) -> tuple[str, str]:
    """Of the page, and a line below it."""
    config = found["config"]
    title = f"{found['network']} on {config['data']['name']}"
    name = _metric(config)
    said = f"{metric_name(name)} {number(config['result']['metrics']['test'][name])}"
    return title, f"{found['name']}: {said} on the test part of the split."


def _section(found: Found, title: str, make: Callable[[Found], Sequence[Block]], needs: tuple[str, ...]) -> Section:
    missing = [found["problems"].get(name, "there is no such data") for name in needs if name not in found]
    if missing:
        return Section(title, problem=missing[0])
    try:
        return Section(title, make(found))
    except Exception as error:  # a page without one section is better than none
        return Section(title, problem=str(error) or type(error).__name__)


def _overview(found: Found) -> list[Block]:
    config = found["config"]
    about, parts, training = config["data"], config["split"], config["training"]
    task, result = config["task"], config["result"]
    scaling, pairs = about.get("scaling"), training.get("found_steps")
    rows = {
        "Network": f"{found['network']}, {number(found['parameters'])} parameters",
        "Data": ", ".join([about["source"], *(f"{number(n)} {what}" for what, n in found.get("data", {}).items())]),
        "Task": f"{task['kind']} of {_listed(task['targets'])}, one prediction per {task['level']}",
        "Split": _split(parts),
        "Training": f"recipe {training['recipe']}, seed {training['seed']}, {number(result['epochs'])} epochs, "
        f"best epoch {number(result['best_epoch'])} ({result['stopped']})",
    }
    rows |= {"Features": SCALED[scaling["kind"]]} if scaling else {}
    rows |= {"Ritz pairs": _found_pairs(pairs)} if pairs else {}
    return [Facts(rows)]


def _split(parts: Mapping[str, Any]) -> str:
    sizes = ", ".join(f"{number(parts[part])} {PART_NAMES[part]}" for part in ("train", "val", "test"))
    fraction = "" if parts["fraction"] is None else f" of fraction {number(parts['fraction'])}"
    place = "" if parts.get("number") is None else f", number {parts['number']}"
    seed = "" if parts["kind"] == "public" else f", seed {shown(parts['seed'])}"
    return f"{parts.get('file') or parts['kind']}{fraction}{place}{seed}: {sizes}"


def _found_pairs(pairs: Mapping[str, Any]) -> str:
    """What `num_steps=auto` chose."""
    share = number(100 * pairs["captured"])
    return f"{number(pairs['num_steps'])}, found by num_steps=auto; they capture {share} % of S^{pairs['scale']} X"


def _options(caption: str, options: Mapping[str, Any]) -> DataTable:
    rows = [(TableCell(key, is_name=True), TableCell(shortened(shown(value)))) for key, value in options.items()]
    return DataTable(caption, ("option", "value"), rows)


def _metrics(found: Found) -> list[Block]:
    config = found["config"]
    result, parts = config["result"], config["split"]
    names = list(dict.fromkeys(name for values in result["metrics"].values() for name in values))
    rows = []
    for part, values in result["metrics"].items():
        cells = [_value(values.get(name)) for name in names]
        rows.append([TableCell(PART_NAMES[part], is_name=True), _value(parts[part]), *cells])
    caption = f"Metrics with the weights of the best epoch; split {parts['kind']}, hash {parts['hash']}"
    blocks: list[Block] = [DataTable(caption, ("part", "items", *map(metric_name, names)), rows)]
    if len(config["task"]["targets"]) > 1:
        blocks.append(_by_target(config))
        blocks += _other_metrics(config)
    return blocks


def _by_target(config: Mapping[str, Any]) -> DataTable:
    parts = config["result"]["by_target"]
    rows = []
    for target, unit in zip(config["task"]["targets"], units_of(config["task"], " ({})"), strict=True):
        cells = [_value(values[target]) for values in parts.values()]
        rows.append([TableCell(f"{target}{unit}", is_name=True), *cells])
    return DataTable(
        f"{metric_name(_metric(config))} of every target", ("target", *(PART_NAMES[part] for part in parts)), rows
    )


def _other_metrics(config: Mapping[str, Any]) -> list[Block]:
    """All metrics of every target on the test items; models of earlier versions do not have them."""
    held = config["result"].get("metrics_by_target", {}).get("test", {})
    if not held:
        return []
    names = list(dict.fromkeys(name for values in held.values() for name in values if name != _metric(config)))
    rows = [[TableCell(target, is_name=True), *(_value(held[target].get(name)) for name in names)] for target in held]
    return [DataTable("Other metrics of every target, test", ("target", *map(metric_name, names)), rows)]


def _learning(found: Found) -> list[Block]:
    if not found["epochs"]:
        raise ValueError("no epoch was trained")
    best = found["config"]["result"]["best_epoch"]
    return [Charts({"": learning_charts(found["epochs"], best, _metric(found["config"]))})]


def _ritz(found: Found) -> list[Block]:
    ritz = found["ritz_values"]
    of = "the learned affinity" if ritz["is_learned"] else "S = D^-1/2 (A + I) D^-1/2"
    graphs = "the graph" if ritz["graphs"] == 1 else f"{ritz['graphs']:,} test graphs"
    return [
        Paragraph(f"Ritz values of {of}, for {graphs}. They approximate its eigenvalues, those near -1 and 1 best."),
        Charts({"": [ritz_chart(ritz["values"], ritz["graphs"])]}),
    ]


def _filters(found: Found) -> list[Block]:
    if not found["filters"]:
        return [
            Paragraph(
                f"{found['network']} has no spectral filters. LanczosNet and AdaLanczosNet with long scales have."
            )
        ]
    values = found.get("ritz_values", {}).get("values", np.empty(0))
    text = "What each layer makes of a Ritz value r: f(r) for every long scale s. The strokes mark the Ritz values."
    return [Paragraph(text), Charts({"": [filter_chart(layer, values) for layer in found["filters"]]})]


def _reproduce(found: Found) -> list[Block]:
    config = found["config"]
    versions = ", ".join(f"{name} {version}" for name, version in config["versions"].items())
    hashes = {"split": config["split"]["hash"], "targets": config["data"]["targets"], "weights": config["weights"]}
    return [
        Code(found.get("command", "")),
        Facts({"Versions": versions} | {f"Hash of {name}": digest for name, digest in hashes.items()}),
        _options("Options of the network", config["architecture"]["options"]),
        _options("Settings of the recipe", config["training"]["settings"]),
    ]


def _metric(config: Mapping[str, Any]) -> str:
    """That epochs were chosen by; models of earlier versions do not name it."""
    return config["task"].get("metric") or ("mae" if config["task"]["kind"] == "regression" else "accuracy")


def _value(value: Any) -> TableCell:
    return TableCell(number(value), "" if value is None or value != value else value)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(shortened(name) for name in names[:5]) + more
