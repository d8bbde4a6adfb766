"""Options that several verbs share."""

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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


def read_settings(texts: list[str] | None) -> dict[str, Any]:
    """`name=value` pairs; values that look like Python numbers, lists or None are read as such."""
    settings: dict[str, Any] = {}
    for text in texts or []:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise typer.BadParameter(f"{text!r} is not of the form NAME=VALUE")
        settings[name.strip().replace("-", "_")] = _value(value.strip())
    return settings


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return {"true": True, "false": False}.get(text.lower(), text)


def check_device(device: str) -> None:
    """A wrong name is bad usage; costs nothing."""
    if device not in ("auto", "cpu", "cuda", "mps"):
        raise typer.BadParameter(f"{device!r} is none of auto, cpu, cuda, mps", param_hint="--device")


def fabric_for(device: str, precision: str = "32-true", *, any_order: bool = False) -> "Fabric":
    """The device of a name."""
    check_device(device)
    from lanczosnet.training.engine.devices import fabric_for as make

    return make(device, precision, any_order=any_order)


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
