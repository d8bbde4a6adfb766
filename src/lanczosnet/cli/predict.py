"""`lanczosnet predict`: CSV in, CSV out, one row per input row in order."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanczosnet._extras import require
from lanczosnet.cli.molecule_inputs import descriptors_of, is_molecule_file, needs_own_reader, rows_of, smiles_of
from lanczosnet.cli.options import (
    DataDir,
    DataSettings,
    Device,
    Json,
    ModelFolder,
    device_of,
    in_options,
    read_data_settings,
)
from lanczosnet.cli.printing import as_json_text

if TYPE_CHECKING:
    from lanczosnet.training import TrainedModel
    from lanczosnet.training.ensemble import Ensemble
    from lanczosnet.training.predict import Predictions

Row = dict[str, Any]
PREFIX = "predicted_"
MOST_COLUMNS = 4  # items side by side on a terminal


def predict(
    model: ModelFolder,
    inputs: Annotated[
        list[str], typer.Argument(metavar="INPUT...", help="A CSV file, - for standard input, SMILES, or a data set.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Where the CSV goes; default standard output. Of a graph folder also .parquet or .npy."),
    ] = None,
    smiles: Annotated[
        str | None,
        typer.Option("--smiles-column", "--smiles", metavar="NAME", help="Of the SMILES; found where it is clear."),
    ] = None,
    data_settings: DataSettings = None,
    device: Device = "cpu",
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Predict with a trained model: every input row comes back in order, with its predictions or its error.

    A few molecules stand side by side on a terminal; all else is CSV, with the units on standard error.

    lanczosnet predict runs/solubility molecules.csv --out predicted.csv

    lanczosnet predict runs/solubility CCO c1ccccc1

    cat table.csv | lanczosnet predict runs/prices -

    Of a folder of models, as `train --seeds 5` leaves it, the mean, and their standard deviation as `uncertainty_...`.
    """
    from lanczosnet.graphs.formats.graph_folder import is_graph_folder
    from lanczosnet.training.ensemble import load_models

    is_one_model = (model / "config.json").is_file()
    if is_one_model and len(inputs) == 1 and out is not None and is_graph_folder(Path(inputs[0]).expanduser()):
        _predict_folder(model, inputs[0], out, device)
        return
    trained = load_models(model, device=device_of(device))
    rows = _predicted(trained, inputs, smiles, data_dir, read_data_settings(data_settings))
    units = dict(zip(trained.task.targets, getattr(trained.task, "units", ()), strict=False))
    if as_json:
        typer.echo(as_json_text([row | {"units": units} if units else row for row in rows]))
    elif out is None and sys.stdout.isatty() and len(rows) <= MOST_COLUMNS:
        _show(rows, units)
    else:
        _write_to(out, rows)
        _tell_units(units)


def _predict_folder(model: Path, source: str, out: Path, device: str) -> None:
    """A large graph, block by block, and in all processes that `torchrun` started."""
    from lanczosnet.backends.processes import leave, num_processes, processes_here
    from lanczosnet.cli.options import fabric_for
    from lanczosnet.graphs.formats.stored_graph import stored_graph
    from lanczosnet.training.serialization import load_model
    from lanczosnet.training.stored_predictions import predict_stored

    place = fabric_for(device).device if num_processes() > 1 else device_of(device)
    predict_stored(load_model(model, device=place), stored_graph(source), out, processes_here(), PREFIX)
    leave()


def _predicted(
    trained: "TrainedModel | Ensemble", inputs: list[str], smiles: str | None, data_dir: Path | None, options: Row
) -> list[Row]:
    from lanczosnet.files import is_there, user_path
    from lanczosnet.graphs.catalogue import CATALOGUE, load

    first = inputs[0]
    _check_files(inputs)
    is_of_molecules = trained.config.data.inputs == "smiles"
    if is_of_molecules and is_molecule_file(first) and needs_own_reader(Path(first)):
        return _table_rows(trained, rows_of(Path(first)), smiles, first)
    if first == "-" or first.endswith(".csv"):
        if trained.config.data.inputs != "graph":
            if options:
                raise ValueError("--data-set is for graphs; name the column of SMILES with --smiles-column")
            return _table_rows(trained, _read(first), smiles, first)
        # Nodes with edges: which file has them, and which columns are what, the loader must be told.
        graph = load(first, data_dir=data_dir, **trained.config.data.options | options)
        return _joined(_read(first), trained.predict(graph).rows(prefix=PREFIX))
    is_data = first.lower() in CATALOGUE or (first != "" and is_there(user_path(first)))  # "" is this folder
    if len(inputs) == 1 and is_data:
        return _joined([], trained.predict(load(first, data_dir=data_dir, **options)).rows(prefix=PREFIX))
    if not is_of_molecules:
        raise ValueError(f"there is neither a file nor a data set {first!r:.60}")
    return _joined([{smiles or "smiles": text} for text in inputs], trained.predict(inputs).rows(prefix=PREFIX))


