"""How large what a file or an option asks for may be, checked before memory is taken.

Every limit is raised by an option, `lanczosnet predict --limit layers=5000 ...`, or by an environment variable,
`LANCZOSNET_MAX_LAYERS=5000`, which processes that are started inherit.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

PREFIX = "LANCZOSNET_MAX_"


class LimitError(ValueError):
    """Something is larger than its limit; the message says which variable raises it."""


class Limit(NamedTuple):
    """A default, and what is counted."""

    default: float
    about: str


LIMITS = {
    "LAYERS": Limit(1000, "layers of a network"),
    "STEPS": Limit(10_000, "Lanczos steps"),
    "CHANNELS": Limit(65_536, "channels of a layer"),
    "PARAMETERS": Limit(2**28, "parameters of a network"),
    "SCALES": Limit(1000, "scales of a convolution"),
    "SHORT_SCALE": Limit(1000, "powers of S that are multiplied out"),
    "LONG_SCALE": Limit(1e9, "powers of Ritz values"),
    "NODES": Limit(10_000_000, "nodes of a graph without features"),
    "CLASSES": Limit(10_000, "classes of a target"),
    "COLUMNS": Limit(50_000, "columns of a table"),
    "CELL": Limit(100_000, "letters in a cell of a table"),
    "SMILES": Limit(5000, "letters of a SMILES"),
    "JSON": Limit(2**26, "bytes of a JSON document"),
    "BYTES": Limit(2**30, "bytes of a decompressed file"),
}


def variable(name: str) -> str:
    """The environment variable that raises a limit."""
    return PREFIX + name


def limit(name: str) -> float:
    """The limit in force."""
    text = os.environ.get(variable(name))
    if text is None:
        return LIMITS[name].default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise LimitError(f"{variable(name)} must be a positive number, but is {text!r}")
    return value


@contextmanager
def raised(values: Mapping[str, str]) -> Iterator[None]:
    """Other limits for a while, by name, here and in processes that are started meanwhile."""
    before = {variable(name): os.environ.get(variable(name)) for name in values}
    os.environ.update({variable(name): value for name, value in values.items()})
    try:
        for name in values:
            limit(name)
        yield
    finally:
        for key, value in before.items():
            os.environ.pop(key, None)
            os.environ.update({} if value is None else {key: value})


def check_limit(name: str, value: float, what: str = "") -> None:
    """An error if the value is above its limit; `what` names it, by default the limit's own words."""
    most = limit(name)
    if value > most:
        raise LimitError(too_many(name, value, what))


def too_many(name: str, value: float | None, what: str = "") -> str:
    """What is said of a value above its limit; None where only this is known."""
    found = "this" if value is None else _written(value)
    return (
        f"{what or LIMITS[name].about}: {found} is more than the limit of {_written(limit(name))}. "
        f"If it is meant, set the environment variable {variable(name)}"
    )


def _written(value: float) -> str:
    return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"


# Options of networks, and what limits them: alone, or each number of a list.
_OPTIONS = {
    "num_layers": "LAYERS",
    "num_steps": "STEPS",
    "search_steps": "STEPS",
    "exact_up_to": "STEPS",
    "in_channels": "PARAMETERS",  # words of a vocabulary, types of nodes
    "hidden_channels": "CHANNELS",
    "head_channels": "CHANNELS",
    "descriptor_channels": "CHANNELS",
    "out_channels": "CHANNELS",
    "embedding_channels": "CHANNELS",
    "filter_channels": "CHANNELS",
    "kernel_channels": "CHANNELS",
    "num_edge_types": "CHANNELS",
    "short_scales": "SHORT_SCALE",
    "long_scales": "LONG_SCALE",
    "message_channels": "CHANNELS",
    "merge_channels": "CHANNELS",
    "heads": "CHANNELS",
    "num_partitions": "CHANNELS",
    "max_degree": "CHANNELS",
    "scales": "SHORT_SCALE",
    "polynomial_order": "SHORT_SCALE",
    "cluster_steps": "SHORT_SCALE",
    "cut_steps": "SHORT_SCALE",
}


def check_options(options: dict[str, Any]) -> None:
    """The sizes that a network is asked to have."""
    for key, value in options.items():
        if key not in _OPTIONS:
            continue
        several = isinstance(value, list | tuple)
        if several:
            check_limit("SCALES", len(value), f"the length of {key}")
        for number in value if several else [value]:
            if isinstance(number, int | float) and not isinstance(number, bool):
                _check_option(key, number)


def _check_option(key: str, number: float) -> None:
    try:
        float(number)
    except OverflowError:
        number = float("inf")
    check_limit(_OPTIONS[key], number, key)
