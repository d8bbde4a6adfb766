"""What a network sees of a molecule, as data: recorded in the model, so that predictions see what training saw.

An atom is described by categories (element, degree, ...), one number per category and one for all that are unknown,
and by its mass. A bond has several types at once. Worker processes import this module, so it must not import torch.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

PAPER_BONDS = ("single", "double", "triple", "aromatic", "conjugated", "in-ring")
BONDS = ("single", "double", "triple", "aromatic", "other", "conjugated", "in-ring", "E", "Z")
# Those that the convolutions tell apart; all others count at their atoms, which costs nothing.
OPERATORS = ("double", "triple", "aromatic", "in-ring")
OTHER, BOND = "other", "bond order"  # the type of bonds of another order, and what their number is counted under
LISTS = ("bonds", "operators", "descriptors")
MASS_SCALE = 0.01  # brings masses to the order of the other numbers

# The first four rows of the periodic table and iodine, and what organic chemistry has of all else.
ATOMS: dict[str, tuple[int, ...] | tuple[str, ...]] = {
    "element": (*range(1, 37), 53),
    "degree": (0, 1, 2, 3, 4, 5),
    "charge": (-2, -1, 0, 1, 2),
    "chirality": ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW"),
    "hydrogens": (0, 1, 2, 3, 4),
    "hybridization": ("S", "SP", "SP2", "SP2D", "SP3", "SP3D", "SP3D2"),
    "aromatic": (0, 1),
    "ring": (0, 1),
}


@dataclass(frozen=True)
class Featurizer:
    """How SMILES become graphs.

    `atoms` names the categories of an atom; without any, the atomic number is the only input, as in the paper. `bonds`
    names the types of bonds, whose numbers at an atom are features of it, and `operators` those with an operator each.
    `version` says which program first computed features in this way.
    """

    name: str
    version: int = 1
    explicit_hydrogens: bool = False
    largest_fragment: bool = False  # of a salt or a mixture
    atoms: Mapping[str, tuple[int, ...] | tuple[str, ...]] = field(default_factory=dict)
    bonds: tuple[str, ...] = BONDS
    operators: tuple[str, ...] = OPERATORS
    descriptors: tuple[str, ...] = ()  # kinds that RDKit computes, of the molecule as a whole

    def described(self) -> dict[str, Any]:
        """As JSON holds it."""
        lists = {key: list(getattr(self, key)) for key in LISTS}
        document = asdict(self) | lists | {"atoms": {name: list(known) for name, known in self.atoms.items()}}
        return {key: value for key, value in document.items() if key != "descriptors" or value}

    @property
    def num_features(self) -> int:
        """Of an atom: every category and its slot for the unknown, the mass, and its bonds of every type."""
        return sum(len(known) + 1 for known in self.atoms.values()) + 1 + len(self.bonds)

    def features(self, codes: np.ndarray, mass: np.ndarray, bonds: np.ndarray) -> np.ndarray:
        """`[atom, feature]` from one-hot categories, the mass, and the number of bonds of every type."""
        sizes = [len(known) + 1 for known in self.atoms.values()]
        first = np.cumsum([0, *sizes[:-1]])
        features = np.zeros((len(codes), self.num_features), dtype=np.float32)
        features[np.arange(len(codes))[:, None], codes + first] = 1.0
        features[:, sum(sizes)] = mass * MASS_SCALE
        features[:, sum(sizes) + 1 :] = bonds
        return features

    def unknown(self, codes: np.ndarray, types: np.ndarray) -> dict[str, int]:
        """How many atoms have an unknown category, by its name, and how many bonds are of no known order.

        `types` has both directions of a bond. What there is none of is left out; without categories nothing is counted.
        """
        counts = {name: int((codes[:, i] == len(known)).sum()) for i, (name, known) in enumerate(self.atoms.items())}
        if self.atoms and OTHER in self.bonds:
            counts[BOND] = int((types >> self.bonds.index(OTHER) & 1).sum()) // 2
        return {name: count for name, count in counts.items() if count}


PAPER = Featurizer("paper", explicit_hydrogens=True, bonds=PAPER_BONDS, operators=PAPER_BONDS)
MOLECULE = Featurizer("molecule", atoms=ATOMS, descriptors=("properties",))
FEATURIZERS = {"molecule": MOLECULE, "paper": PAPER}


def featurizer_from(record: Mapping[str, Any]) -> Featurizer:
    """What `described` says; JSON knows lists alone."""
    atoms = {name: tuple(known) for name, known in record["atoms"].items()}
    lists = {key: tuple(record[key]) for key in LISTS if key in record}
    return Featurizer(**dict(record) | {"atoms": atoms} | lists)


def unknown_noted(counts: Mapping[str, int]) -> list[str]:
    """What is said of unknown categories."""
    return [
        f"{count:,} {'bond' if name == BOND else 'atom'}{'s' * (count > 1)} of an unknown {name}: "
        f"{'they share one category' if count > 1 else 'it has the category of all such'}"
        for name, count in counts.items()
    ]
