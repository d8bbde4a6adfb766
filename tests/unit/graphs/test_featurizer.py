import json

import numpy as np
import pytest
import torch

from lanczosnet.graphs import DataError, load
from lanczosnet.graphs.molecules.arrays import concatenated, molecule_graphs
from lanczosnet.graphs.molecules.featurizer import ATOMS, BONDS, MOLECULE, OPERATORS, PAPER, featurizer_from
from lanczosnet.graphs.molecules.smiles import Molecule, read_smiles

pytest.importorskip("rdkit")


def molecule(smiles: str, featurizer=MOLECULE) -> Molecule:
    (found,) = read_smiles([smiles], featurizer)
    assert isinstance(found, Molecule)
    return found


def category(found: Molecule, atom: int, name: str):
    """The value of an atom, or None where it is unknown."""
    known = ATOMS[name]
    code = found.codes[atom, list(ATOMS).index(name)]
    return known[code] if code < len(known) else None


def bonds(smiles: str) -> set[str]:
    types = molecule(smiles).types
    return {name for i, name in enumerate(BONDS) if (types >> i & 1).any()}


@pytest.mark.parametrize(
    ("smiles", "name", "expected"),
    [
        ("[NH4+]", "charge", 1),
        ("[NH4+]", "hydrogens", 4),
        ("[NH4+]", "degree", 4),
        ("c1ccccc1", "aromatic", 1),
        ("C1CC1", "ring", 1),
        ("C1CC1", "aromatic", 0),
        ("C#C", "hybridization", "SP"),
        ("[C@H](F)(Cl)Br", "chirality", "CHI_TETRAHEDRAL_CW"),
        ("[C@@H](F)(Cl)Br", "chirality", "CHI_TETRAHEDRAL_CCW"),
        ("C(F)(Cl)Br", "chirality", "CHI_UNSPECIFIED"),
        ("[Na+]", "element", 11),
        ("[U]", "element", None),
        ("[Al+3]", "charge", None),
    ],
)
def test_an_atom_has_the_category_that_chemistry_gives_it(smiles, name, expected):
    assert category(molecule(smiles), 0, name) == expected


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("CC", {"single"}),
        ("C=C", {"double"}),
        ("C#N", {"triple"}),
        ("c1ccccc1", {"aromatic", "conjugated", "in-ring"}),
        ("F/C=C/F", {"single", "double", "E"}),
        ("F/C=C\\F", {"single", "double", "Z"}),
        ("[NH3]->[Cu]", {"other"}),
    ],
)
def test_a_bond_has_its_types(smiles, expected):
    assert bonds(smiles) == expected


def test_hydrogens_are_implicit_unless_they_are_asked_for(write_csv):
    implicit, explicit = load(write_csv("CCO")), load(write_csv("CCO"), explicit_hydrogens=True)
    assert (implicit[0].num_nodes, explicit[0].num_nodes) == (3, 9)
    assert (implicit.featurizer.explicit_hydrogens, explicit.featurizer.explicit_hydrogens) == (False, True)


def test_features_are_one_per_category_the_mass_and_the_bonds(write_csv):
    (graph,) = load(write_csv("C=CO"))
    features = graph.x.numpy()
    categories = MOLECULE.num_features - 1 - len(BONDS)
    assert features.shape == (3, MOLECULE.num_features)
    assert features[:, :categories].sum(1).tolist() == [len(ATOMS)] * 3
    assert np.allclose(features[:, categories], [0.12011, 0.12011, 0.15999])
    counts = dict(zip(BONDS, features[:, categories + 1 :].T.tolist(), strict=True))
    assert (counts["single"], counts["double"], counts["in-ring"]) == ([0, 1, 1], [1, 1, 0], [0, 0, 0])


def test_few_types_of_bonds_are_operators(write_csv):
    graphs = load(write_csv("c1ccccc1C"))
    assert graphs.edge_types == OPERATORS == ("double", "triple", "aromatic", "in-ring")
    assert graphs.edge["edge_attr"].sum(0).tolist() == [0, 0, 12, 12]


def test_unknown_categories_have_a_place_of_their_own_and_are_counted(write_csv):
    graphs = load(write_csv("[U]", "C"))
    features = graphs.node["x"]
    slot = len(ATOMS["element"])
    assert features[:, slot].tolist() == [1, 0]
    assert graphs.unknown == {"element": 1}
    assert graphs.notes[-1:] == ("1 atom of an unknown element: it has the category of all such",)


def test_bonds_of_an_unknown_order_are_counted(write_csv):
    graphs = load(write_csv("N->[Pt](<-N)(Cl)Cl"))
    assert graphs.unknown["bond order"] == 2
    assert "2 bonds of an unknown bond order: they share one category" in graphs.notes


def test_known_categories_are_not_mentioned(write_csv):
    graphs = load(write_csv("CCO"))
    assert (graphs.unknown, graphs.notes) == ({}, ("target: y",))


def test_a_featurizer_survives_json():
    for featurizer in (PAPER, MOLECULE):
        assert featurizer_from(json.loads(json.dumps(featurizer.described()))) == featurizer


def test_the_order_of_molecules_changes_nothing():
    apart = [molecule(smiles) for smiles in ("CCO", "c1ccccc1", "[Na+].[Cl-]")]
    together = molecule_graphs(concatenated(apart), MOLECULE)
    for graph, alone in zip(together, apart, strict=True):
        assert torch.equal(graph.x, molecule_graphs(concatenated([alone]), MOLECULE).node["x"])


def test_what_only_splits_need_is_left_out_where_nothing_is_split():
    smiles = ["c1ccccc1C(=O)O", "F/C=C/F", "C[C@H](N)O"]
    for whole, bare in zip(read_smiles(smiles, MOLECULE), read_smiles(smiles, MOLECULE, for_splits=False), strict=True):
        assert whole.identity != 0
        assert (bare.scaffold, bare.identity) == ("", 0)
        for name in ("atoms", "bonds", "types", "codes", "mass", "fingerprint"):
            assert np.array_equal(getattr(whole, name), getattr(bare, name))


def test_predictions_read_no_scaffolds(monkeypatch):
    from lanczosnet.graphs.molecules import smiles
    from lanczosnet.training.smiles_inputs import read_molecules

    monkeypatch.setattr(smiles, "_scaffold", lambda *_: pytest.fail("scaffolds are for splits"))
    (found,) = read_molecules(["c1ccccc1"], MOLECULE)
    assert isinstance(found, Molecule)


def test_the_largest_fragment_is_kept_on_request(write_csv):
    whole, part = load(write_csv("CCO.[Na+]")), load(write_csv("CCO.[Na+]"), largest_fragment=True)
    assert (whole[0].num_nodes, part[0].num_nodes) == (4, 3)


def test_a_wrong_name_lists_the_right_ones(write_csv):
    with pytest.raises(DataError, match="no featurizer 'ecfp'; known are molecule and paper"):
        load(write_csv("C"), featurizer="ecfp")


@pytest.fixture
def write_csv(tmp_path):
    def write(*smiles: str):
        path = tmp_path / "mine.csv"
        path.write_text("smiles,y\n" + "".join(f"{text},{i}\n" for i, text in enumerate(smiles)))
        return path

    return write
