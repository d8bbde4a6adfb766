"""The schema of a featuriser, which models and packed molecules carry."""

from collections.abc import Sequence
from typing import Annotated, Literal

from lanczosnet.schemas.record import Meta, Name, Record, check_distinct

AtomCategory = Literal["element", "degree", "charge", "chirality", "hydrogens", "hybridization", "aromatic", "ring"]

NAMED = ("chirality", "hybridization")  # categories whose values are texts; those of the others are numbers
FINGERPRINT_BYTES = 256  # of the Morgan fingerprint
COMPUTED = {"properties": 12, "rdkit": 208}  # numbers that RDKit computes of a molecule


def num_computed(kinds: Sequence[str]) -> int:
    return sum(number for kind, number in COMPUTED.items() if kind in kinds)


class FeaturizerRecord(Record, frozen=True, kw_only=True):
    """How SMILES become graphs: `lanczosnet.graphs.molecules.featurizer` documents it."""

    name: Name
    version: Annotated[int, Meta(ge=1, le=1)]
    explicit_hydrogens: bool
    largest_fragment: bool
    atoms: dict[AtomCategory, Annotated[tuple[int | str, ...], Meta(min_length=1, max_length=255)]]
    bonds: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=16)]

    operators: tuple[Name, ...]
    descriptors: tuple[Literal["morgan", "properties", "rdkit"], ...] = ()

    def __post_init__(self) -> None:
        check_distinct("bonds", self.bonds)
        check_distinct("operators", self.operators)
        check_distinct("descriptors", self.descriptors)
        if not set(self.operators) <= set(self.bonds):
            raise ValueError("operators must be some of bonds")
        for required in ("single", "conjugated", "in-ring"):
            if required not in self.bonds:
                raise ValueError(f"bonds must have {required}")
        for name, known in self.atoms.items():
            check_distinct(f"atoms.{name}", known)
            kind = str if name in NAMED else int
            if not all(isinstance(value, kind) for value in known):
                raise ValueError(f"atoms.{name} must have only {'texts' if kind is str else 'whole numbers'}")
