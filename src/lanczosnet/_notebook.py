"""What a notebook shows of a result: a small table in HTML. Every text is escaped, for it may come from data."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[Any]], notes: Iterable[str] = ()) -> str:
    """Rows below a header; the first entry of a row names it."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in header)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    below = "".join(f"<p><small>{escape(note)}</small></p>" for note in notes)
    return f"<table>{_caption(caption)}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def facts(caption: str, values: Mapping[str, Any]) -> str:
    """Names and values."""
    body = "".join(f"<tr>{_row(item)}</tr>" for item in values.items())
    return f"<table>{_caption(caption)}<tbody>{body}</tbody></table>"


def _caption(text: str) -> str:
    return f'<caption style="text-align: left"><b>{escape(text)}</b></caption>'


def _row(row: Sequence[Any]) -> str:
    name, *values = (escape(str(value)) for value in row)
    cells = "".join(f'<td style="text-align: left">{value}</td>' for value in values)
    return f'<th scope="row" style="text-align: left">{name}</th>{cells}'
