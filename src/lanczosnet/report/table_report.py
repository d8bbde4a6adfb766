"""The paper's tables as sections of a page: ours beside the published numbers, differences, learning curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lanczosnet.report.blocks import Block, Chart, Charts, DataTable, Listing, Paragraph, Section, TableCell
from lanczosnet.report.charts import axis, chart, line, log_axis, plain, points, thinned
from lanczosnet.report.claims import CLAIM_HEADS, claim_row, claims_count, claims_head
from lanczosnet.report.curves import PANELS, Line, by_cell, by_epoch, panels_of
from lanczosnet.report.measurement import Comparison, Measurement
from lanczosnet.report.numbers import number, with_deviation
from lanczosnet.report.table import Table

Row = tuple[str, ...]
FEW_COLUMNS = 3


@dataclass(frozen=True)
class ShownTable:
    """A table, where its lines are from and, where they have learning curves, what these are called."""

    table: Table
    source: str
    lines: Sequence[Line] = ()  # with curves
    names: Mapping[tuple[str, str], str] = field(default_factory=dict)  # of the cells, by network and label
    traces: Mapping[Row, str] = field(default_factory=dict)  # of the rows, the names of their curves


def table_sections(tables: Sequence[ShownTable]) -> list[Section]:
    """One section for each table."""
    return [_section(shown, f"curves-{place}") for place, shown in enumerate(tables)]


def _section(shown: ShownTable, name: str) -> Section:
    table = shown.table
    curves = _curves(shown) if shown.lines else []
    blocks: list[Block] = [Paragraph(f"From {shown.source}."), _data_table(shown, name if curves else "")]
    blocks += [Listing(table.legend()), Listing(table.summary())]
    blocks += [_claims_table(table)] if table.claims else []
    blocks.append(Charts({each.title: [each] for each in _comparisons(table)}, "Ours beside the numbers of others"))
    blocks += [Charts({each.title: [each] for each in curves}, "Learning curves", name)] if curves else []
    return Section(f"{table.title} ({shown.source})", blocks)


def _claims_table(table: Table) -> DataTable:
    """What the paper concludes, and whether ours decides it; a verdict sorts by its word."""
    rows = [
        [TableCell(text, is_name=place == 0) for place, text in enumerate(claim_row(claim, table.digits))]
        for claim in table.claims
    ]
    return DataTable(f"{claims_head(table.claims)[:-1]}; {claims_count(table.claims)}.", CLAIM_HEADS, rows)


def _data_table(shown: ShownTable, chart_name: str) -> DataTable:
    table = shown.table
    better = f"; {table.direction} is better" if table.direction else ""
    caption = f"{table.title}{better}. Ours first, below it the numbers that it is compared with."
    caption += " A row with the pointer or the focus shows its learning curve." if chart_name else ""
    rows = [
        [*(TableCell(text, is_name=place == 0) for place, text in enumerate(row)), *_cells(table, row)]
        for row in table.rows
    ]
    traces = [shown.traces.get(row, "") for row in table.rows] if chart_name else ()
    return DataTable(caption, [*table.heads, *table.columns], rows, traces, chart_name)


def _cells(table: Table, row: Row) -> list[TableCell]:
    return [_cell(table, row, column) for column in table.columns]


def _cell(table: Table, row: Row, column: str) -> TableCell:
    cell = table.cells.get((row, column), Measurement(()))
    ours = with_deviation(cell.mean, cell.deviation, table.digits)
    failed = f", {cell.failed} failed" if cell.failed else ""
    below = [
        (f"{found.name} {_theirs(found, table.digits)}", found.mark if cell.values else "")
        for found in table.comparisons.get((row, column), ())
    ]
    return TableCell(ours + failed, "" if cell.mean is None else cell.mean, below)


def _theirs(found: Comparison, digits: int) -> str:
    return with_deviation(found.mean, found.deviation, digits)


def _comparisons(table: Table) -> list[Chart]:
    """A figure for every row with all columns in it; where these are few, for every column with all rows in it."""
    if len(table.columns) > FEW_COLUMNS:
        return [_comparison(table, ", ".join(row), {c: (row, c) for c in table.columns}) for row in table.rows]
    names = {row: " ".join(row[:2]) for row in table.rows}
    return [_comparison(table, column, {names[row]: (row, column) for row in names}) for column in table.columns]


def _comparison(table: Table, title: str, places: Mapping[str, tuple[Row, str]]) -> Chart:
    """Means with deviations, ours and those of others, a line for each network."""
    found = {name: table.cells[place] for name, place in places.items() if place in table.cells}
    ours = {name: (cell.mean, cell.deviation, len(cell.values)) for name, cell in found.items()}
    series: dict[str, dict[str, tuple[Any, Any, Any]]] = {"ours": ours}
    for name, place in places.items():
        for other in table.comparisons.get(place, ()):
            series.setdefault(other.name, {})[name] = other.mean, other.deviation, other.runs
    traces = [_bars(name, values, place, table.digits) for place, (name, values) in enumerate(series.items())]
    text = ", ".join(f"{name} {number(mean, table.digits)}" for name, (mean, *_) in ours.items())
    alt = f"{title}, mean and deviation. Ours: {text}."
    names = [plain(name) for name in reversed(list(places))]
    order = {"type": "category", "categoryorder": "array", "categoryarray": names}
    return chart(title, alt, traces, axis(table.title.partition(": ")[2] or table.title), axis("", **order))


def _bars(name: str, values: Mapping[str, tuple[Any, Any, Any]], place: int, digits: int) -> dict[str, Any]:
    texts = [
        with_deviation(mean, deviation, digits) + (f", {runs} runs" if runs else "")
        for mean, deviation, runs in values.values()
    ]
    spread = {"type": "data", "array": [deviation or 0 for _, deviation, _ in values.values()], "thickness": 1.5}
    marker = {"size": 9, "symbol": ("circle", "diamond-open", "square-open", "x")[place % 4], "opacity": 1}
    x, y = [mean for mean, *_ in values.values()], [plain(key) for key in values]
    hover = {"customdata": texts, "hovertemplate": "%{y}: %{customdata}"}
    return points(x, y, name, place, marker=marker, error_x=spread, **hover)


def _curves(shown: ShownTable) -> list[Chart]:
    """The mean over the seeds, for every measure; hovering shows the range between them."""
    cells = by_cell(shown.lines, shown.names)
    return [_curve_chart(name, cells) for name in panels_of(shown.lines)]


def _curve_chart(panel: str, cells: Mapping[str, Sequence[Line]]) -> Chart:
    label = PANELS[panel][0]
    traces = [_curve(name, by_epoch(lines, panel), place) for place, (name, lines) in enumerate(cells.items())]
    every = [value for trace in traces for value in trace["y"]]
    lowest = min(zip(cells, traces, strict=True), key=lambda pair: float(pair[1]["y"][-1]))
    alt = f"Learning curves of {len(cells)} networks, {label}, the mean over the seeds. "
    alt += f"At the end {lowest[0]} is lowest, with {number(lowest[1]['y'][-1])}."
    return chart(label, alt, traces, axis("epoch"), log_axis(label, every))


def _curve(name: str, epochs: Sequence[tuple[float, ...]], place: int) -> dict[str, Any]:
    kept = thinned(len(epochs), 400)
    means = [sum(epochs[i]) / len(epochs[i]) for i in kept]
    texts = [f"{number(min(epochs[i]))} to {number(max(epochs[i]))}, {len(epochs[i])} seeds" for i in kept]
    hover = "epoch %{x}: %{y:.4g}, %{customdata}"
    return line(kept + 1, means, name, place, meta=name, customdata=texts, hovertemplate=hover)
