"""The schema of a file of packed molecules: its header, and the laws of its arrays.

| array | shape | content |
|---|---|---|
| `atoms` | `[atom]` | atomic numbers |
| `atom_ptr` | `[molecule + 1]` | where each molecule's atoms begin, and their end |
| `bonds` | `[bond, end]` | both directions of every bond, atoms numbered within their molecule |
| `types` | `[bond]` | bits; of 16 with more than 8 types |
| `codes`, `mass` | `[atom, category]`, `[atom]` | numbers of categories, and masses, where the featuriser has any |
| `bond_ptr` | `[molecule + 1]` | where each molecule's bonds begin, and their end |
| `y` | `[molecule, target]` | numbers, or numbers of classes; NaN where unknown |
| `columns` | `[molecule, column]` | descriptors of the table; NaN where unknown |
| `fingerprints` | `[molecule, byte]` | bits of Morgan's fingerprint; files of earlier versions have none |
| `identity` | `[molecule]` | equal for equal molecules; files of earlier versions have none |
| `descriptors` | `[molecule, descriptor]` | RDKit's, where the featuriser has them; NaN where unknown |
| `rows`, `scaffold` | `[molecule]` | row of the CSV; number of the scaffold |
| `smiles`, `smiles_ptr` | `[byte]`, `[molecule + 1]` | the SMILES in UTF-8, and where each begins |
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from lanczosnet.schemas.featurizer import FINGERPRINT_BYTES, FeaturizerRecord, num_computed
from lanczosnet.schemas.limits import check_limit
from lanczosnet.schemas.model_config import check_length
from lanczosnet.schemas.record import (
    Document,
    FileError,
    Meta,
    Positive,
    Record,
    Sha256,
    check_checksum,
    checked,
    field,
    parsed,
    shown,
    signed,
    up_to_date,
)

FORMAT = "lanczosnet-molecules"
VERSION = 1  # of the file format and of the featurisation; raise it whenever either changes
REMEDY = "Delete it; it is made again from the source"

Arrays = Mapping[str, np.ndarray]
TYPES = {  # and the number of axes
    "atoms": ("uint8", 1),
    "atom_ptr": ("int64", 1),
    "bonds": ("int32", 2),
    "types": ("uint8", 1),
    "bond_ptr": ("int64", 1),
    "y": ("float32", 2),
    "rows": ("int64", 1),
    "scaffold": ("int64", 1),
    "smiles": ("uint8", 1),
    "smiles_ptr": ("int64", 1),
}
OPTIONAL = {"fingerprints": ("uint8", 2), "identity": ("int64", 1)}  # of molecules that a featuriser describes


class OriginRecord(Record, frozen=True, kw_only=True):
    """What the arrays were made from, and what is known of all molecules together."""

    source: Sha256  # of the CSV
    options: dict[str, Any]  # of the reader
    targets: Annotated[tuple[str, ...], Meta(min_length=1)]
    task: Literal["regression", "classification"]
    classes: tuple[tuple[str, ...], ...]
    atom_types: Annotated[tuple[Annotated[int, Meta(ge=0, le=255)], ...], Meta(min_length=1)]
    skipped: tuple[tuple[Positive, str], ...]
    featurizer: FeaturizerRecord | None = None  # None for the paper's input
    unknown: dict[str, Positive] = field(default_factory=dict)  # how many atoms have an unknown category, by its name

    descriptor_columns: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()  # of the molecules, where a column says them
    notes: tuple[str, ...] = ()  # what is said of the columns and rows

    def __post_init__(self) -> None:
        if self.task == "regression" and self.classes:
            raise ValueError("classes must be empty for a regression")
        if self.task == "classification":
            check_length("classes", self.classes, "target", self.targets)
            for names in self.classes:
                check_limit("CLASSES", len(names))


class PackedHeader(Record, frozen=True, kw_only=True):
    """The record in the file's head."""

    format: Literal["lanczosnet-molecules"]
    version: Positive
    origin: OriginRecord
    content: Sha256  # of the arrays
    checksum: Sha256 | None = None  # of all the rest; None in files of earlier versions


