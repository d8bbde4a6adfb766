"""`lanczosnet data`: list, fetch, convert, verify and describe data sets."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from lanczosnet.cli.limits import limited
from lanczosnet.cli.options import DataDir, DataSettings, Json, read_data_settings, resumable
from lanczosnet.cli.printing import print_facts, print_rows

app = typer.Typer(no_args_is_help=True, help="List, fetch, convert, verify and describe data sets.")

Name = Annotated[str, typer.Argument(help="A data set; `lanczosnet data list` shows them.")]


@app.command("list")
def list_names(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List all data sets and whether their files are here."""
    from lanczosnet.graphs.catalogue import CATALOGUE

    rows = [{"name": name, "about": e.about, "files": _files_state(e, data_dir)} for name, e in CATALOGUE.items()]
    print_rows(rows, as_json)


@app.command()
def fetch(
    name: Name,
    data_dir: DataDir = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds of a single read, in which 1,000 bytes a second arrive.")
    ] = 30,
    deadline: Annotated[float, typer.Option(help="Seconds of each file as a whole.")] = 3600,
    tries: Annotated[int, typer.Option(min=1, help="Of each mirror.")] = 3,
) -> None:
    """Download the files of a data set; those that are here and good stay as they are."""
    from lanczosnet.graphs.catalogue import entry
    from lanczosnet.graphs.data_sets.download import fetch as fetch_file
    from lanczosnet.graphs.progress import progress_bar

    files = entry(name).files
    with progress_bar(f"Fetching {name}", sum(file.largest for file in files)) as advance:
        limited = partial(fetch_file, timeout=timeout, deadline=deadline, tries=tries, progress=advance)
        paths = [limited(file, name, data_dir) for file in files]
    for path in paths:
        typer.echo(path)
    if not files:
        typer.echo(f"{name} needs no files")


@app.command()
@limited
def verify(
    name: Annotated[str, typer.Argument(help="A data set, or a graph folder that `data convert` wrote.")],
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Check the files of a data set or of a graph folder against their checksums."""
    from lanczosnet.graphs.data_sets.verify import NOT_NEEDED
    from lanczosnet.graphs.data_sets.verify import verify as verify_files

    rows = [state._asdict() for state in verify_files(name, data_dir)]
    print_rows(rows, as_json, empty=f"{name} needs no files")
    if any(row["state"] not in ("ok", NOT_NEEDED) for row in rows):
        raise typer.Exit(1)


@app.command()
@limited
def convert(
    edges: Annotated[
        str, typer.Argument(help="Edges (CSV, CSV with gzip, Parquet, a folder of Parquet, npy), or a folder of OGB.")
    ],
    out: Annotated[Path, typer.Argument(help="The graph folder to write.")],
    nodes: Annotated[Path | None, typer.Option(help="A table with a row per node: features, label, split.")] = None,
    features: Annotated[Path | None, typer.Option(help="Features as npy, a row per node.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Labels as npy, one per node.")] = None,
    train_mask: Annotated[Path | None, typer.Option(help="npy: a boolean per node, or numbers of nodes.")] = None,
    val_mask: Annotated[Path | None, typer.Option(help="The same of the validation nodes.")] = None,
    test_mask: Annotated[Path | None, typer.Option(help="The same of the test nodes.")] = None,
    num_nodes: Annotated[int | None, typer.Option(help="Where no file says how many; saves a pass.")] = None,
    weight: Annotated[str | None, typer.Option(help="The column of weights; default weight, if there.")] = None,
    label: Annotated[str | None, typer.Option(help="The column to be learnt; default label or y.")] = None,
    split: Annotated[str | None, typer.Option(help="The column of train, val, test; default split.")] = None,
    node_id: Annotated[
        str | None, typer.Option("--id", help="The column of ids, whole numbers; default id, else rows from 0.")
    ] = None,
    columns: Annotated[list[str] | None, typer.Option(help="A column of features; repeatable; default all.")] = None,
    task: Annotated[str | None, typer.Option(help="classification or regression.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the graph in the folder.")] = False,
    as_json: Json = False,
) -> None:
    """Write a graph of any size as a folder that is opened in milliseconds; a killed conversion goes on.

    lanczosnet data convert edges.parquet big/ --nodes nodes.parquet --label kind

    lanczosnet data convert ogbn_products/ products/
    """
    from lanczosnet.graphs.conversion.convert import convert as write
    from lanczosnet.graphs.progress import steps_shown

    given = {"train": train_mask, "val": val_mask, "test": test_mask}
    options: dict[str, Any] = {
        "nodes": nodes, "features": features, "labels": labels, "num_nodes": num_nodes, "weight": weight,
        "label": label, "split": split, "id": node_id, "columns": columns, "task": task,
        "masks": {part: path for part, path in given.items() if path is not None} or None,
    }  # fmt: skip
    with resumable(), steps_shown() as on_step:
        folder = write(edges, out, overwrite=overwrite, on_step=on_step, **options)
    facts = {"folder": str(out), "nodes": folder.num_nodes, "edges": folder.num_entries // 2}
    print_facts(facts | {"arrays": sorted(folder.arrays)}, as_json)


@app.command()
@limited
def info(name: Name, data_settings: DataSettings = None, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Describe a data set, by name or path: sizes, components, degrees, ends of the spectrum, place of the files."""
    from lanczosnet.graphs.catalogue import CATALOGUE, load
    from lanczosnet.graphs.data_sets.verify import verify as verify_files

    data = load(name, data_dir=data_dir, **read_data_settings(data_settings))
    from lanczosnet.transforms import summary  # after `load`, so that a wrong name is answered before torch is loaded

    facts = {"name": name, **summary(data)}
    states = verify_files(name, data_dir) if name.lower() in CATALOGUE else []
    facts["files"] = [state.place for state in states] or ["none needed" if name.lower() in CATALOGUE else name]
    print_facts(facts, as_json)


def _files_state(entry: Any, data_dir: Path | None) -> str:
    if not entry.files:
        return "not needed"
    return "here" if all(file.found(data_dir) for file in entry.files) else "missing"
