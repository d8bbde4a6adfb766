"""Whether a molecule is like those that a model was trained on; one that is not is predicted, and marked."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from lanczosnet.graphs import PackedGraphs
from lanczosnet.graphs.molecules.similarity import nearest_similarity
from lanczosnet.training.predict import Predictions
from lanczosnet.training.reference import ModelReference
from lanczosnet.training.smiles_inputs import SmilesInputs

# Tanimoto similarity of Morgan fingerprints below which a molecule has no relative among the training molecules:
# docs/how-to/molecules.md says how many do, and how much larger their errors are.
LEAST_SIMILARITY = 0.3


class KnownMolecule(NamedTuple):
    """What the training domain is judged by."""

    num_atoms: int
    fingerprint: np.ndarray  # of no bytes where it is not known


def marked(found: Predictions, items: Any, references: Sequence[ModelReference | None]) -> Predictions:
    """Predictions with `notices` and, where fingerprints are known, `similarity`.

    Unchanged without any reference, and where the items are no molecules. The training molecules of several models are
    those of all of them.
    """
    known = _different([reference for reference in references if reference is not None])
    molecules = _molecules(items)
    if not known or not molecules:
        return found
    chosen = [None if error else molecule for molecule, error in zip(molecules, found.errors, strict=True)]
    similarity = _similarity(chosen, known)
    smallest, largest = min(each.sizes[0] for each in known), max(each.sizes[1] for each in known)
    nearest = [np.nan] * len(chosen) if similarity is None else similarity.tolist()
    notices = tuple(_notice(*each, smallest, largest) for each in zip(chosen, nearest, strict=True))
    return replace(found, notices=notices, similarity=None if similarity is None else torch.from_numpy(similarity))


def _molecules(items: Any) -> list[KnownMolecule | None]:
    """Those of SMILES that were read, or of a packed data set that was made from SMILES."""
    if isinstance(items, SmilesInputs):
        read = items.molecules
        return [None if each is None else KnownMolecule(len(each.atoms), each.fingerprint) for each in read]
    if isinstance(items, PackedGraphs) and "fingerprints" in items.about:
        sizes = items.node_ptr.diff().tolist()
        return [KnownMolecule(*each) for each in zip(sizes, items.about["fingerprints"].cpu().numpy(), strict=True)]
    return []


def _different(references: Sequence[ModelReference]) -> list[ModelReference]:
    """Those with other training molecules, of which seeds of one split have one set."""
    kept: list[ModelReference] = []
    for reference in references:
        if not any(_equal(reference, other) for other in kept):
            kept.append(reference)
    return kept


def _equal(one: ModelReference, other: ModelReference) -> bool:
    mine, theirs = one.fingerprints, other.fingerprints
    if mine is None or theirs is None:
        return one.sizes == other.sizes and mine is theirs
    return one.sizes == other.sizes and np.array_equal(mine, theirs)


def _similarity(molecules: Sequence[KnownMolecule | None], known: Sequence[ModelReference]) -> np.ndarray | None:
    """`[molecule]`, NaN without a prediction; None where the models or the molecules have no fingerprints."""
    trained = [reference.fingerprints for reference in known if reference.fingerprints is not None]
    places = [i for i, molecule in enumerate(molecules) if molecule is not None and molecule.fingerprint.size]
    if not trained:
        return None
    similarity = np.full(len(molecules), np.nan, dtype=np.float32)
    if places:
        found = np.stack([molecule.fingerprint for i in places if (molecule := molecules[i]) is not None])
        similarity[places] = np.max([nearest_similarity(found, each) for each in trained], axis=0)
    return similarity


def _notice(molecule: KnownMolecule | None, similarity: float, smallest: int, largest: int) -> str:
    """Why it is outside the training domain, if it is."""
    if molecule is None:
        return ""
    size, reasons = molecule.num_atoms, []
    if not smallest <= size <= largest:
        reasons.append(f"{size} atoms, training molecules have {smallest} to {largest}")
    if similarity < LEAST_SIMILARITY:
        reasons.append(f"the similarity to the nearest training molecule is {similarity:.2f}")
    return f"outside the training domain: {'; '.join(reasons)}" if reasons else ""
