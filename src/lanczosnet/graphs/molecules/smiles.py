"""SMILES to arrays with RDKit. Worker processes import this module alone, so it must not import torch."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lanczosnet._extras import require
from lanczosnet.graphs.molecules.descriptors import fingerprint, rdkit_descriptors
from lanczosnet.graphs.molecules.featurizer import PAPER, PAPER_BONDS, Featurizer
from lanczosnet.schemas.limits import limit, too_many
from lanczosnet.schemas.record import shown

EDGE_TYPES = PAPER_BONDS


class Molecule(NamedTuple):
    """A molecular graph: what is known of each atom, and both directions of every bond with its types as bits."""

    atoms: np.ndarray  # [atom] uint8, atomic numbers
    bonds: np.ndarray  # [edge, end] int32, sorted
    types: np.ndarray  # [edge] uint8 or uint16, bit i set for the featurizer's bond i
    scaffold: str  # Bemis-Murcko scaffold as SMILES, empty for a molecule without rings
    codes: np.ndarray  # [atom, category] uint8, the place among the featurizer's categories, or their number
    mass: np.ndarray  # [atom] float32, without categories empty
    fingerprint: np.ndarray  # [byte] uint8, of Morgan; without categories empty
    identity: int  # the same of the same molecule, whatever its SMILES; without categories 0
    descriptors: np.ndarray  # [descriptor] float32, of RDKit where the featurizer wants them


def rdkit() -> Any:
    """RDKit's `Chem`, quiet."""
    require("rdkit", to="to read SMILES")
    from rdkit import Chem, RDLogger

    RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined]
    return Chem


def read_smiles(
    smiles: Sequence[str], featurizer: Featurizer = PAPER, *, for_splits: bool = True
) -> list[Molecule | str]:
    """For every SMILES its molecule, or the reason why there is none.

    Scaffold and identity are what molecules are split by: without `for_splits` they are left out, as empty and 0.
    """
    chem = rdkit()
    parser = chem.SmilesParserParams()
    parser.removeHs = not featurizer.explicit_hydrogens
    reader = _Reader(chem, featurizer, for_splits)
    return [_read(chem, parser, text, reader) for text in smiles]


def _read(chem: Any, parser: Any, text: str, reader: "_Reader") -> Molecule | str:
    text = text.strip()
    if problem := _fault(text):
        return problem
    molecule = chem.MolFromSmiles(text, parser)
    if molecule is None:
        return f"RDKit cannot parse {shown(text)}{_reason(chem, text)}"
    if reader.featurizer.largest_fragment:
        molecule = _largest_fragment(chem, molecule)
    if not molecule.GetNumAtoms():
        return f"{shown(text)} has no atoms"
    return reader.molecule(chem.AddHs(molecule) if reader.featurizer.explicit_hydrogens else molecule)


def _fault(text: str) -> str:
    """Why RDKit is not asked. It would take what stands before white space for the whole."""
    if not text:
        return "the SMILES is empty"
    if text.split() != [text]:
        return f"the SMILES {shown(text)} has white space in it"
    if len(text) > limit("SMILES"):
        return too_many("SMILES", len(text))
    return ""


def _reason(chem: Any, text: str) -> str:
    unsanitized = chem.MolFromSmiles(text, sanitize=False)
    if unsanitized is None:
        return " (syntax error)"
    problems = chem.DetectChemistryProblems(unsanitized)
    return f" ({problems[0].Message()})" if problems else ""


def _largest_fragment(chem: Any, molecule: Any) -> Any:
    """The part with most heavy atoms; of equals the first."""
    return max(chem.GetMolFrags(molecule, asMols=True), key=lambda part: part.GetNumHeavyAtoms(), default=molecule)


