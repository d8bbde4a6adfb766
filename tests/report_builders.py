"""Plain data of trained models, as `lanczosnet.training.report_data` collects them, with texts of one's choice."""

from typing import Any

import numpy as np

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    '<a href="javascript:window.hacked = 1">x</a>',
    "'; window.hacked = 1; '",
    "{{ 7 * 191 }}%{x}${window.hacked = 1}",
    "$\\href{javascript:window.hacked = 1}{x}$\u2028<!--",
)


def found_of(task: dict[str, Any], values: dict[str, Any], *, text: str = "plain", **more: Any) -> dict[str, Any]:
    """What the report of a model with this task and these predictions is made from."""
    metric = "mae" if task["kind"] == "regression" else "accuracy"
    metrics = {part: {metric: 0.5} for part in ("val", "test")}
    by_target = {part: dict.fromkeys(task["targets"], 0.5) for part in ("val", "test")}
    result = {"best_epoch": 2, "epochs": 3, "stopped": text, "metrics": metrics, "by_target": by_target}
    config = {
        "architecture": {"name": "lanczosnet", "options": {"hidden_channels": 8, text: text}},
        "task": task,
        "data": {"source": text, "name": text, "options": {}, "targets": "0" * 16},
        "split": {"kind": text, "fraction": 0.8, "seed": 0, "hash": "0" * 16, "train": 9, "val": 20, "test": 40},
        "training": {"recipe": "modern", "settings": {"epochs": 3}, "seed": 0},
        "result": result,
        "versions": {"torch": "2"},
        "weights": "0" * 64,
    }
    epochs = [
        {"epoch": e, "train_loss": 1.0 / e, "val_loss": 1.1 / e, f"val_{metric}": 0.5, "is_best": e == 2}
        for e in (1, 2, 3)
    ]
    r = np.linspace(-1, 1, 21)
    found = {
        "name": text,
        "network": "LanczosNet",
        "config": config,
        "parameters": 1234567,
        "command": f"lanczosnet train '{text}'",
        "epochs": epochs,
        "data": {"graphs": 69},
        "predictions": values,
        "filters": [{"layer": 1, "r": r, "scales": [10.0, float("inf")], "f": np.stack([r**10, np.abs(r) >= 1], 1)}],
        "ritz_values": {"values": np.array([1.0, 0.5, -0.25]), "graphs": 1, "is_learned": False},
        "map": {"rows": np.arange(20, 60), "coordinates": r[:20].repeat(4).reshape(40, 2), "total": 40},
        "problems": {},
    }
    return found | more


def regression(targets: tuple[str, ...] = ("a", "b"), *, count: int = 60, **options: Any) -> dict[str, Any]:
    """A model of numbers; the first target of the first item is unknown."""
    generator = np.random.default_rng(0)
    y = generator.standard_normal((count, len(targets)))
    known = np.ones_like(y, dtype=bool)
    known[0, 0], y[0, 0] = False, np.nan
    task = {"kind": "regression", "level": "graph", "targets": list(targets), "deviation": [1.0] * len(targets)}
    task |= {"units": [f"u {target}" for target in targets], "mean": [0.0] * len(targets)}
    values = _table(y, known, y + 0.1 * generator.standard_normal(y.shape), [])
    values["values"][0, 0] = 0.0
    return found_of(task, values | {"smiles": options.pop("smiles", None)}, **options)


def classification(classes: tuple[str, ...] = ("x", "y", "z"), *, target: str = "a", **options: Any) -> dict[str, Any]:
    """A model of classes of the nodes of one graph."""
    generator = np.random.default_rng(0)
    y = np.arange(60).reshape(-1, 1) % len(classes)
    table = generator.random((60, len(classes))) + 1.5 * (y == np.arange(len(classes)))
    table /= table.sum(1, keepdims=True)
    task = {"kind": "classification", "level": "node", "targets": [target], "classes": [list(classes)]}
    values = _table(y.astype(float), np.ones_like(y, dtype=bool), table.argmax(1)[:, None].astype(float), [table])
    mapped = {"rows": np.arange(50), "coordinates": generator.random((50, 2)), "total": 60}
    return found_of(task, values | {"smiles": None}, map=mapped, **options)


def _table(y: np.ndarray, known: np.ndarray, values: np.ndarray, probabilities: list[np.ndarray]) -> dict[str, Any]:
    part = np.repeat(["val", "test"], [len(y) // 3, len(y) - len(y) // 3]).astype(object)
    total = {"train": 9, "val": int((part == "val").sum()), "test": int((part == "test").sum())}
    return {
        "items": np.arange(len(y)),
        "part": part,
        "y": y,
        "known": known,
        "values": values,
        "probabilities": probabilities,
        "total": total,
    }
