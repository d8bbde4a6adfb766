"""`lanczosnet report`: a page for a trained model, or for the tables of result lines."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanczosnet.cli.options import DataDir, Device, device_of
from lanczosnet.files import REPORT

if TYPE_CHECKING:
    from lanczosnet.report.table_report import ShownTable


def report(
    sources: Annotated[
        list[Path], typer.Argument(metavar="MODEL|LINES...", help="A model directory, or files of result lines.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page; default MODEL/report.html, for lines report.html.")
    ] = None,
    device: Device = "cpu",
    data_dir: DataDir = None,
) -> None:
    """Write one page that opens offline: of a trained model, or of the paper's tables.

    lanczosnet report runs/digits-lanczosnet

    lanczosnet report results/*.jsonl --out tables.html
    """
    if is_model(sources[0]):
        if len(sources) > 1:
            raise typer.BadParameter("a page shows one model: name one directory", param_hint="MODEL")
        path = write_model_page(sources[0], out=out, data_dir=data_dir, device=device_of(device))
    else:
        path = write_tables_page(sources, out or Path(REPORT))
    typer.echo(f"report: {path}")


def is_model(path: Path) -> bool:
    return (path / "config.json").is_file()


def write_model_page(
    folder: Path, *, out: Path | None = None, data_dir: Path | None = None, device: Any = "cpu"
) -> Path:
    """The page of a model directory, by default inside it."""
    from lanczosnet.report.model_report import model_sections, model_title
    from lanczosnet.report.page import write_page
    from lanczosnet.training.report_data import collect

    path = out or folder / REPORT
    found = collect(folder, data_dir=data_dir, device=device)
    write_page(path, *model_title(found), model_sections(found))
    return path


def leave_model_page(folder: Path, *, data_dir: Path | None = None, device: Any = "cpu") -> None:
    """The same after a training, which is done whatever becomes of the page."""
    with page_or_reason(folder):
        path = write_model_page(folder, data_dir=data_dir, device=device)
        typer.echo(f"report: {path}", err=True)


@contextmanager
def page_or_reason(folder: Path) -> Iterator[None]:
    """A model without a page is better than none: say why there is none, and go on."""
    try:
        yield
    except Exception as error:
        typer.echo(f"there is no report: {error}. Try `lanczosnet report {folder}`", err=True)


def write_tables_page(sources: Sequence[Path], path: Path) -> Path:
    """One section for each table and recipe of each file."""
    from lanczosnet.report.page import write_page
    from lanczosnet.report.table_report import table_sections

    tables = [shown for source in sources for shown in _tables_of(source)]
    subtitle = "The paper's tables: published numbers beside ours."
    write_page(path, "Results", subtitle, table_sections(tables))
    return path


def _tables_of(source: Path) -> "Iterator[ShownTable]":
    from lanczosnet.cli.selection import TABLES
    from lanczosnet.experiments.grid import OWN
    from lanczosnet.experiments.store import Store

    if models := sorted(file.parent for file in source.glob("*/config.json")):
        raise ValueError(f"{source} holds {len(models)} models, and a page shows one: name one, such as {models[0]}")
    lines = list(Store(source).lines().values())
    if not lines:
        raise ValueError(f"{source} is not a model directory, and there are no result lines in it")

    def kind(line: dict[str, Any]) -> tuple[int, str]:
        return list(TABLES).index(line["table"]), line["recipe"]

    every = {key: list(held) for key, held in groupby(sorted(lines, key=kind), kind)}
    for (place, recipe), held in every.items():
        if recipe != OWN:
            yield _shown(list(TABLES)[place], recipe, held + every.get((place, OWN), []), source.name)


def _shown(name: str, recipe: str, lines: list[dict[str, Any]], source: str) -> "ShownTable":
    from lanczosnet.cli.selection import OF_SEVERAL_SPLITS, spec_of
    from lanczosnet.experiments.tables.qm8_tables import curve_names
    from lanczosnet.report import Table
    from lanczosnet.report.table_report import ShownTable

    spec = spec_of(name, recipe)
    names = {} if name in OF_SEVERAL_SPLITS else curve_names(name)
    traces = {place.row: names[place.where["model"], place.where["label"]] for place in spec.places} if names else {}
    with_curves = [line for line in spec.used(lines) if line.get("curves")]
    return ShownTable(Table.from_records(spec.filled(lines)), source, with_curves if names else (), names, traces)
