"""The schema of `reference.safetensors`, what a model's predictions are compared with; a model works without it.

| array | shape | content |
|---|---|---|
| `items` | `[item]` | numbers of the validation items in the data |
| `y` | `[item, target]` | their targets: numbers, or numbers of classes; NaN where unknown |
| `answers` | `[item, column]` | the model's: a number per target, or the probabilities of all targets' classes |
| `fingerprints` | `[molecule, byte]` | bits of Morgan's fingerprint of the training molecules; none of other graphs |

Of more than 100,000 items or molecules so many are kept, evenly spaced.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np

from lanczosnet.schemas.featurizer import FINGERPRINT_BYTES
from lanczosnet.schemas.record import (
    FileError,
    Positive,
    Record,
    Sha256,
    check_checksum,
    checked,
    parsed,
    signed,
    up_to_date,
)

FORMAT = "lanczosnet-reference"
VERSION = 1
MOST = 100_000  # rows of an array; of fingerprints 25.6 MB
REMEDY = "Copy the whole model directory again, or delete this file: the model then predicts without it"

Arrays = Mapping[str, np.ndarray]
TYPES = {"items": ("int64", 1), "y": ("float32", 2), "answers": ("float32", 2), "fingerprints": ("uint8", 2)}
OPTIONAL = {"fingerprints"}


class ReferenceHeader(Record, frozen=True, kw_only=True):
    """The record in the file's head."""

    format: Literal["lanczosnet-reference"]
    version: Positive
    weights: Sha256  # of the model that answered
    smallest: Positive  # nodes of a training graph
    largest: Positive
    content: Sha256  # of the arrays
    checksum: Sha256  # of all the rest

    def __post_init__(self) -> None:
        if self.smallest > self.largest:
            raise ValueError(f"smallest is {self.smallest}, but largest is {self.largest}")


def reference_header(text: str, path: Path) -> ReferenceHeader:
    """The header in a text."""
    written = parsed(text, path, REMEDY)
    header = checked(up_to_date(written, VERSION, path, REMEDY, key="version"), ReferenceHeader, path, REMEDY)
    check_checksum(written, path, REMEDY)
    return header


def reference_text(weights: str, sizes: tuple[int, int], content: str) -> str:
    """The header of arrays with this digest."""
    known = {"format": FORMAT, "version": VERSION, "weights": weights, "content": content}
    return json.dumps(signed(known | {"smallest": sizes[0], "largest": sizes[1]}))


def check_reference(arrays: Arrays, num_targets: int, num_columns: int, path: Path) -> None:
    """An error that names the first array that breaks a law, for a model of so many targets and outputs."""
    for name in sorted(arrays.keys() | (TYPES.keys() - OPTIONAL)):
        _check_type(name, arrays.get(name), path)
    widths = {"y": num_targets, "answers": num_columns, "fingerprints": FINGERPRINT_BYTES}
    for name, array in arrays.items():
        count = len(array) if name == "fingerprints" else len(arrays["items"])
        shape = (count, *([widths[name]] if name in widths else []))
        if array.shape != shape or len(array) > MOST or np.isinf(array).any():
            problem = f"expected the shape {shape} with at most {MOST:,} rows, none infinite, but got {array.shape}"
            raise FileError(problem, file=path, field=name, remedy=REMEDY)


def _check_type(name: str, array: np.ndarray | None, path: Path) -> None:
    found = "nothing" if array is None else f"{array.dtype} with {array.ndim} axes"
    dtype, axes = TYPES.get(name, ("", 0))
    wanted = f"{dtype} with {axes} axes" if dtype else "nothing"
    if found != wanted:
        raise FileError(f"expected {wanted}, but got {found}", file=path, field=name, remedy=REMEDY)