def _check_files(inputs: list[str]) -> None:
    """What is meant as a file must not be read as SMILES, of which none ends so."""
    from lanczosnet.files import is_there

    for name in inputs:
        is_file = Path(name).suffix in (".csv", ".tsv", ".txt", ".pt", ".safetensors") or is_molecule_file(name)
        if is_file and not (is_there(name) and Path(name).is_file()):
            raise ValueError(f"there is no file {name!r}")
        if (is_file or name == "-") and len(inputs) > 1:
            raise ValueError(f"one file at a time: {name} was given with other inputs")


def _table_rows(trained: "TrainedModel | Ensemble", rows: list[Row], smiles: str | None, name: str) -> list[Row]:
    if trained.config.data.inputs == "smiles":
        texts = smiles_of(rows, name, smiles, trained.config.data.options.get("smiles"))
        descriptors = descriptors_of(rows, name, trained.config.data.get("descriptor_columns", ()))
        found = trained.predict(texts, descriptors=descriptors)
        _tell_unknown(found)
        return _joined(rows, found.rows(prefix=PREFIX))
    require("pandas", to="to read tables")
    import pandas as pd

    table = pd.DataFrame(rows)
    names = trained.config.data.get("features")
    return _joined(
        rows, trained.predict(table if names else table.drop(columns=_unused(trained, table))).rows(prefix=PREFIX)
    )


def _tell_unknown(found: "Predictions") -> None:
    """What the model did not get, or does not know."""
    from lanczosnet.graphs.molecules.featurizer import unknown_noted

    for name, count in found.missing.items():
        typer.echo(f"{name} is missing in {count:,} rows: the mean of the training part is used instead", err=True)
    for note in unknown_noted(found.unknown):
        typer.echo(note, err=True)


def _unused(trained: "TrainedModel | Ensemble", table: Any) -> list[str]:
    """Of a table for a model without column names: what cannot be a feature, such as pandas' nameless index."""
    return [name for name in table.columns if name in ("", "id", *trained.task.targets)]


def _read(name: str) -> list[Row]:
    """Rows as texts. A row with too few cells has empty ones."""
    from lanczosnet.graphs.formats.columns import csv_rows, stream_rows

    if name == "-" and sys.stdin is None:
        raise ValueError("standard input is closed: there is nothing to predict")
    try:
        return _records(stream_rows(sys.stdin), "the input") if name == "-" else _records(csv_rows(Path(name)), name)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{name} is not a CSV text file ({error})") from error


def _records(numbered: Iterator[tuple[int, list[str]]], name: str) -> list[Row]:
    from lanczosnet.graphs.formats.columns import check_header

    _, header = next(numbered, (1, []))
    header[:1] = [cell.removeprefix("\ufeff") for cell in header[:1]]  # which a pipe hands on
    check_header(name, header)
    rows = []
    for row, cells in numbered:
        if any(cells[len(header) :]):
            raise ValueError(f"row {row} of {name} has {len(cells)} cells, but the header {len(header)}")
        rows.append(dict(zip(header, cells + [""] * (len(header) - len(cells)), strict=False)))
    if not rows:
        raise ValueError(f"{name} has no rows below its header: there is nothing to predict")
    return rows


def _joined(rows: list[Row], predictions: list[Row]) -> list[Row]:
    """Predictions beside their inputs, with distinct names."""
    rows = rows or [{"item": i} for i in range(len(predictions))]
    taken = [key for key in predictions[0] if key in rows[0]] if predictions else []
    if taken:
        raise ValueError(f"the table already has columns named {', '.join(taken)}: rename or drop them first")
    return [row | prediction | _told(prediction) for row, prediction in zip(rows, predictions, strict=True)]


def _told(prediction: Row) -> Row:
    """Its error in the words of the command line."""
    return {"error": in_options(prediction["error"])} if prediction.get("error") else {}


def _show(rows: list[Row], units: dict[str, str]) -> None:
    """A line for every quantity with its unit, a column for every item."""
    from rich.console import Console

    from lanczosnet.cli.printing import table

    names = [key.removeprefix(PREFIX) for key in rows[0] if key.startswith(PREFIX)] if rows else []
    items = [str(next(iter(row.values()))) for row in rows]
    cells = [[name, *(_text(row[PREFIX + name]) for row in rows), units.get(name, "")] for name in names]
    Console(soft_wrap=True, highlight=False).print(table(["", *items, "unit" if units else ""], cells))
    for item, row in zip(items, rows, strict=True):
        if row["error"]:
            typer.echo(f"{item}: {row['error']}", err=True)


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _tell_units(units: dict[str, str]) -> None:
    """Beside the CSV, whose columns keep the names of the targets."""
    targets: dict[str, list[str]] = {}
    for target, unit in units.items():
        targets.setdefault(unit, []).append(target)
    for unit, names in targets.items():
        typer.echo(f"{', '.join(names)}: {unit}", err=True)


def _write_to(out: Path | None, rows: list[Row]) -> None:
    if out is None:
        _write(sys.stdout, rows)
        return
    from lanczosnet.files import atomic_write

    with atomic_write(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        _write(stream, rows)


def _write(stream: Any, rows: list[Row]) -> None:
    if not rows:
        return
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
