"""The pages in a real browser: they draw, sort, answer the pointer and the keyboard, log no error and fetch nothing."""

import os
import re

import pytest

from browser import Browser, browser, chromium, find_chromium, why_missing
from lanczosnet.cli.report import write_tables_page
from lanczosnet.report.model_report import model_sections, model_title
from lanczosnet.report.page import write_page
from report_builders import HOSTILE, classification, regression

pytestmark = pytest.mark.slow
LINES = "results/qm8-paper.jsonl"


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    chromium()
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def window_on(window: Browser, tmp_path):
    """A page of a model, opened at a width; at the end nothing was complained of and nothing fetched."""

    def opened(found, width: int = 1280, *, dark: bool = False) -> Browser:
        write_page(tmp_path / "page.html", *model_title(found), model_sections(found))
        window.show(width, dark=dark)
        window.open(tmp_path / "page.html")
        return window

    window.events.clear()
    yield opened
    assert window.complaints() == []
    assert window.fetched() == []


@pytest.fixture
def tables(window: Browser, tmp_path, request):
    """The page of the table QM8."""
    window.events.clear()
    window.show(1280)
    window.open(write_tables_page([request.config.rootpath / LINES], tmp_path / "page.html"))
    yield window
    assert window.complaints() == []
    assert window.fetched() == []


@pytest.mark.skipif(os.environ.get("CI") != "true", reason="asked of continuous integration alone")
def test_continuous_integration_has_a_browser():
    assert find_chromium() or "cannot be reached" in why_missing(), why_missing()


def choose(page: Browser, place: int) -> None:
    page.value(
        f"(s => {{ s.value = {place}; s.dispatchEvent(new Event('change')) }})(document.querySelector('select'))"
    )


@pytest.mark.parametrize("make", [regression, classification])
def test_every_figure_is_drawn(window_on, make):
    page = window_on(make())
    charts = "[...document.querySelectorAll('.charts:not([hidden]) .chart')]"
    drawn = "chart.querySelector('.scatterlayer path, .barlayer path, .heatmaplayer image')"
    assert page.value(f"{charts}.length") > 4
    assert page.value(f"{charts}.every(chart => {drawn} !== null)")
    assert page.value(f"{charts}.every(chart => chart.ariaLabel.length > 20)")


@pytest.mark.parametrize("make", [regression, classification])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_does_not_scroll_sideways(window_on, make, width):
    page = window_on(make(text="a text without a space".replace(" ", "_") * 8), width)
    assert page.value("document.documentElement.scrollWidth <= window.innerWidth")


def test_hostile_texts_run_nothing_and_are_shown(window_on):
    smiles = [HOSTILE[i % len(HOSTILE)] for i in range(60)]
    for found in (
        regression(HOSTILE, smiles=smiles, text="".join(HOSTILE)),
        classification(HOSTILE, target="".join(HOSTILE), text="".join(HOSTILE)),
    ):
        page = window_on(found)
        assert page.value("typeof window.hacked") == "undefined"
        assert page.value("document.querySelectorAll('.chart a, .chart img, main a').length") == 0
        for place in range(page.value("document.querySelectorAll('select option').length")):
            choose(page, place + 1)
        page.hover("document.querySelector('.chart .heatmaplayer image, .chart .points path')")
        assert page.value("typeof window.hacked") == "undefined"
    shown = page.value("[...document.querySelectorAll('.chart .legendtext')].map(text => text.textContent)")
    assert any(text.startswith("</script><script>") for text in shown)


def test_a_point_says_its_numbers_under_the_pointer(window_on):
    page = window_on(regression())
    page.hover("document.querySelector('.chart .scatterlayer .points path')")
    page.wait_for("document.querySelectorAll('.hoverlayer .hovertext').length > 0")


def test_a_curve_of_a_table_says_its_mean_and_its_range(tables):
    tables.value(
        "(chart => Plotly.Fx.hover(chart, [{curveNumber: 0, pointNumber: 40}]))"
        "(document.querySelector('[data-name] .charts:not([hidden]) .chart'))"
    )
    tables.wait_for("document.querySelectorAll('.hoverlayer .hovertext').length > 0")
    said = tables.value("document.querySelector('.hoverlayer .hovertext').textContent")
    assert re.search(r"epoch 4\d: [\d.]+, [\d.]+ to [\d.]+, 3 seeds", said), said


def test_another_target_is_drawn_when_it_is_chosen(window_on):
    page = window_on(regression())
    drawn = "document.querySelectorAll('.charts:not([hidden])[data-place=\"2\"] .chart .main-svg').length"
    assert page.value(drawn) == 0
    choose(page, 2)
    page.wait_for(f"{drawn} > 0")


def test_figures_follow_the_colour_scheme(window_on):
    page = window_on(classification())
    color = "getComputedStyle(document.querySelector('.chart .xtick text')).fill"
    light = page.value(color)
    page.show(1280, dark=True)
    page.wait_for(f"{color} !== '{light}'")
    assert page.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    page.show(1280)
    page.wait_for(f"{color} === '{light}'")


def test_a_table_is_sorted_with_the_keyboard(tables):
    column = "[...document.querySelectorAll('tbody tr')].map(row => Number(row.children[1].dataset.sort))"
    header = "document.querySelectorAll('thead th')[1]"
    tables.value(f"{header}.querySelector('button').focus()")
    tables.press("Enter")
    values = tables.value(column)
    assert len(values) > 5
    assert values == sorted(values)
    assert tables.value(f"{header}.ariaSort") == "ascending"
    assert "ascending" in tables.value("document.getElementById('status').textContent")
    tables.press("Enter")
    assert tables.value(column) == sorted(values, reverse=True)


def test_the_keyboard_reaches_what_can_be_used(tables):
    tables.value("document.activeElement.blur()")
    tables.press("Tab")
    assert tables.value("document.activeElement.className") == "skip"
    assert {"A", "BUTTON", "SELECT", "DIVscroll", "TR"} <= reached_by_tab(tables)


def test_the_keyboard_reaches_what_can_be_used_of_a_model(window_on):
    assert {"A", "BUTTON", "SELECT", "DIVscroll"} <= reached_by_tab(window_on(regression()))


def reached_by_tab(page: Browser) -> set[str]:
    reached = set()
    for _ in range(40):
        page.press("Tab")
        reached.add(page.value("document.activeElement.tagName + document.activeElement.className"))
    return reached


def test_a_row_under_the_pointer_or_with_the_focus_shows_its_curve(tables):
    traces = "document.querySelector('[data-name] .charts:not([hidden]) .chart').data"
    shown = f"{traces}.filter(trace => trace.opacity !== 0.15).map(trace => trace.name)"
    every = tables.value(shown)
    tables.value("document.querySelector('tbody tr').focus()")
    name = tables.value("document.querySelector('tbody tr').dataset.trace")
    tables.wait_for(f"({shown}).length === 1")
    assert tables.value(shown) == [name]
    tables.value("document.activeElement.blur()")
    tables.wait_for(f"({shown}).length === {len(every)}")
