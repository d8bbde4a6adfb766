"""`lanczosnet predict`: CSV in, CSV out, one row per input row in order."""

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lanczosnet._extras import require
from lanczosnet.cli.csv_inputs import Row, read_rows
from lanczosnet.cli.molecule_inputs import (
    descriptors_of,
    is_molecule_file,
    needs_own_reader,
    rows_of,
    smiles_column_of,
)
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
from lanczosnet.cli.processes import PartitionFile, keep_partition

if TYPE_CHECKING:
    from lanczosnet.schemas.model_config import DataRecord
    from lanczosnet.training import TrainedModel
    from lanczosnet.training.ensemble import Ensemble
    from lanczosnet.training.predict import Predictions

PREFIX = "predicted_"
BLOCK = 8192  # molecules that are held at a time
LEVEL = 0.9  # of intervals
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
    intervals: Annotated[bool, typer.Option("--intervals", help="Add an interval to every predicted number.")] = False,
    level: Annotated[
        float | None, typer.Option(min=0.01, max=0.999, help="Share of targets that intervals contain; default 0.9.")
    ] = None,
    calibrated: Annotated[
        bool, typer.Option("--calibrated", help="Calibrate probabilities on the validation part.")
    ] = False,
    data_settings: DataSettings = None,
    device: Device = "cpu",
    partition: PartitionFile = None,
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

    if level is not None and not intervals:
        raise typer.BadParameter("the level is that of --intervals: pass both", param_hint="--level")
    asked = {"interval": (level or LEVEL) if intervals else None, "calibrated": calibrated}
    asked = {key: value for key, value in asked.items() if value}
    is_one_model = (model / "config.json").is_file()
    if is_one_model and len(inputs) == 1 and out is not None and is_graph_folder(Path(inputs[0]).expanduser()):
        if asked or as_json:
            raise typer.BadParameter("--intervals, --calibrated and --json are not for the folder of a large graph")
        _predict_folder(model, inputs[0], out, device, partition)
        return
    if out is not None and out.suffix in (".parquet", ".npy"):
        raise typer.BadParameter(f"only predictions for a graph folder are written as {out.suffix}", param_hint="--out")
    if partition is not None:
        raise typer.BadParameter("--partition is for the folder of a large graph, and with --out")
    trained = load_models(model, device=device_of(device))
    is_quiet = out is None and sys.stdout.isatty()  # a bar would stand among the rows
    model_in_use = Predictor(trained, asked, is_quiet)
    blocks = _predicted(model_in_use, inputs, smiles, data_dir, read_data_settings(data_settings))
    units = dict(zip(trained.task.targets, getattr(trained.task, "units", ()), strict=False))
    if as_json:
        rows = [row | {"units": units} if units else row for rows in blocks for row in rows]
        typer.echo(as_json_text(rows))
        return
    first = next(blocks, [])
    if is_quiet and len(first) <= MOST_COLUMNS:
        _show(first, units)
    else:
        _write_to(out, chain([first], blocks))
        _tell_units(units)


def _predict_folder(model: Path, source: str, out: Path, device: str, partition: Path | None) -> None:
    """A large graph, block by block, and in all processes that `torchrun` started."""
    from lanczosnet.backends.processes import leave, num_processes, processes_here
    from lanczosnet.cli.options import fabric_for
    from lanczosnet.graphs.formats.stored_graph import stored_graph
    from lanczosnet.training.serialization import load_model
    from lanczosnet.training.stored_predictions import predict_stored

    data = stored_graph(source)
    keep_partition(data, partition)
    place = fabric_for(device).device if num_processes() > 1 else device_of(device)
    predict_stored(load_model(model, device=place), data, out, processes_here(), PREFIX)
    leave()


class Predictor(NamedTuple):
    """A model, what is asked of it beside its predictions, and whether it shows no progress."""

    trained: "TrainedModel | Ensemble"
    asked: Row
    is_quiet: bool

    def __call__(self, items: Any, **more: Any) -> "Predictions":
        return self.trained.predict(items, **more, **self.asked)

    @property
    def data(self) -> "DataRecord":
        return self.trained.config.data


def _predicted(
    model: Predictor, inputs: list[str], smiles: str | None, data_dir: Path | None, options: Row
) -> Iterator[list[Row]]:
    """Blocks of rows with their predictions; of molecules in a table no more than a block is held."""
    first = inputs[0]
    _check_files(inputs)
    is_of_molecules = model.data.inputs == "smiles"
    is_csv = first == "-" or first.endswith(".csv")
    if is_of_molecules and is_molecule_file(first) and needs_own_reader(Path(first)):
        _check_no_settings(options)
        yield from _molecule_blocks(model, rows_of(Path(first)).__iter__, first, smiles)
    elif is_csv and model.data.inputs != "graph":
        _check_no_settings(options)
        if is_of_molecules:
            yield from _molecule_blocks(model, partial(read_rows, first), first, smiles)
        else:
            yield _feature_rows(model, list(read_rows(first)), first)
    else:
        yield _other_rows(model, inputs, smiles, data_dir, options)


