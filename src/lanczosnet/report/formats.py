"""A table as text, Markdown, CSV or LaTeX: the same bytes for the same records."""

import csv
import io
import textwrap
from collections.abc import Callable
from typing import Any

from lanczosnet._notebook import table as html_table
from lanczosnet.report.claims import claims_count, claims_markdown
from lanczosnet.report.measurement import Comparison, Measurement
from lanczosnet.report.table import Table

PLUS_MINUS = "±"


def render(table: Table, form: str = "text") -> str:
    """The table in one of FORMATS, ending with a new line."""
    if form not in FORMATS:
        raise ValueError(f"there is no format {form!r}; known are {', '.join(FORMATS)}")
    return FORMATS[form](table)


def as_rows(table: Table) -> list[dict[str, Any]]:
    """One row of plain values for each cell and number that it is compared with."""
    rows = []
    for (row, column), cell in table.cells.items():
        ours = dict(zip(table.heads, row, strict=True)) | {
            "column": column,
            "mean": _rounded(cell.mean),
            "deviation": _rounded(cell.deviation),
            "runs": len(cell.values),
            "failed": cell.failed,
        }
        for comparison in table.comparisons[row, column] or (None,):
            rows.append(ours | _facts(comparison, cell))
    return rows


def _facts(comparison: Comparison | None, cell: Measurement) -> dict[str, Any]:
    names = ("compared_with", "their_mean", "their_deviation", "their_runs", "p_value", "mark", "reaches_mean")
    if comparison is None:
        return dict.fromkeys((*names, "reaches_mean_less_deviation"))
    has_runs = bool(cell.values)
    values = (
        comparison.name,
        comparison.mean,
        comparison.deviation,
        comparison.runs,
        _rounded(comparison.p_value) if has_runs else None,
        comparison.mark if has_runs else "",
        comparison.reaches_mean if has_runs else None,
    )
    reaches = comparison.reaches_deviation if has_runs and comparison.deviation is not None else None
    return dict(zip(names, values, strict=True)) | {"reaches_mean_less_deviation": reaches}


def _text(table: Table) -> str:
    """Columns side by side; below each row the numbers that it is compared with."""
    header, lines = [*table.heads, *(f"{column}  " for column in table.columns)], _lines(table, PLUS_MINUS)
    widths = [max(len(line[i]) for line in (header, *lines)) for i in range(len(header))]
    left = len(table.heads)

    def padded(line: list[str]) -> str:
        names = [text.ljust(width) for text, width in zip(line[:left], widths, strict=False)]
        numbers = [text.rjust(width) for text, width in zip(line[left:], widths[left:], strict=True)]
        return "  ".join([*names, *numbers]).rstrip()

    rule = "-" * len("  ".join("-" * width for width in widths))
    below = [line for text in table.legend() for line in textwrap.wrap(text, 110)]
    body = [table.title, "", padded(header), rule, *map(padded, lines), "", *below, "", *table.summary()]
    concluded = [line for text in table.conclusions() for line in textwrap.wrap(text, 110, subsequent_indent="  ")]
    body += ["", *concluded] if concluded else []
    return "\n".join(body) + "\n"


def _markdown(table: Table) -> str:
    header = [*table.heads, *table.columns]
    rule = ["---"] * len(table.heads) + ["---:"] * len(table.columns)
    lines = (header, rule, *_lines(table, PLUS_MINUS))
    rows = ["| " + " | ".join(map(str.strip, line)) + " |" for line in lines]
    concluded = [f"{claims_count(table.claims)}: `--format conclusions` prints them."] if table.claims else []
    after = "\n".join(f"- {text}" for text in (*table.legend(), *table.summary(), *concluded))
    return f"**{table.title}**\n\n" + "\n".join(rows) + "\n\n" + after + "\n"


def as_html(table: Table) -> str:
    """For notebooks."""
    header = [*table.heads, *table.columns]
    return html_table(table.title, header, _lines(table, PLUS_MINUS), [*table.legend(), *table.summary()])


def _conclusions(table: Table) -> str:
    if not table.claims:
        raise ValueError(f"there are no conclusions from {table.title!r}: choose another format")
    return claims_markdown(table.claims, table.digits)


def _csv(table: Table) -> str:
    rows = as_rows(table)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]) if rows else [*table.heads, "column"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value is None else value for key, value in row.items()} for row in rows)
    return stream.getvalue()


def _latex(table: Table) -> str:
    def line(cells: list[str]) -> str:
        return " & ".join(_escaped(cell.strip()) for cell in cells) + r" \\"

    shape = "l" * len(table.heads) + "r" * len(table.columns)
    caption = " ".join([f"{table.title}.", *table.legend(), *table.summary(), *table.conclusions()])
    return (
        "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\begin{{tabular}}{{{shape}}}",
                r"\hline",
                line([*table.heads, *table.columns]),
                r"\hline",
                *(line(cells) for cells in _lines(table, r"$\pm$")),
                r"\hline",
                r"\end{tabular}",
                rf"\caption{{{_escaped(caption)}}}",
                r"\end{table}",
            ]
        )
        + "\n"
    )


def _escaped(text: str) -> str:
    for sign in "%&#_":
        text = text.replace(sign, f"\\{sign}")
    return text


def _lines(table: Table, sign: str) -> list[list[str]]:
    """Our row, then a row for each name that it is compared with."""
    lines = []
    for row in table.rows:
        lines.append([*row, *(_ours(table, table.cells.get((row, column)), sign) for column in table.columns)])
        for name in table.names_of(row):
            heads = ["" for _ in row[:-1]] + [name] if len(row) < 3 else ["", name, *("" for _ in row[2:])]
            theirs = (table.comparison(row, column, name) for column in table.columns)
            lines.append([*heads, *(_theirs(table, comparison, sign) for comparison in theirs)])
    return lines


def _ours(table: Table, cell: Measurement | None, sign: str) -> str:
    if cell is None or (cell.mean is None and not cell.failed):
        return ""
    failed = f"{cell.failed} failed" if cell.failed else ""
    number = "" if cell.mean is None else _number(cell.mean, cell.deviation, table.digits, sign)
    return ", ".join(filter(None, (number, failed))) + "  "  # the width of a mark


def _theirs(table: Table, comparison: Comparison | None, sign: str) -> str:
    if comparison is None:
        return ""
    mark = comparison.mark if comparison.cell.values else ""
    return f"{_number(comparison.mean, comparison.deviation, table.digits, sign)} {mark or ' '}"


def _number(mean: float, deviation: float | None, digits: int, sign: str) -> str:
    return f"{mean:.{digits}f}" + (f" {sign} {deviation:.{digits}f}" if deviation is not None else "")


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


FORMATS: dict[str, Callable[[Table], str]] = {
    "text": _text,
    "markdown": _markdown,
    "csv": _csv,
    "latex": _latex,
    "conclusions": _conclusions,
}
