"""Result lines with every field that the schema wants."""

from typing import Any


def result_line(key: str, **more: Any) -> dict[str, Any]:
    """Of a made-up run; one with an `error` has no result."""
    facts = {
        "key": key,
        "table": "t",
        "cell": "0" * 16,
        "dataset": "d",
        "data_options": {},
        "split": "uniform",
        "fraction": 0.1,
        "model": "m",
        "label": "",
        "options": {},
        "recipe": "paper",
        "settings": {"epochs": 200},
        "precision": "32-true",
        "split_hash": "0" * 16,
        "split_seed": 0,
        "seed": 0,
        "seconds": 1.0,
        "hardware": "a computer",
        "versions": {"torch": "2"},
        "commit": None,
        "finished_at": "2020-01-01",
    }
    return facts | ({} if "error" in more else RESULT) | more


RESULT = {
    "metrics": {"val": {"mae": 0.5, "rmse": 0.75}, "test": {"mae": 0.25, "rmse": 0.5}},
    "by_target": {"val": {"a": 0.25, "b": 0.75}, "test": {"a": 0.25, "b": 0.25}},
    "best_epoch": 1,
    "epochs": 2,
    "stopped": "all epochs done",
}
