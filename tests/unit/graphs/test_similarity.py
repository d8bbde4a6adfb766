"""Similarity to the nearest of many fingerprints."""

import numpy as np
import pytest

from lanczosnet.graphs.molecules import similarity
from lanczosnet.graphs.molecules.similarity import nearest_similarity


def drawn(count: int, seed: int, density: float = 0.02) -> np.ndarray:
    return np.packbits(np.random.default_rng(seed).random((count, 2048)) < density, axis=1)


def by_definition(found: np.ndarray, known: np.ndarray) -> np.ndarray:
    a, b = (np.unpackbits(bits, axis=1).astype(bool) for bits in (found, known))
    return np.array([[(x & y).sum() / (x | y).sum() for y in b] for x in a]).max(1)


@pytest.mark.parametrize("density", [0.02, 0.6])
def test_similarity_is_tanimoto_in_blocks_of_any_size(monkeypatch, density):
    found, known = drawn(23, 0, density), drawn(31, 1, density)
    known[4] = found[7]
    expected = by_definition(found, known)
    assert expected[7] == 1.0
    for rows, columns in ((256, 4096), (5, 8)):
        monkeypatch.setattr(similarity, "ROWS", rows)
        monkeypatch.setattr(similarity, "COLUMNS", columns)
        np.testing.assert_allclose(nearest_similarity(found, known), expected, rtol=1e-6)


def test_molecules_without_bits_are_alike_and_nothing_is_near_to_none():
    empty, some = np.zeros((1, 256), dtype=np.uint8), drawn(1, 0)
    assert nearest_similarity(empty, empty).tolist() == [1.0]
    assert nearest_similarity(empty, some).tolist() == [0.0]
    assert nearest_similarity(some, drawn(0, 0)).tolist() == [0.0]
    assert len(nearest_similarity(drawn(0, 0), some)) == 0


def test_it_is_that_of_rdkit():
    pytest.importorskip("rdkit")
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator
    from rdkit.DataStructs import TanimotoSimilarity

    from lanczosnet.graphs.molecules.featurizer import MOLECULE
    from lanczosnet.graphs.molecules.smiles import read_smiles

    smiles = ["CCO", "CCCO", "c1ccccc1O"]
    bits = np.stack([molecule.fingerprint for molecule in read_smiles(smiles, MOLECULE)])
    make = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048).GetFingerprint
    first, *others = [make(Chem.MolFromSmiles(text)) for text in smiles]
    expected = max(TanimotoSimilarity(first, other) for other in others)
    assert nearest_similarity(bits[:1], bits[1:])[0] == pytest.approx(expected)
