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


def read_smiles(smiles: Sequence[str], featurizer: Featurizer = PAPER) -> list[Molecule | str]:
    """For every SMILES its molecule, or the reason why there is none."""
    chem = rdkit()
    parser = chem.SmilesParserParams()
    parser.removeHs = not featurizer.explicit_hydrogens
    return [_read(chem, parser, text, featurizer) for text in smiles]


def _read(chem: Any, parser: Any, text: str, featurizer: Featurizer) -> Molecule | str:
    text = text.strip()
    if problem := _fault(text):
        return problem
    molecule = chem.MolFromSmiles(text, parser)
    if molecule is None:
        return f"RDKit cannot parse {shown(text)}{_reason(chem, text)}"
    if featurizer.largest_fragment:
        molecule = _largest_fragment(chem, molecule)
    if not molecule.GetNumAtoms():
        return f"{shown(text)} has no atoms"
    return _molecule(chem, chem.AddHs(molecule) if featurizer.explicit_hydrogens else molecule, featurizer)


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


def _molecule(chem: Any, molecule: Any, featurizer: Featurizer) -> Molecule:
    atoms = np.array([atom.GetAtomicNum() for atom in molecule.GetAtoms()], dtype=np.uint8)
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    places = {name: 1 << i for i, name in enumerate(featurizer.bonds)}
    bits = [_bond_bits(chem, bond, places) for bond in molecule.GetBonds()]
    bonds = np.array([*ends, *((j, i) for i, j in ends)], dtype=np.int32).reshape(-1, 2)
    types = np.array([*bits, *bits], dtype=np.uint8 if len(places) <= 8 else np.uint16)
    order = np.lexsort((bonds[:, 1], bonds[:, 0]))
    codes, mass = _codes(molecule, featurizer)
    whole = _whole(chem, molecule, featurizer)
    return Molecule(atoms, bonds[order], types[order], _scaffold(chem, molecule), codes, mass, *whole)


def _whole(chem: Any, molecule: Any, featurizer: Featurizer) -> tuple[np.ndarray, int, np.ndarray]:
    """Fingerprint, identity and descriptors, which do not depend on explicit hydrogens."""
    none = np.zeros(0, dtype=np.float32)
    if not featurizer.atoms and not featurizer.descriptors:
        return np.zeros(0, dtype=np.uint8), 0, none
    heavy = chem.RemoveHs(molecule) if featurizer.explicit_hydrogens else molecule
    digest = hashlib.sha256(chem.MolToSmiles(heavy).encode()).digest()
    numbers = rdkit_descriptors(heavy) if "rdkit" in featurizer.descriptors else none
    return fingerprint(heavy), int.from_bytes(digest[:8], "big", signed=True), numbers


def _scaffold(chem: Any, molecule: Any) -> str:
    from rdkit.Chem.Scaffolds import MurckoScaffold

    if not molecule.GetRingInfo().NumRings():
        return ""
    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=chem.RemoveHs(molecule)))


# How the categories of an atom are read. What a name means must never change: models keep the names.
_READERS: dict[str, Callable[[Any], int | str]] = {
    "element": lambda atom: atom.GetAtomicNum(),
    "degree": lambda atom: atom.GetTotalDegree(),
    "charge": lambda atom: atom.GetFormalCharge(),
    "chirality": lambda atom: str(atom.GetChiralTag()),
    "hydrogens": lambda atom: atom.GetTotalNumHs(includeNeighbors=True),
    "hybridization": lambda atom: str(atom.GetHybridization()),
    "aromatic": lambda atom: int(atom.GetIsAromatic()),
    "ring": lambda atom: int(atom.IsInRing()),
}


def _codes(molecule: Any, featurizer: Featurizer) -> tuple[np.ndarray, np.ndarray]:
    columns = [(_READERS[name], _places(known), len(known)) for name, known in featurizer.atoms.items()]
    if not columns:
        return np.zeros((molecule.GetNumAtoms(), 0), dtype=np.uint8), np.zeros(0, dtype=np.float32)
    found = [[places.get(read(atom), unknown) for read, places, unknown in columns] for atom in molecule.GetAtoms()]
    mass = [atom.GetMass() for atom in molecule.GetAtoms()]
    return np.array(found, dtype=np.uint8).reshape(-1, len(columns)), np.array(mass, dtype=np.float32)


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