class _Reader:
    """From RDKit's molecules to ours. Kinds of atoms and bonds repeat: each is looked up once."""

    def __init__(self, chem: Any, featurizer: Featurizer, for_splits: bool) -> None:
        self.chem, self.featurizer, self.for_splits = chem, featurizer, for_splits
        self.places = {name: 1 << i for i, name in enumerate(featurizer.bonds)}
        self.columns = [(_places(known), len(known)) for known in featurizer.atoms.values()]
        self.readers = [_READERS[name] for name in featurizer.atoms]
        self.code_of: dict[tuple[Any, ...], list[int]] = {}
        self.bits_of: dict[tuple[Any, ...], int] = {}

    def molecule(self, molecule: Any) -> Molecule:
        # RDKit's own iterators count all atoms anew at every step.
        atoms = [molecule.GetAtomWithIdx(i) for i in range(molecule.GetNumAtoms())]
        found = [molecule.GetBondWithIdx(i) for i in range(molecule.GetNumBonds())]
        ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in found]
        bits = [self._bits(bond) for bond in found]
        bonds = np.array([*ends, *((j, i) for i, j in ends)], dtype=np.int32).reshape(-1, 2)
        types = np.array([*bits, *bits], dtype=np.uint8 if len(self.places) <= 8 else np.uint16)
        order = np.lexsort((bonds[:, 1], bonds[:, 0]))
        return Molecule(
            np.array([atom.GetAtomicNum() for atom in atoms], dtype=np.uint8),
            bonds[order],
            types[order],
            _scaffold(self.chem, molecule) if self.for_splits else "",
            np.array([self._codes(atom) for atom in atoms], dtype=np.uint8).reshape(len(atoms), len(self.columns)),
            np.array([atom.GetMass() for atom in atoms] if self.columns else [], dtype=np.float32),
            *self._whole(molecule),
        )

    def _codes(self, atom: Any) -> list[int]:
        """The place of an atom among the categories of each column, or their number."""
        seen = tuple([read(atom) for read in self.readers])
        if seen not in self.code_of:
            pairs = zip(seen, self.columns, strict=True)
            self.code_of[seen] = [places.get(_plain(value), unknown) for value, (places, unknown) in pairs]
        return self.code_of[seen]

    def _bits(self, bond: Any) -> int:
        seen = (bond.GetBondType(), bond.GetStereo(), bond.GetIsConjugated(), bond.IsInRing())
        if seen not in self.bits_of:
            self.bits_of[seen] = _bond_bits(self.chem, bond, self.places)
        return self.bits_of[seen]

    def _whole(self, molecule: Any) -> tuple[np.ndarray, int, np.ndarray]:
        """Fingerprint, identity and descriptors, which do not depend on explicit hydrogens."""
        none, featurizer = np.zeros(0, dtype=np.float32), self.featurizer
        if not featurizer.atoms and not featurizer.descriptors:
            return np.zeros(0, dtype=np.uint8), 0, none
        heavy = self.chem.RemoveHs(molecule) if featurizer.explicit_hydrogens else molecule
        numbers = rdkit_descriptors(heavy, featurizer.descriptors)
        return fingerprint(heavy), self._identity(heavy) if self.for_splits else 0, numbers

    def _identity(self, heavy: Any) -> int:
        digest = hashlib.sha256(self.chem.MolToSmiles(heavy).encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)


def _scaffold(chem: Any, molecule: Any) -> str:
    from rdkit.Chem.Scaffolds import MurckoScaffold

    if not molecule.GetRingInfo().NumRings():
        return ""
    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=chem.RemoveHs(molecule)))


# How the categories of an atom are read. What a name means must never change: models keep the names.
_READERS: dict[str, Callable[[Any], Any]] = {
    "element": lambda atom: atom.GetAtomicNum(),
    "degree": lambda atom: atom.GetTotalDegree(),
    "charge": lambda atom: atom.GetFormalCharge(),
    "chirality": lambda atom: atom.GetChiralTag(),
    "hydrogens": lambda atom: atom.GetTotalNumHs(includeNeighbors=True),
    "hybridization": lambda atom: atom.GetHybridization(),
    "aromatic": lambda atom: atom.GetIsAromatic(),
    "ring": lambda atom: atom.IsInRing(),
}


def _plain(value: Any) -> int | str:
    """RDKit's enumerations by their names, which are the same in all its versions."""
    return str(value) if hasattr(value, "name") else int(value)


def _places(known: Sequence[int | str]) -> dict[int | str, int]:
    return {value: place for place, value in enumerate(known)}


def _bond_bits(chem: Any, bond: Any, places: dict[str, int]) -> int:
    """A bond's types; one of another order (dative, ionic, ...) is "other", or single where there is no such type."""
    orders = {
        chem.BondType.SINGLE: "single",
        chem.BondType.DOUBLE: "double",
        chem.BondType.TRIPLE: "triple",
        chem.BondType.AROMATIC: "aromatic",
    }
    bits = places.get(orders.get(bond.GetBondType(), "other"), places["single"])
    bits |= bond.GetIsConjugated() * places["conjugated"] | bond.IsInRing() * places["in-ring"]
    stereo = {chem.BondStereo.STEREOE: "E", chem.BondStereo.STEREOZ: "Z"}.get(bond.GetStereo(), "")
    return int(bits | places.get(stereo, 0))
