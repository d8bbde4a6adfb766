"""`--config` and `--save-config`: the options of a run in a file."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanczosnet.cli.molecule_options import MoleculeOptions

if TYPE_CHECKING:
    from lanczosnet.schemas.run_config import RunConfig

# What a file does not hold: how this one command runs.
OF_THE_COMMAND = {"ctx", "config", "save_config", "resume", "overwrite", "any_order", "as_json", "dry_run", "anyway"}
OF_THE_COMMAND |= {"limits"}  # which a file must not raise
OF_THE_COMMAND |= {field.name for field in fields(MoleculeOptions)}  # they are written into the table `data`
TABLES = {"settings": "settings", "data_settings": "data"}  # parameters, and their tables in the file


def _fill_in(context: typer.Context, path: Path | None) -> Path | None:
    """The options of the file become the defaults of the command."""
    if path is not None:
        from lanczosnet.schemas.run_config import read_run_config

        context.obj = read_run_config(path)
        context.default_map = {**(context.default_map or {}), **context.obj.options()}
    return path


Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", callback=_fill_in, is_eager=True, help="Options from a TOML file."),
]
SaveConfig = Annotated[
    Path | None, typer.Option("--save-config", metavar="FILE", help="Write the options to such a file, then train.")
]


def merged(context: typer.Context, table: str, given: dict[str, Any]) -> dict[str, Any]:
    """The values of a table of the file ("settings" or "data"), and those of the command line over them."""
    config: RunConfig | None = context.obj
    return (config.table(table) if config else {}) | given


def save_config(context: typer.Context, path: Path, settings: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    """All options of this command, so that `--config` repeats it."""
    from lanczosnet.files import atomic_write
    from lanczosnet.schemas.run_config import run_config_text

    document = {**options_of(context), "settings": dict(settings), "data": dict(data)}
    text = run_config_text(document, "lanczosnet train --config")
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def options_of(context: typer.Context) -> dict[str, Any]:
    """The options of a command that `train` has, too, as the file holds them."""
    from lanczosnet.schemas.run_config import RunConfig

    names = sorted(set(RunConfig.__struct_fields__) & context.params.keys())
    found = {name: _plain(context.params[name]) for name in names if name not in TABLES}
    mask = str(found.get("mask"))
    return found | ({"mask": int(mask)} if mask.isdecimal() else {})


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