def packed_header(text: str, path: Path) -> PackedHeader:
    """The header in a text."""
    written = parsed(text, path, REMEDY)
    header = checked(up_to_date(written, VERSION, path, REMEDY, key="version"), PackedHeader, path, REMEDY)
    check_checksum(written, path, REMEDY)
    return header


def header_text(origin: Document, content: str) -> str:
    """The header that says what arrays of this digest were made from."""
    return json.dumps(signed({"format": FORMAT, "version": VERSION, "origin": origin, "content": content}))


def origin_record(document: Document, path: Path) -> OriginRecord:
    """What was just made from a CSV."""
    return checked(document, OriginRecord, path, "")


def check_arrays(arrays: Arrays, origin: OriginRecord, path: Path) -> None:
    """An error that names the first array that breaks a law."""
    types = TYPES | _types_of(origin)
    for name in sorted(arrays.keys() | (types.keys() - OPTIONAL.keys())):
        _check_type(arrays.get(name), *types.get(name, ("", 0)), name, path)
    for name, problem in _broken(arrays, origin):
        raise FileError(problem, file=path, field=name, remedy=REMEDY)


def _types_of(origin: OriginRecord) -> dict[str, tuple[str, int]]:
    """Where they differ from those of the paper's input."""
    featurizer = origin.featurizer
    columns: dict[str, tuple[str, int]] = {"columns": ("float32", 2)} if origin.descriptor_columns else {}
    if featurizer is None:
        return columns
    described: dict[str, tuple[str, int]] = {"codes": ("uint8", 2), "mass": ("float32", 1)} if featurizer.atoms else {}
    described |= {"types": ("uint16", 1)} if len(featurizer.bonds) > 8 else {}
    described |= {"descriptors": ("float32", 2)} if num_computed(featurizer.descriptors) else {}
    return columns | described | OPTIONAL


def _check_type(array: np.ndarray | None, dtype: str, axes: int, name: str, path: Path) -> None:
    found = "nothing" if array is None else f"{array.dtype} with {array.ndim} axes"
    wanted = f"{dtype} with {axes} axes" if dtype else "nothing"
    if found != wanted:
        raise FileError(f"expected {wanted}, but got {found}", file=path, field=name, remedy=REMEDY)


def _broken(arrays: Arrays, origin: OriginRecord) -> list[tuple[str, str]]:
    """The laws that do not hold, where the pointers are right at least as long as the arrays."""
    count = len(arrays["y"])
    pointers = {"atom_ptr": arrays["atoms"], "bond_ptr": arrays["bonds"], "smiles_ptr": arrays["smiles"]}
    problems = [(name, _pointer_fault(arrays[name], len(held), count)) for name, held in pointers.items()]
    of_molecules = ("rows", "scaffold", "columns", "fingerprints", "identity", "descriptors")
    problems += [(name, _length_fault(arrays[name], count)) for name in of_molecules if name in arrays]
    problems += [("types", _length_fault(arrays["types"], len(arrays["bonds"])))]
    problems += [(key, _length_fault(arrays[key], len(arrays["atoms"]))) for key in ("codes", "mass") if key in arrays]
    found = [(name, problem) for name, problem in problems if problem]
    return found or [(name, problem) for name, problem in _content_faults(arrays, origin) if problem]


def _pointer_fault(pointer: np.ndarray, end: int, count: int) -> str:
    if len(pointer) != count + 1:
        return f"expected {count + 1} values, one more than molecules, but got {len(pointer)}"
    is_sorted = pointer[0] == 0 and pointer[-1] == end and bool((np.diff(pointer) >= 0).all())
    return "" if is_sorted else f"expected sorted values from 0 to {end}"


def _length_fault(array: np.ndarray, count: int) -> str:
    return "" if len(array) == count else f"expected {count} values, but got {len(array)}"


