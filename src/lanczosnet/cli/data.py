"""`lanczosnet data`: list, fetch, verify and describe data sets."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lanczosnet.cli.options import DataDir, DataSettings, Json, read_settings
from lanczosnet.cli.printing import print_facts, print_rows

app = typer.Typer(no_args_is_help=True, help="List, fetch, verify and describe data sets.")

Name = Annotated[str, typer.Argument(help="A data set; `lanczosnet data list` shows them.")]


@app.command("list")
def list_names(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List all data sets and whether their files are here."""
    from lanczosnet.graphs.catalogue import CATALOGUE

    rows = [{"name": name, "about": e.about, "files": _files_state(e, data_dir)} for name, e in CATALOGUE.items()]
    print_rows(rows, as_json)


@app.command()
def fetch(name: Name, data_dir: DataDir = None, timeout: float = 30.0, tries: int = 3) -> None:
    """Download the files of a data set; those that are here and good stay as they are."""
    from lanczosnet.graphs.catalogue import entry
    from lanczosnet.graphs.download import fetch as fetch_file
    from lanczosnet.graphs.progress import progress_bar

    files = entry(name).files
    with progress_bar(f"Fetching {name}", sum(file.largest for file in files)) as advance:
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
    print_rows(rows, as_json, empty=f"{name} needs no files")
    if any(row["state"] != "ok" for row in rows):
        raise typer.Exit(1)


@app.command()
def info(name: Name, data_settings: DataSettings = None, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Describe a data set, by name or path: sizes, components, degrees, ends of the spectrum, place of the files."""
    from lanczosnet.graphs.catalogue import CATALOGUE, load
    from lanczosnet.graphs.verify import verify as verify_files

    data = load(name, data_dir=data_dir, **read_settings(data_settings))
    from lanczosnet.transforms import summary  # after `load`, so that a wrong name is answered before torch is loaded

    facts = {"name": name, **summary(data)}
    states = verify_files(name, data_dir) if name.lower() in CATALOGUE else []
    facts["files"] = [state.place for state in states] or ["none needed" if name.lower() in CATALOGUE else name]
    print_facts(facts, as_json)


def _files_state(entry: Any, data_dir: Path | None) -> str:
    if not entry.files:
        return "not needed"
    return "here" if all(file.found(data_dir) for file in entry.files) else "missing"
