"""A report is one file: it fetches nothing, runs nothing of the data, and says what is missing."""

import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import plotly.graph_objects
import pytest

from lanczosnet.report import page as pages
from lanczosnet.report.blocks import Charts, Section
from lanczosnet.report.charts import thinned
from lanczosnet.report.model_report import model_sections, model_title
from lanczosnet.report.numbers import number, shown, with_deviation
from lanczosnet.report.page import as_json, render_page, write_page
from lanczosnet.report.table import Table
from lanczosnet.report.table_report import ShownTable, table_sections
from report_builders import HOSTILE, classification, regression


class Elements(HTMLParser):
    """Every element with its attributes, and the texts of the scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append((dict(attributes), ""))

    def handle_data(self, data):
        if self.found and self.found[-1][0] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data
        else:
            self.texts.append(data)


def page_of(found) -> str:
    return render_page(*model_title(found), model_sections(found))


def hostile_pages() -> list[str]:
    texts = "".join(HOSTILE)
    smiles = [HOSTILE[i % len(HOSTILE)] for i in range(60)]
    return [
        page_of(regression(HOSTILE, smiles=smiles, text=texts)),
        page_of(classification(HOSTILE, target=texts, text=texts)),
        page_of(regression(text=texts, problems={"epochs": texts}) | {"command": texts}),
        render_page(texts, texts, table_sections([table(HOSTILE)])),
    ]


def table(names=("row", "other")) -> ShownTable:
    reference = {"name": names[1], "mean": 2.0, "deviation": 0.5, "runs": 10}
    cells = [
        {
            "row": [name, "second"],
            "column": column,
            "values": [1.0, 2.0 + i, 3.0],
            "failed": i,
            "references": [reference],
        }
        for i, name in enumerate(names)
        for column in ("left", names[0])
    ]
    data = {"title": names[0], "heads": ["network", names[0]], "digits": 2, "higher_is_better": True, "cells": cells}
    filled = Table.from_records(data | {"notes": [names[0]], "runs": 6, "failed": 1, "seconds": 5.0})
    lines = [
        {"model": name, "label": "", "curves": {"val_mae": [0.5, 0.25], "train_loss": [2.0, 1.0]}}
        for name in names
        for _ in range(2)
    ]
    curves = {(name, ""): name for name in names}
    return ShownTable(filled, names[0], lines, curves, {(name, "second"): name for name in names})


@pytest.fixture(scope="module")
def hostile() -> list[str]:
    return hostile_pages()


def test_a_page_fetches_nothing(hostile):
    for page in hostile:
        for tag, attributes in Elements(page).found:
            for name in ("src", "href", "action", "data", "poster", "srcset", "xlink:href"):
                target = attributes.get(name) or "#"
                assert target.startswith(("#", "data:")), (tag, target)
            assert tag not in ("iframe", "object", "embed", "base", "form")
        style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
        assert style is not None
        assert "url(" not in style[1]
        assert "@import" not in style[1]
    program = "".join(text for attributes, text in Elements(hostile[0]).scripts if "type" not in attributes)
    assert not re.search(r"https?:|\bfetch\(|XMLHttpRequest|WebSocket|import\(|sendBeacon|\beval\(", program)


def test_its_policy_forbids_the_rest(hostile):
    metas = [attributes for tag, attributes in Elements(hostile[0]).found if tag == "meta"]
    policy = next(meta["content"] for meta in metas if meta.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == "'unsafe-inline'"
    assert rules["img-src"] == "data:"


def test_texts_of_the_data_stay_texts(hostile):
    for page in hostile:
        elements = Elements(page)
        programs = [attributes for attributes, _ in elements.scripts if attributes.get("type") is None]
        assert len(programs) == 1
        assert all(not name.startswith("on") for _, attributes in elements.found for name in attributes)
        assert all((attributes.get("href") or "#")[0] in "#d" for _, attributes in elements.found)
        assert "1337" not in "".join(elements.texts)  # no template within a template
    assert any(HOSTILE[0] in text for text in Elements(hostile[1]).texts)  # and are shown


def test_texts_in_figures_carry_no_tags(hostile):
    """plotly.js reads tags in texts, so that none may be left there; it decodes entities."""
    for page in hostile:
        specs = [
            json.loads(text) for attributes, text in Elements(page).scripts if "json" in (attributes.get("type") or "")
        ]
        assert specs
        for spec in specs:
            drawn = [trace.get("name", "") for trace in spec["data"]]
            drawn += [spec["layout"][axis]["title"]["text"] for axis in ("xaxis", "yaxis")]
            drawn += [text for trace in spec["data"] for text in _texts(trace.get("x")) + _texts(trace.get("y"))]
            assert not any("<" in text for text in drawn)


def _texts(values) -> list[str]:
    return [value for value in values or [] if isinstance(value, str)]


def test_the_figures_are_what_plotly_reads():
    sections = [
        *model_sections(regression()),
        *model_sections(classification()),
        *model_sections(classification(("no", "yes"))),
        *table_sections([table()]),
    ]
    charts = [chart for block in _blocks(sections, Charts) for held in block.sets.values() for chart in held]
    assert len(charts) > 20
    for chart in charts:
        spec = re.sub(r'"--\w+"', '"#123456"', str(as_json(chart.spec)))
        plotly.graph_objects.Figure(json.loads(spec))  # an unknown property is an error
        assert len(chart.alt) > 20


def _blocks(sections, kind):
    return [block for section in sections for block in section.blocks if isinstance(block, kind)]


def test_every_section_is_there_and_says_what_it_lacks():
    assert [section.problem for section in model_sections(regression())] == [""] * 10
    found = regression(problems={"predictions": "the data has changed", "epochs": "there is no metrics.jsonl"})
    del found["predictions"], found["epochs"], found["ritz_values"]
    problems = {section.title: section.problem for section in model_sections(found)}
    assert problems["Predictions"] == problems["Calibration"] == "the data has changed"
    assert problems["Learning curves"] == "there is no metrics.jsonl"
    assert problems["Learned filters"] == ""  # the curves need no graph
    assert "the data has changed" in page_of(found)


def test_the_page_says_which_split_how_features_are_scaled_and_what_num_steps_auto_found():
    found = classification()
    found["config"]["split"] |= {"kind": "public", "number": 3, "fraction": None}
    found["config"]["data"]["scaling"] = {"kind": "row"}
    found["config"]["training"]["found_steps"] = {"num_steps": 40, "scale": 30, "captured": 0.998, "reason": "budget"}
    page = page_of(found)
    assert "public, number 3: 9 training" in page
    assert "rows sum to one" in page
    assert "40, found by num_steps=auto; they capture 99.8 % of S^30 X" in page


def test_a_broken_section_does_not_break_the_page():
    found = regression(filters=[{"layer": 1}])
    problems = {section.title: section.problem for section in model_sections(found)}
    assert problems["Learned filters"]
    assert sum(map(bool, problems.values())) == 1


def test_items_without_targets_or_of_one_class_are_no_error():
    found = classification()
    found["predictions"]["y"][:] = 0
    found["predictions"]["known"][40:] = False
    assert not any(section.problem for section in model_sections(found))
    found["predictions"]["known"][:] = False
    problems = {section.title: section.problem for section in model_sections(found)}
    assert problems["Predictions"] == "no item outside the training part has a target"


def test_many_points_are_thinned_and_the_page_says_so():
    sections = model_sections(regression(count=9000))
    charts = next(block for block in _blocks(sections, Charts) if "a" in block.sets)
    parity = charts.sets["a"][0]
    assert max(len(trace["x"]) for trace in parity.spec["data"]) == 2000
    assert "6,000 items, 2,000 of them shown" in parity.alt
    assert thinned(10, 4).tolist() == [0, 3, 6, 9]


def test_a_table_shows_published_numbers_with_marks_and_sorts_by_ours():
    page = render_page("Results", "", table_sections([table()]))
    assert 'data-sort="2.0"' in page
    assert "other 2.00 ± 0.50" in page
    assert 'aria-label="within"' in page
    assert "1 failed" in page
    elements = Elements(page).found
    assert sum(tag == "caption" for tag, _ in elements) == sum(tag == "table" for tag, _ in elements) == 1
    assert {attributes.get("data-trace") for tag, attributes in elements if tag == "tr"} == {None, "row", "other"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.1235"),
        (12345, "12,345"),
        (123456.7, "123,457"),
        (1e-7, "1e-07"),
        (math.nan, "–"),  # noqa: RUF001
        (None, "–"),  # noqa: RUF001
        (math.inf, "∞"),
        (-0.5, "-0.5"),
    ],
)
def test_numbers_are_written_for_people(value, text):
    assert number(value) == text


def test_other_values_are_written_for_people():
    assert shown([1, 2.5, None]) == "1, 2.5, none"
    assert shown(True) == "yes"
    assert with_deviation(81.25, None, 1) == "81.2"
    assert with_deviation(81.25, 0.5, 1) == "81.2 ± 0.5"


def test_json_for_a_script_element_is_safe_and_finite():
    text = as_json({"a": np.array([1.0, np.nan, np.inf]), "b": "</script>&'", "c": np.float32(0.1234567891)})
    assert not re.search("[<>&']", text)
    assert json.loads(text) == {"a": [1.0, None, None], "b": "</script>&'", "c": 0.123457}


def test_plotly_is_in_the_page_once_and_only_with_figures(tmp_path):
    write_page(tmp_path / "page.html", "t", "s", [Section("empty")])
    assert (tmp_path / "page.html").stat().st_size < 30_000
    page = page_of(regression())
    assert page.count(pages._plotly()) == 1
    assert len(page.encode()) < 2_200_000


def test_the_colours_have_contrast():
    """4.5 for texts and 3 for figures, as WCAG asks, in light and in dark."""
    style = (pages.files("lanczosnet.report") / "templates" / "page.css").read_text(encoding="utf-8")
    themes = [
        dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    ]
    assert len(themes) == 2
    for theme in themes:
        for name, color in theme.items():
            if name in ("surface", "raised", "line", "grid"):
                continue
            least = 3.0 if re.fullmatch(r"c\d", name) else 4.5
            assert _contrast(color, theme["surface"]) >= least, (name, color)


def _contrast(one: str, other: str) -> float:
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    shares = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
