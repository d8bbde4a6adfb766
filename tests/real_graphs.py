"""The real graphs, read from trusted test files."""

import csv
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor


def planetoid(folder: Path, name: str) -> tuple[Tensor, Tensor]:
    """Features `[node, channel]` and edge_index of a citation graph."""
    from torch_geometric.io import read_planetoid_data

    data = read_planetoid_data(str(folder / "planetoid"), name)
    return data.x, data.edge_index


@lru_cache(maxsize=1)
def molecules(folder: Path) -> list[Tensor]:
    """The binary adjacency, float32, of every QM8 molecule with its hydrogens."""
    from rdkit import Chem

    options = Chem.SmilesParserParams()
    options.removeHs = False
    with open(folder / "qm8" / "qm8.csv", encoding="utf-8") as lines:
        smiles = [row["smiles"] for row in csv.DictReader(lines)]
    return [_adjacency(Chem.MolFromSmiles(text, options)) for text in smiles]


def _adjacency(molecule) -> Tensor:
    matrix = torch.zeros(molecule.GetNumAtoms(), molecule.GetNumAtoms())
    for bond in molecule.GetBonds():
        i, j = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        matrix[i, j] = matrix[j, i] = 1.0
    return matrix


def padded_batch(matrices: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Matrices of many sizes as `[graph, node, node]` with zeros, and which rows are nodes."""
    size = torch.tensor([len(matrix) for matrix in matrices])
    width = int(size.max())
    batch = torch.zeros(len(matrices), width, width)
    for place, matrix in enumerate(matrices):
        batch[place, : len(matrix), : len(matrix)] = matrix
    return batch, torch.arange(width) < size[:, None]
