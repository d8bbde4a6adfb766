"""Molecules as pictures that can run nothing: SVG inside a data URI."""

import base64
from importlib.util import find_spec

WIDTH, HEIGHT = 240, 160


def picture_of(smiles: str) -> str:
    """A data URI; empty where RDKit is not installed or cannot draw it."""
    if find_spec("rdkit") is None:
        return ""
    from rdkit import Chem
    from rdkit.Chem.Draw import rdMolDraw2D
    from rdkit.rdBase import BlockLogs

    with BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is None or not molecule.GetNumAtoms():
        return ""
    drawing = rdMolDraw2D.MolDraw2DSVG(WIDTH, HEIGHT)
    drawing.drawOptions().clearBackground = False  # type: ignore[assignment]
    rdMolDraw2D.PrepareAndDrawMolecule(drawing, molecule)
    drawing.FinishDrawing()
    return "data:image/svg+xml;base64," + base64.b64encode(drawing.GetDrawingText().encode()).decode()
