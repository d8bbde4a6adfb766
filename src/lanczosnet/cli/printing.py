"""How the verbs show what they found: tables for people, JSON for machines."""

import json
import math
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table


def print_rows(rows: list[dict[str, str]], as_json: bool, empty: str = "nothing") -> None:
    """A table, or a JSON list."""
    from rich.console import Console

    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    elif not rows:
        typer.echo(empty)
    else:
        Console(soft_wrap=True).print(table(list(rows[0]), [list(row.values()) for row in rows]))


def print_facts(facts: dict[str, Any], as_json: bool) -> None:
    """Names and values below one another, or a JSON object."""
    from rich.console import Console

    if as_json:
        typer.echo(as_json_text(facts, indent=2))
    else:
        Console(soft_wrap=True).print(table(["", ""], [[key.replace("_", " "), _text(v)] for key, v in facts.items()]))


def as_json_text(value: Any, indent: int | None = None) -> str:
    """JSON has no NaN: what is not a number is null."""
    return json.dumps(_without_nan(value), indent=indent, allow_nan=False)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(header: list[str], rows: list[list[str]]) -> "Table":
    from rich import box
    from rich.table import Table

    shown = Table(*header, box=box.SIMPLE_HEAD, show_header=any(header))
    for row in rows:
        shown.add_row(*row)
    return shown


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {number:g}" for key, number in value.items())
    if isinstance(value, list):
        are_numbers = all(isinstance(item, int | float) for item in value)
        return "  ".join(f"{item:g}" for item in value) if are_numbers else "\n".join(map(str, value))
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
