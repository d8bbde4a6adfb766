"""Sections -> one HTML file that needs nothing else: no network, no other file.

Jinja2 escapes all texts. The data of the figures are JSON without a `<`. plotly.js is stored compressed, so that a page
has 2 MB in place of 5 MB; the browser unpacks it.
"""

import base64
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from lanczosnet._extras import require
from lanczosnet.files import atomic_write
from lanczosnet.report.blocks import Section

DIGITS = 6  # of the numbers of a figure
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def write_page(path: Path, title: str, subtitle: str, sections: Sequence[Section]) -> None:
    """Write the page; it appears whole."""
    require("plotly", to="to write a page")
    with atomic_write(path) as temporary:
        temporary.write_text(render_page(title, subtitle, sections), encoding="utf-8")


def render_page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The page as text; plotly.js is in it where there are figures."""
    has_charts = any(block.kind == "charts" for section in sections for block in section.blocks)
    page = _templates().get_template("page.html.j2")
    plotly = _plotly() if has_charts else ""
    return page.render(title=title, subtitle=subtitle, sections=sections, policy=POLICY, plotly=plotly)


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lanczosnet.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["as_json"] = as_json
    environment.globals["included"] = _included
    return environment


def _included(name: str) -> Markup:
    """A file of this package as it is: style and script."""
    return Markup(files("lanczosnet.report").joinpath("templates", name).read_text(encoding="utf-8"))


def as_json(value: Any) -> Markup:
    """JSON that may stand in a script element: `<`, `>`, `&` and quotes in texts are written as numbers."""
    text = json.dumps(_plain(value), allow_nan=False, separators=(",", ":"))
    for sign in "<>&'":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _plain(value: Any) -> Any:
    """Lists in place of arrays, null in place of what is not finite, numbers of few digits."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


@cache
def _plotly() -> str:
    """The package's plotly.js, compressed, as base64."""
    script = files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    return base64.b64encode(zlib.compress(script, 9)).decode()