def _content_faults(arrays: Arrays, origin: OriginRecord) -> list[tuple[str, str]]:
    sizes = np.diff(arrays["atom_ptr"])
    most = np.repeat(sizes, np.diff(arrays["bond_ptr"]))
    bonds, found = arrays["bonds"], np.unique(arrays["atoms"]).tolist()
    laws = {
        "atom_ptr": (bool(len(sizes)) and bool((sizes > 0).all()), "expected a molecule at least, none without atoms"),
        "bonds": (
            bonds.shape[1] == 2 and bool((bonds >= 0).all() and (bonds < most[:, None]).all()),
            "expected pairs of atoms of the molecule",
        ),
        "origin.atom_types": (found == sorted(origin.atom_types), f"expected the elements of atoms, {shown(found)}"),
        "rows": (bool((arrays["rows"] > 0).all()), "expected numbers from 1 on"),
        "origin.parts": (len(origin.parts) in (0, len(sizes)), "expected one per molecule"),
        "scaffold": (bool((arrays["scaffold"] >= 0).all()), "expected numbers from 0 on"),
    }
    if origin.featurizer is not None and origin.featurizer.atoms:
        most_codes = np.array([len(known) for known in origin.featurizer.atoms.values()])
        codes, mass = arrays["codes"], arrays["mass"]
        is_known = codes.shape[1] == len(most_codes) and bool((codes <= most_codes).all())
        laws["codes"] = (is_known, "expected numbers of the featuriser's categories")
        laws["mass"] = (bool((np.isfinite(mass) & (mass >= 0)).all()), "expected masses")
    laws |= _descriptor_laws(arrays, origin)
    problems = [(name, "" if holds else problem) for name, (holds, problem) in laws.items()]
    if not any(problem for _, problem in problems):
        problems.append(("bonds", _direction_fault(arrays)))
    return [*problems, ("y", _target_fault(arrays["y"], origin)), ("smiles", _text_fault(arrays))]


def _descriptor_laws(arrays: Arrays, origin: OriginRecord) -> dict[str, tuple[bool, str]]:
    widths = {
        "columns": len(origin.descriptor_columns),
        "fingerprints": FINGERPRINT_BYTES,
        "descriptors": num_computed(origin.featurizer.descriptors if origin.featurizer else ()),
    }
    laws = {
        name: (
            arrays[name].shape[1] == width and not np.isinf(arrays[name]).any(),
            f"expected {width} numbers, none infinite",
        )
        for name, width in widths.items()
        if name in arrays
    }
    if origin.featurizer is not None and "morgan" in origin.featurizer.descriptors and "fingerprints" not in arrays:
        laws["fingerprints"] = (False, "expected those that the featuriser names")
    return laws


def _direction_fault(arrays: Arrays) -> str:
    """Bonds are sorted, so that the reverse of each is found by sorting once more."""
    first = np.repeat(arrays["atom_ptr"][:-1], np.diff(arrays["bond_ptr"]))
    ends = arrays["bonds"] + first[:, None]
    forth, back = (ends[:, i] * len(arrays["atoms"]) + ends[:, 1 - i] for i in (0, 1))
    order = np.argsort(back)
    is_sorted = bool((np.diff(forth) > 0).all())
    if is_sorted and np.array_equal(back[order], forth) and np.array_equal(arrays["types"][order], arrays["types"]):
        return ""
    return "expected both directions of every bond once, sorted and of the same types"


def _target_fault(y: np.ndarray, origin: OriginRecord) -> str:
    if y.shape[1] != len(origin.targets):
        return f"expected a column per target ({len(origin.targets)}), but got {y.shape[1]}"
    if np.isinf(y).any():
        return "expected finite numbers, or NaN where unknown"
    for column, names in zip(y.T, origin.classes, strict=False):
        known = column[~np.isnan(column)]
        if not bool(((known >= 0) & (known < len(names)) & (known == np.floor(known))).all()):
            return f"expected numbers of classes, 0 to {len(names) - 1}"
    return ""


def _text_fault(arrays: Arrays) -> str:
    """Texts that begin and end between letters are UTF-8 together if they are one by one."""
    text, begins = arrays["smiles"], arrays["smiles_ptr"][:-1]
    try:
        text.tobytes().decode()
    except UnicodeDecodeError as error:
        return f"expected text in UTF-8 ({error.reason})"
    begins = begins[begins < len(text)]
    is_within = (text[begins] & 0xC0) == 0x80
    return "a pointer leads into the middle of a letter" if is_within.any() else ""
