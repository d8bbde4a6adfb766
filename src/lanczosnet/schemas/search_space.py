"""The schema of a file of search spaces: the networks of a search, and the values of every setting."""

import tomllib
from pathlib import Path
from typing import Any

from lanczosnet.schemas.record import FileError, Finite, Name, Record, checked, field

Choice = bool | int | float | str | list[int | float]
REMEDY = "docs/how-to/tune.md shows such a file"


class Dimension(Record, frozen=True, kw_only=True):
    """The values of one setting: some choices, or all numbers between two; whole ones if both are whole."""

    choices: list[Choice] | None = None
    low: int | Finite | None = None
    high: int | Finite | None = None
    log: bool = False

    def __post_init__(self) -> None:
        if self.choices is not None:
            if not self.choices or (self.low, self.high, self.log) != (None, None, False):
                raise ValueError("choices need at least one value, and go without low, high and log")
            return
        if self.low is None or self.high is None:
            raise ValueError("a setting has either choices, or low and high")
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError("low must be below high, and above 0 with log")


class Contestant(Record, frozen=True, kw_only=True):
    """A network under a new name: one of the catalogue with some options fixed."""

    model: Name
    fixed: dict[str, Any] = field(default_factory=dict)
    node: dict[str, Dimension] = field(default_factory=dict)  # settings that it alone has, by what is predicted
    graph: dict[str, Dimension] = field(default_factory=dict)


class SearchSpace(Record, frozen=True, kw_only=True):
    """The settings of all networks, by what is predicted, and the networks."""

    node: dict[str, Dimension] = field(default_factory=dict)
    graph: dict[str, Dimension] = field(default_factory=dict)
    networks: dict[str, Contestant] = field(default_factory=dict)


def read_search_space(path: Path) -> SearchSpace:
    """The spaces in a TOML file."""
    if not path.is_file():
        raise FileError("there is no such file", file=path, remedy="Check the path")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FileError(f"not a TOML file ({error})", file=path, remedy=REMEDY) from error
    return checked(document, SearchSpace, path, REMEDY)
