"""What a notebook shows of splits, tables, models, trainings and predictions; texts of the data stay texts."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from lanczosnet import load_model
from lanczosnet._notebook import facts, table
from lanczosnet.experiments import Store
from lanczosnet.experiments.tables import qm8_spec
from lanczosnet.graphs import load, split
from lanczosnet.report import Table
from lanczosnet.training import Classification, FitResult, Regression
from lanczosnet.training.predict import Predictions
from report_builders import HOSTILE

ROOT = Path(__file__).resolve().parents[2]


def texts(shown: object) -> list[str]:
    """Of the HTML, which has to be well formed."""
    tree = ElementTree.fromstring(f"<div>{shown._repr_html_()}</div>")  # type: ignore[attr-defined]
    return [text for text in tree.itertext() if text.strip()]


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_stay_texts(text: str) -> None:
    for page in (table(text, [text], [[text, text]], [text]), facts(text, {text: text})):
        tree = ElementTree.fromstring(f"<div>{page}</div>")
        assert not {element.tag for element in tree.iter()} & {"script", "img", "a", "x"}
        assert text in tree.itertext()


def test_a_split_shows_its_sizes_and_its_hash() -> None:
    shown = split(load("karate"), "2-per-class", seed=3)
    assert {"Split of karate", "2-per-class", "3", "8 items", shown.hash} <= set(texts(shown))


def test_a_model_shows_what_it_is_and_its_metrics() -> None:
    model = load_model(ROOT / "pretrained" / "qm8")
    assert repr(model) == "TrainedModel(LanczosNet on qm8, MAE 0.007712 on 2,179 test items)"
    assert {"LanczosNet on qm8", "MAE", "RMSE", "0.007712", "validation"} <= set(texts(model))


def test_a_table_shows_published_numbers_below_ours() -> None:
    lines = Store(ROOT / "results" / "qm8-paper.jsonl").lines().values()
    shown = texts(Table.from_records(qm8_spec("paper").filled(lines)))
    assert {"LanczosNet", "9.44 ± 0.16", "9.58 ± 0.14 ="} <= {text.strip() for text in shown}
    assert any("ours is better" in text for text in shown)


def test_a_training_shows_its_metrics() -> None:
    metrics = {"val": {"roc_auc": 0.75}, "test": {"roc_auc": 0.5, "f1": float("nan")}}
    shown = texts(FitResult(3, 40, "all epochs done", metrics, {}))
    assert {"Best epoch 3 of 40: all epochs done", "ROC AUC", "0.75", "–"} <= set(shown)  # noqa: RUF001


def test_predictions_show_their_first_rows() -> None:
    numbers = Predictions(Regression("graph", ("a",), (0.0,), (1.0,)), torch.full((12, 1), 0.5), (), ("",) * 12)
    assert texts(numbers).count("0.5") == 10
    assert "12 in all" in texts(numbers)
    classes = Classification("node", ("kind",), (("left", "right"),))
    chosen = Predictions(classes, torch.tensor([[1]]), (torch.tensor([[0.25, 0.75]]),), ("",))
    assert {"right", "0.75"} <= set(texts(chosen))
    nothing = Predictions(Regression("graph", ("a",), (0.0,), (1.0,)), torch.zeros(0, 1), (), ())
    assert "a" in texts(nothing)
