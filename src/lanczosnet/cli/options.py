"""Options that several verbs share."""

import ast
import re
import shlex
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lanczosnet.cli.stopping import STOP
from lanczosnet.training.engine import DEVICES

if TYPE_CHECKING:
    from lightning.fabric import Fabric

Source = Annotated[str, typer.Argument(help="A data set (`lanczosnet data list` shows them) or a file.")]
ModelFolder = Annotated[Path, typer.Argument(help="A model directory, as `lanczosnet train` leaves it.")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Where data files lie; else LANCZOSNET_DATA, else the user's cache folder."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
RecipeName = Annotated[str, typer.Option(help="paper or modern.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A number of the recipe or an option of the model; repeatable."),
]
DataSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--data-set",
        metavar="NAME=VALUE",
        help="An option of the data's loader, as tasks=16, label=price, edges=edges.csv; repeatable.",
    ),
]


LARGEST_SEED = 2**62  # of what PyTorch, NumPy and the files take

# How the library's errors name an argument, and the option that sets it.
OPTION_OF = {
    "targets=[...]": "--target-columns NAME,NAME",
    "smiles='...'": "--smiles-column NAME",
    "task='regression'": "--task regression",
    "task='classification'": "--task classification",
    "descriptor_columns=[...]": "--descriptor-columns NAME,NAME",
    "pass descriptors={...}": "give a table that has them",
    "resume=True": "--resume",
    "features=none": "--features none",
    "leave node_order out": "leave --node-order out",
    "host_features": "--host-features",
    "seeds=10": "--seeds 10",
    "name it with split_column": "name it with --data-set split_column=NAME",
    "overwrite=True": "--overwrite",
    "another folder": "another folder with --out",
    "another store": "another store with --out",
    "pass the new data": "pass the new data with --data",
}


def in_options(message: str) -> str:
    """An error of the library in the words of the command line."""
    for argument, option in OPTION_OF.items():
        message = message.replace(argument, option)
    return re.sub(r"set the environment variable LANCZOSNET_MAX_(\w+)", _limit_option, message)


def _limit_option(found: re.Match[str]) -> str:
    return f"raise it with --limit {found[1].lower()}=VALUE"


@contextmanager
def resumable(where: str = "", without: Collection[str] = (), extra: Collection[str] = ()) -> Iterator[None]:
    """What is on the disk is whole at any moment: Ctrl-C and SIGTERM only have to say how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        arguments = [argument for argument in sys.argv[1:] if argument not in without]
        command = shlex.join(["lanczosnet", *arguments, *extra])
        typer.echo(f"\nstopped{where}; to continue: {command}", err=True)
        raise typer.Exit(STOP.exit_code) from None


def read_settings(texts: list[str] | None) -> dict[str, Any]:
    """`name=value` pairs; values that look like Python numbers, lists or None are read as such."""
    settings: dict[str, Any] = {}
    for text in texts or []:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise typer.BadParameter(f"{text!r} is not of the form NAME=VALUE")
        settings[name.strip().replace("-", "_")] = _value(value.strip())
    return settings


def read_data_settings(texts: list[str] | None) -> dict[str, Any]:
    """The same of `--data-set`, which cannot set what other options set."""
    settings = read_settings(texts)
    for name, option in {"data_dir": "--data-dir", "source": "the argument SOURCE"}.items():
        if name in settings:
            raise typer.BadParameter(f"{name} is set by {option}", param_hint="--data-set")
    return settings


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return {"true": True, "false": False}.get(text.lower(), text)


def check_device(device: str) -> None:
    """A wrong name is bad usage; costs nothing."""
    if device not in DEVICES:
        raise typer.BadParameter(f"{device!r} is none of {', '.join(DEVICES)}", param_hint="--device")


def fabric_for(
    device: str, precision: str = "32-true", *, deterministic: bool = True, host_features: bool | None = None
) -> "Fabric":
    """The device of a name."""
    check_device(device)
    from lanczosnet.training.engine.devices import fabric_for as make

    return make(device, precision, deterministic=deterministic, host_features=host_features)


def device_of(device: str) -> Any:
    """Where a trained model predicts."""
    return "cpu" if device == "cpu" else fabric_for(device).device


def one_graph(data: Any, number: int) -> Any:
    """The graph itself, or the one of this number where there are many."""
    from torch_geometric.data import Data

    if isinstance(data, Data):
        return data
    if number >= len(data):
        raise ValueError(f"{data.name} has {len(data):,} graphs, numbered from 0: there is no graph {number}")
    return data[number]
