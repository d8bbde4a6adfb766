"""Result lines are checked when they are read, and stay as they are."""

import json
from pathlib import Path

import pytest

from lanczosnet.schemas.record import FileError
from lanczosnet.schemas.result_lines import check_line
from line_builders import result_line

RESULTS = sorted((Path(__file__).resolve().parents[3] / "results").glob("*.jsonl"))
KEY = "0123456789abcdef"


def checked(line):
    return check_line(json.dumps(line).encode(), Path("results.jsonl"), 7)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_every_published_line_is_read_unchanged(path):
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        assert check_line(text, path, number) == json.loads(text)


def test_failures_and_measures_that_are_not_defined_are_read():
    checked(result_line(KEY, error="OutOfMemory"))
    checked(result_line(KEY, error="0.5 molecules", data_options={"molecules": 0.5}))
    part = {"accuracy": 0.5, "roc_auc": float("nan")}
    targets = {"a": 0.5, "b": float("nan")}
    checked(
        result_line(
            KEY, metrics=dict.fromkeys(("val", "test"), part), by_target=dict.fromkeys(("val", "test"), targets)
        )
    )


def test_a_line_that_would_take_minutes_is_refused(monkeypatch):
    monkeypatch.setenv("LANCZOSNET_MAX_JSON", "1000")
    with pytest.raises(FileError, match=r"line 7: bytes of a JSON document: .*LANCZOSNET_MAX_JSON"):
        checked(result_line(KEY, hardware="x" * 1000))


WRONG = {
    "a text": ({"seed": "1"}, "seed: expected a whole number"),
    "a text that is no Unicode": ({"epochs": "\ud800"}, r"not valid Unicode .*surrogates.*\. Delete this line"),
    "a field too many": ({"colour": 1}, "unknown field 'colour'"),
    "half a result": ({"metrics": {"val": {"mae": 0.5}}}, "metrics must have the parts val and test"),
    "no settings": ({"settings": {}}, "settings.epochs: expected a whole number"),
    "endless epochs": ({"settings": {"epochs": 10**30}}, "settings.epochs: expected a whole number"),
    "more epochs than were to be": ({"epochs": 201}, "do not fit settings.epochs"),
    "an option that is no value": ({"data_options": {"molecules": {"a": 1}}}, "data_options"),
    **{
        f"{number} molecules": ({"data_options": {"molecules": number}}, f"data_options: molecules: expected {wanted}")
        for number, wanted in ((0.5, "a whole number"), (0, "a whole number >= 1"), (True, "a whole number"))
    },
    "another key": ({"key": "../../etc"}, "key"),
    "another day": ({"finished_at": "yesterday"}, "finished_at"),
    "a newer format": ({"format": 2}, "format 2, this program reads up to 1: update lanczosnet"),
}
PARTS = {
    "a negative error": ({"mae": -0.5}, {"a": -0.5}, "metrics.val.mae is -0.5"),
    "NaN": ({"mae": float("nan")}, {"a": 0.5}, "metrics.val.mae is nan"),
    "infinity": ({"r2": float("inf")}, {"a": 0.5}, "metrics.val.r2 is inf"),
    "more than all": ({"accuracy": 1.5}, {"a": 1.5}, "metrics.val.accuracy is 1.5"),
    "another mean": ({"mae": 0.5}, {"a": 0.5, "b": 0.25}, "the mean is 0.375, but none of metrics.val"),
    "mae above rmse": ({"mae": 0.5, "rmse": 0.4}, {"a": 0.5}, "larger than the rmse"),
}
WRONG |= {
    name: ({"metrics": {"val": part, "test": part}, "by_target": {"val": targets, "test": targets}}, message)
    for name, (part, targets, message) in PARTS.items()
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_one_message_with_file_line_and_field(name):
    change, message = WRONG[name]
    with pytest.raises(FileError, match=message) as wrong:
        checked(result_line(KEY) | change)
    assert str(wrong.value).startswith("results.jsonl, line 7: ")
