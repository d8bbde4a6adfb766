"""Tanimoto similarity of fingerprints to the nearest of many others, in blocks."""

import numpy as np
from scipy import sparse

from lanczosnet.graphs.molecules.descriptors import unpacked

ROWS, COLUMNS = 256, 4096  # of a block, which fits into a core's cache


def nearest_similarity(found: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Of every fingerprint in `found` to the nearest of `known`, `[molecule, byte]` each; 0 where there is none.

    The bits that two share are counted as rows of a sparse times a dense matrix: a molecule has few bits. Two without
    any bit are alike.
    """
    best = np.zeros(len(found), dtype=np.float32)
    for begin in range(0, len(known), COLUMNS):
        bits = unpacked(known[begin : begin + COLUMNS]).T.astype(np.int16, order="C")
        sizes = bits.sum(0, dtype=np.int16)
        for row in range(0, len(found), ROWS):
            part = slice(row, row + ROWS)
            best[part] = np.maximum(best[part], _nearest(found[part], bits, sizes))
    return best


def _nearest(found: np.ndarray, bits: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    rows = sparse.csr_array(unpacked(found).astype(np.int16))
    common = (rows @ bits).astype(np.float32)
    either = (np.asarray(rows.sum(1), dtype=np.float32)[:, None] + sizes) - common
    return np.asarray(np.where(either > 0, common / np.maximum(either, 1), 1.0).max(1))
