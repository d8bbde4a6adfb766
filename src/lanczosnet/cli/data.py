"""`lanczosnet data`: list, fetch, verify and describe data sets."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer(no_args_is_help=True, help="List, fetch, verify and describe data sets.")

Name = Annotated[str, typer.Argument(help="A data set; `lanczosnet data list` shows them.")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Where the files lie; else LANCZOSNET_DATA, else the user's cache folder."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_names(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List all data sets and whether their files are here."""
    from lanczosnet.graphs.catalogue import CATALOGUE

    rows = [{"name": name, "about": e.about, "files": _files_state(e, data_dir)} for name, e in CATALOGUE.items()]
    _print(rows, as_json)


@app.command()
def fetch(name: Name, data_dir: DataDir = None, timeout: float = 30.0, tries: int = 3) -> None:
    """Download the files of a data set; those that are here and good stay as they are."""
    from lanczosnet.graphs.catalogue import entry
    from lanczosnet.graphs.download import fetch as fetch_file
    from lanczosnet.graphs.progress import progress_bar

    files = entry(name).files
    with progress_bar(f"Fetching {name}", sum(max(file.versions.values()) for file in files)) as advance:
        paths = [fetch_file(f, name, data_dir, timeout=timeout, tries=tries, progress=advance) for f in files]
    for path in paths:
        typer.echo(path)
    if not files:
        typer.echo(f"{name} needs no files")


@app.command()
def verify(name: Name, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Check the files of a data set against the published checksums."""
    from lanczosnet.graphs.verify import verify as verify_files

    rows = [state._asdict() for state in verify_files(name, data_dir)]
    _print(rows, as_json, empty=f"{name} needs no files")
    if any(row["state"] != "ok" for row in rows):
        raise typer.Exit(1)


@app.command()
def info(name: Name, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Describe a data set, by name or path: sizes, components, degrees, ends of the spectrum, place of the files."""
    from lanczosnet.graphs.catalogue import CATALOGUE, load
    from lanczosnet.graphs.verify import verify as verify_files

    data = load(name, data_dir=data_dir)
    from lanczosnet.graphs.info import summary  # after `load`, so that a wrong name is answered before torch is loaded

    facts = {"name": name, **summary(data)}
    states = verify_files(name, data_dir) if name.lower() in CATALOGUE else []
    facts["files"] = [state.place for state in states] or ["none needed" if name.lower() in CATALOGUE else name]
    _print_facts(facts, as_json)


def _files_state(entry: Any, data_dir: Path | None) -> str:
    if not entry.files:
        return "not needed"
    return "here" if all(file.found(data_dir) for file in entry.files) else "missing"


def _print(rows: list[dict[str, str]], as_json: bool, empty: str = "nothing") -> None:
    from rich.console import Console

    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    elif not rows:
        typer.echo(empty)
    else:
        Console(soft_wrap=True).print(_table(list(rows[0]), [list(row.values()) for row in rows]))


def _print_facts(facts: dict[str, Any], as_json: bool) -> None:
    from rich.console import Console

    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        Console(soft_wrap=True).print(_table(["", ""], [[key.replace("_", " "), _text(v)] for key, v in facts.items()]))


def _table(header: list[str], rows: list[list[str]]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(*header, box=box.SIMPLE_HEAD, show_header=any(header))
    for row in rows:
        table.add_row(*row)
    return table


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {number:g}" for key, number in value.items())
    if isinstance(value, list):
        return ("  " if isinstance(value[0], float) else "\n").join(
            f"{item:g}" if isinstance(item, float) else str(item) for item in value
        )
    return f"{value:,}" if isinstance(value, int) else str(value)