def _other_rows(
    model: Predictor, inputs: list[str], smiles: str | None, data_dir: Path | None, options: Row
) -> list[Row]:
    """Of nodes with edges, of a data set, or of SMILES."""
    from lanczosnet.files import is_there, user_path
    from lanczosnet.graphs.catalogue import CATALOGUE, load

    first = inputs[0]
    if first == "-" or first.endswith(".csv"):
        # Nodes with edges: which file has them, and which columns are what, the loader must be told.
        graph = load(first, data_dir=data_dir, **model.data.options | options)
        return _joined(list(read_rows(first)), model(graph).rows(prefix=PREFIX))
    is_data = first.lower() in CATALOGUE or (first != "" and is_there(user_path(first)))  # "" is this folder
    if len(inputs) == 1 and is_data:
        return _joined([], model(load(first, data_dir=data_dir, **options)).rows(prefix=PREFIX))
    if model.data.inputs != "smiles":
        raise ValueError(f"there is neither a file nor a data set {first!r:.60}")
    _check_no_settings(options)
    return _joined([{smiles or "smiles": text} for text in inputs], model(inputs).rows(prefix=PREFIX))


def _check_no_settings(options: Row) -> None:
    """What `--data-set` says is for loaders alone."""
    if options:
        raise ValueError("--data-set is for graphs; name the column of SMILES with --smiles-column")


def _check_files(inputs: list[str]) -> None:
    """What is meant as a file must not be read as SMILES, of which none ends so."""
    from lanczosnet.files import is_there

    for name in inputs:
        is_file = Path(name).suffix in (".csv", ".tsv", ".txt", ".pt", ".safetensors") or is_molecule_file(name)
        if is_file and not (is_there(name) and Path(name).is_file()):
            raise ValueError(f"there is no file {name!r}")
        if (is_file or name == "-") and len(inputs) > 1:
            raise ValueError(f"one file at a time: {name} was given with other inputs")


def _molecule_blocks(
    model: Predictor, read: Callable[[], Iterator[Row]], name: str, smiles: str | None
) -> Iterator[list[Row]]:
    """So many molecules at a time that all cores have some to read, and that memory does not grow with the table."""
    from lanczosnet.graphs.progress import progress_bar
    from lanczosnet.training.smiles_inputs import added

    # A file is read twice: a mistake in its last row is said before any molecule is predicted.
    total = None if name == "-" else sum(1 for _ in read())
    missing: list[Mapping[str, int]] = []
    unknown: list[Mapping[str, int]] = []
    rows = read()
    with nullcontext(lambda count: None) if model.is_quiet else progress_bar("Predicting", total) as advance:
        while block := list(islice(rows, BLOCK)):
            smiles = smiles_column_of(block, name, smiles, model.data.options.get("smiles"))
            descriptors = descriptors_of(block, name, model.data.get("descriptor_columns", ()))
            found = model([row[smiles] or "" for row in block], descriptors=descriptors)
            missing.append(found.missing)
            unknown.append(found.unknown)
            yield _joined(block, found.rows(prefix=PREFIX))
            advance(len(block))
    _tell_unknown(added(missing), added(unknown))


def _feature_rows(model: Predictor, rows: list[Row], name: str) -> list[Row]:
    require("pandas", to="to read tables")
    import pandas as pd

    from lanczosnet.graphs.errors import DataError

    table = pd.DataFrame(rows)
    table = table if model.data.get("features") else table.drop(columns=_unused(model.trained, table))
    try:
        return _joined(rows, model(table).rows(prefix=PREFIX))
    except DataError as error:  # of a table that need not come from a file
        raise DataError(str(error), file="the input" if name == "-" else name) from error


def _tell_unknown(missing: Mapping[str, int], unknown: Mapping[str, int]) -> None:
    """What the model did not get, or does not know."""
    from lanczosnet.graphs.molecules.featurizer import unknown_noted

    for name, count in missing.items():
        typer.echo(f"{name} is missing in {count:,} rows: the mean of the training part is used instead", err=True)
    for note in unknown_noted(unknown):
        typer.echo(note, err=True)


def _unused(trained: "TrainedModel | Ensemble", table: Any) -> list[str]:
    """Of a table for a model without column names: what cannot be a feature, such as pandas' nameless index."""
    return [name for name in table.columns if name in ("", "id", *trained.task.targets)]


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


def _write_to(out: Path | None, blocks: Iterable[list[Row]]) -> None:
    if out is None:
        _write(sys.stdout, blocks)
        return
    from lanczosnet.files import atomic_write

    with atomic_write(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        _write(stream, blocks)


def _write(stream: Any, blocks: Iterable[list[Row]]) -> None:
    writer = None
    for rows in filter(None, blocks):
        if writer is None:
            writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
            writer.writeheader()
        writer.writerows(rows)
