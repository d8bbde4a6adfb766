"""Descriptors of whole molecules: columns of the table, and what RDKit computes."""

import numpy as np
import pytest
import torch

from lanczosnet.graphs import DataError, load
from lanczosnet.graphs.molecules.descriptors import BITS
from lanczosnet.graphs.molecules.rdkit_names import PROPERTY_NAMES, RDKIT_NAMES
from lanczosnet.schemas.featurizer import COMPUTED

pytest.importorskip("rdkit")

TABLE = "smiles,mass,flag,y\nCCO,46,1,1.5\nc1ccccc1,,0,2\nnonsense(,1,0,2\nCC(=O)O,60.5,1,3\n"


@pytest.fixture
def table(tmp_path):
    (tmp_path / "mine.csv").write_text(TABLE)
    return tmp_path / "mine.csv"


def loaded(table, **options):
    return load(table, targets=["y"], skip_invalid=True, **options)


def test_columns_are_the_first_descriptors_and_empty_cells_are_unknown(table):
    graphs = loaded(table, descriptor_columns=["mass", "flag"], descriptors="none")
    expected = torch.tensor([[46.0, 1.0], [float("nan"), 0.0], [60.5, 1.0]])
    assert torch.equal(graphs.graph["descriptors"].nan_to_num(-1), expected.nan_to_num(-1))
    assert graphs.descriptor_columns == ("mass", "flag")
    assert graphs[2].descriptors.tolist() == [[60.5, 1.0]]
    assert any("mass (1 of 3)" in note for note in graphs.notes)


def test_rdkit_computes_the_rest_and_the_cache_keeps_all(table):
    for _ in range(2):  # the second comes from the cache
        graphs = loaded(table, descriptor_columns="mass", descriptors="rdkit,morgan")
        held = graphs.graph["descriptors"]
        assert held.shape == (3, 1 + BITS + len(RDKIT_NAMES))
        bits, others = held[:, 1 : 1 + BITS], held[:, 1 + BITS :]
        assert set(bits.unique().tolist()) == {0.0, 1.0}
        assert others[0, RDKIT_NAMES.index("MolWt")] == pytest.approx(46.069)
        assert np.array_equal(np.packbits(bits.numpy().astype(np.uint8), axis=1), graphs.fingerprints.numpy())


def test_molecules_have_properties_by_default(table):
    held = loaded(table).graph["descriptors"]
    assert held.shape == (3, len(PROPERTY_NAMES))
    assert held[0, PROPERTY_NAMES.index("MolWt")] == pytest.approx(46.069)
    assert held[1, PROPERTY_NAMES.index("NumAromaticRings")] == 1
    assert "descriptors" not in loaded(table, descriptors="none").graph
    assert "descriptors" not in loaded(table, featurizer="paper").graph
    both = loaded(table, descriptors="rdkit,properties").graph["descriptors"]
    torch.testing.assert_close(both[:, : len(PROPERTY_NAMES)], held)


def test_the_names_are_those_of_the_file_format():
    assert len(RDKIT_NAMES) == len(set(RDKIT_NAMES)) == COMPUTED["rdkit"]
    assert len(PROPERTY_NAMES) == len(set(PROPERTY_NAMES)) == COMPUTED["properties"]
    assert set(PROPERTY_NAMES) < set(RDKIT_NAMES)


def test_equal_molecules_have_one_identity(tmp_path):
    (tmp_path / "a.csv").write_text("smiles,y\nOCC,1\nCCO,2\nC[C@H](N)O,3\nC[C@@H](N)O,4\n")
    one, other, left, right = load(tmp_path / "a.csv").identity.tolist()
    assert one == other
    assert left != right
    explicit = load(tmp_path / "a.csv", explicit_hydrogens=True)
    assert explicit.identity.tolist() == [one, other, left, right]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"descriptor_columns": ["weight"]}, "there is no column 'weight'"),
        ({"descriptor_columns": ["y"]}, "'y' is the column of SMILES or a target"),
        (
            {"descriptors": "maccs"},
            "there are no descriptors 'maccs'. Known are morgan, properties, rdkit, or none alone",
        ),
    ],
)
def test_what_cannot_be_a_descriptor_is_said(table, options, message):
    with pytest.raises(DataError, match=message):
        loaded(table, **options)


@pytest.mark.parametrize(("cell", "kind"), [("heavy", "not a number"), ("1e20", "too large"), ("inf", "not a number")])
def test_a_cell_that_is_no_number_is_named_with_its_row(table, cell, kind):
    table.write_text(TABLE.replace("60.5", cell))
    with pytest.raises(DataError, match=f"row 5: the descriptor mass is '{cell}', which is {kind}"):
        loaded(table, descriptor_columns=["mass"])
