"""Numbers that describe a molecule as a whole, by RDKit. Worker processes import this module: it must not import torch.

| kind | numbers | what |
|---|---|---|
| `morgan` | 2,048 | bits of the Morgan fingerprint of radius 2 |
| `properties` | 12 | what drug chemists look at first, and RDKit finds in a third of a millisecond |
| `rdkit` | 208 | RDKit's descriptors, by the names in `rdkit_names` |
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.formats.columns import LARGEST
from lanczosnet.graphs.molecules.rdkit_names import PROPERTY_NAMES, RDKIT_NAMES
from lanczosnet.schemas.featurizer import FINGERPRINT_BYTES

KINDS = ("morgan", "properties", "rdkit")
NONE = "none"
COMPUTED = {"properties": PROPERTY_NAMES, "rdkit": RDKIT_NAMES}  # those beside the fingerprint
BITS, RADIUS = 8 * FINGERPRINT_BYTES, 2  # of the Morgan fingerprint


def check_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """In one order, each once; a wrong name lists the right ones."""
    if list(kinds) == [NONE]:
        return ()
    for kind in kinds:
        if kind not in KINDS:
            raise DataError(
                f"there are no descriptors {kind!r}", remedy=f"Known are {', '.join(KINDS)}, or {NONE} alone"
            )
    return tuple(kind for kind in KINDS if kind in kinds)


def descriptor_names(columns: Sequence[str], kinds: Sequence[str]) -> list[str]:
    """What the numbers of a molecule are called, in their order: the columns of its table, then those of RDKit."""
    bits = [f"morgan_{i}" for i in range(BITS)] if "morgan" in kinds else []
    return [*columns, *bits, *_names(kinds)]


def _names(kinds: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for kind, names in COMPUTED.items() if kind in kinds for name in names)


def fingerprint(molecule: Any) -> np.ndarray:
    """The Morgan fingerprint, eight bits a byte."""
    return np.packbits(_generator().GetFingerprintAsNumPy(molecule))


def unpacked(fingerprints: np.ndarray) -> np.ndarray:
    """`[molecule, byte]` -> `[molecule, bit]`."""
    return np.unpackbits(fingerprints, axis=1)


def rdkit_descriptors(molecule: Any, kinds: Sequence[str]) -> np.ndarray:
    """Those of all kinds but fingerprints; NaN where RDKit finds none."""
    functions = _functions(_names(kinds))
    values = np.array([_value(function, molecule) for function in functions], dtype=np.float64)
    values[~(np.abs(values) <= LARGEST)] = np.nan
    return values.astype(np.float32)


def _value(function: Callable[[Any], float], molecule: Any) -> float:
    try:
        return float(function(molecule))
    except (ValueError, ArithmeticError, RuntimeError):  # of molecules that a descriptor is not made for
        return float("nan")


@cache
def _functions(names: tuple[str, ...]) -> tuple[Callable[[Any], float], ...]:
    from rdkit.Chem import Descriptors

    known = dict(Descriptors.descList)
    if missing := [name for name in names if name not in known]:
        raise DataError(f"this version of RDKit has no descriptor {missing[0]}", remedy="Install another one")
    return tuple(known[name] for name in names)


@cache
def _generator() -> Any:
    from rdkit.Chem import rdFingerprintGenerator

    return rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=BITS)
