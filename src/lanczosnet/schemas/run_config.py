"""The schema of `lanczosnet train --config`: a run as a TOML file whose names are those of the options."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from lanczosnet._extras import require
from lanczosnet.schemas.record import (
    Count,
    Document,
    FileError,
    Meta,
    Name,
    Positive,
    Record,
    Share,
    checked,
    field,
    up_to_date,
)

FORMAT = 1
TABLES = ("settings", "data")
NOTHING = "None"  # TOML has no word for it

Value = bool | int | float | str | list[bool | int | float | str | list[int | float | str]]


class RunConfig(Record, frozen=True, kw_only=True):
    """What a command trains. Options that are not there have their defaults."""

    format: Positive = FORMAT
    source: Name | None = None
    model: Name | None = None
    recipe: Name | None = None
    seed: Count | None = None
    seeds: Positive | None = None
    split: Name | None = None
    fraction: Share | None = None
    split_seed: Count | None = None
    mask: Count | Literal["all"] | None = None
    folds: Annotated[int, Meta(ge=3)] | None = None
    fold: Count | None = None
    repeat: Positive | None = None
    features: Name | None = None
    node_order: Name | None = None
    device: Name | None = None
    precision: Name | None = None
    checkpoint_activations: bool | None = None
    host_features: bool | None = None
    non_deterministic: bool | None = None
    partition: Name | None = None
    checkpoint_seconds: Annotated[float, Meta(ge=0)] | None = None
    tensorboard: bool | None = None
    out: Name | None = None
    data_dir: Name | None = None
    settings: dict[str, Value] = field(default_factory=dict)
    data: dict[str, Value] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """Those that are given, without the tables."""
        names = set(self.__struct_fields__) - {"format", *TABLES}
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def table(self, name: str) -> dict[str, Any]:
        """The values of `--set` ("settings") or of `--data-set` ("data")."""
        return {key: None if value == NOTHING else value for key, value in getattr(self, name).items()}


REMEDY = f"Its fields are {', '.join(RunConfig.__struct_fields__)}"


def read_run_config(path: Path) -> RunConfig:
    """The run that a file describes."""
    if not path.is_file():
        raise FileError("there is no such file", file=path, remedy="Check the path")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"not a TOML file ({error})", file=path, remedy="https://toml.io says how it is written"
        ) from error
    document = up_to_date({"format": FORMAT, **document}, FORMAT, path, REMEDY)
    return checked(document, RunConfig, path, REMEDY)


def run_config_text(document: Document, about: str) -> str:
    """A run as TOML below a line of comment; it can be read again."""
    require("tomli_w", to="to write a configuration")
    import tomli_w

    for table in TABLES:
        document[table] = {key: _plain(value) for key, value in document.get(table, {}).items()}
    kept = {"format": FORMAT} | {key: value for key, value in document.items() if value not in (None, {})}
    checked(kept, RunConfig, about, REMEDY)
    return f"# {about}\n{tomli_w.dumps(kept)}"


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return NOTHING if value is None else value
