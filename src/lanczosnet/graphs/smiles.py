"""SMILES to arrays with RDKit. Worker processes import this module alone, so it must not import torch."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lanczosnet._extras import require
from lanczosnet.schemas.limits import limit, too_many
from lanczosnet.schemas.record import shown

EDGE_TYPES = ("single", "double", "triple", "aromatic", "conjugated", "in-ring")


class Molecule(NamedTuple):
    """A molecular graph: atomic numbers, both directions of every bond, and the types of each as bits."""

    atoms: np.ndarray  # [atom] uint8
    bonds: np.ndarray  # [edge, end] int32, sorted
    types: np.ndarray  # [edge] uint8, bit i set for EDGE_TYPES[i]
    scaffold: str  # Bemis-Murcko scaffold as SMILES, empty for a molecule without rings


def rdkit() -> Any:
    """RDKit's `Chem`, quiet."""
    require("rdkit", to="to read SMILES")
    from rdkit import Chem, RDLogger

    RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined]
    return Chem


def read_smiles(smiles: Sequence[str]) -> list[Molecule | str]:
    """For every SMILES its molecule, hydrogens explicit, or the reason why there is none."""
    chem = rdkit()
    parser = chem.SmilesParserParams()
    parser.removeHs = False
    return [_read(chem, parser, text) for text in smiles]


def _read(chem: Any, parser: Any, text: str) -> Molecule | str:
    text = text.strip()
    if problem := _fault(text):
        return problem
    molecule = chem.MolFromSmiles(text, parser)
    if molecule is None:
        return f"RDKit cannot parse {shown(text)}{_reason(chem, text)}"
    return _molecule(chem, chem.AddHs(molecule))


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


def _molecule(chem: Any, molecule: Any) -> Molecule:
    from rdkit.Chem.Scaffolds import MurckoScaffold

    atoms = np.array([atom.GetAtomicNum() for atom in molecule.GetAtoms()], dtype=np.uint8)
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
    bits = [_bond_bits(chem, bond) for bond in molecule.GetBonds()]
    bonds = np.array([*ends, *((j, i) for i, j in ends)], dtype=np.int32).reshape(-1, 2)
    types = np.array([*bits, *bits], dtype=np.uint8)
    order = np.lexsort((bonds[:, 1], bonds[:, 0]))
    heavy = chem.RemoveHs(molecule) if molecule.GetRingInfo().NumRings() else None
    scaffold = MurckoScaffold.MurckoScaffoldSmiles(mol=heavy) if heavy is not None else ""
    return Molecule(atoms, bonds[order], types[order], scaffold)


def _bond_bits(chem: Any, bond: Any) -> int:
    """A bond's types; one of another order (dative, ionic, ...) counts as single."""
    order = {chem.BondType.DOUBLE: 1, chem.BondType.TRIPLE: 2, chem.BondType.AROMATIC: 3}.get(bond.GetBondType(), 0)
    return 1 << order | bond.GetIsConjugated() << 4 | bond.IsInRing() << 5
