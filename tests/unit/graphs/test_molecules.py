import sys

import pytest
import torch

from lanczosnet._extras import MissingExtraError
from lanczosnet.graphs import DataError, load
from lanczosnet.graphs.molecules import loading as molecules
from lanczosnet.graphs.molecules.loading import read_in_parallel
from lanczosnet.schemas.packed_molecules import VERSION

pytest.importorskip("rdkit")

SINGLE, DOUBLE, TRIPLE, AROMATIC, CONJUGATED, IN_RING = range(6)


@pytest.fixture
def write(tmp_path):
    def write(text: str, name: str = "mine.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def cache_files(user_cache):
    return sorted((user_cache / "molecules").glob("*.safetensors"))


def test_the_papers_input_is_atomic_numbers_with_explicit_hydrogens(write):
    graphs = load(write("smiles,logp\nC,1.5\nO,-2\n"), featurizer="paper")
    methane, water = graphs
    assert sorted(methane.x.tolist()) == [1, 1, 1, 1, 6]
    assert sorted(water.x.tolist()) == [1, 1, 8]
    assert methane.num_edges == 8
    assert methane.is_undirected()
    assert graphs.y.tolist() == [[1.5], [-2.0]]
    assert (graphs.name, graphs.targets, graphs.task) == ("mine", ("logp",), "regression")
    assert (graphs.smiles, graphs.rows.tolist(), graphs.atom_types) == (("C", "O"), [2, 3], (1, 6, 8))


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("[H][H]", {SINGLE}),
        ("O=O", {DOUBLE}),
        ("N#N", {TRIPLE}),
    ],
)
def test_bonds_have_their_order_as_type(write, smiles, expected):
    (data,) = load(write(f"smiles,y\n{smiles},1\n"), featurizer="paper")
    assert set(data.edge_attr[0].nonzero().view(-1).tolist()) == expected


def test_a_bond_may_have_several_types_and_the_simple_graph_is_their_sum(write):
    (benzene,) = load(write("smiles,y\nc1ccccc1,1\n"), featurizer="paper")
    in_ring = benzene.edge_attr[:, IN_RING] == 1
    assert int(in_ring.sum()) == 12
    assert benzene.edge_attr[in_ring].unique(dim=0).tolist() == [[0, 0, 0, 1, 1, 1]]
    assert benzene.edge_weight[in_ring].unique().tolist() == [3]
    assert benzene.edge_weight[~in_ring].unique().tolist() == [1]
    assert torch.equal(benzene.edge_weight, benzene.edge_attr.sum(dim=1))


def test_missing_targets_are_masked(write):
    graphs = load(write("smiles,a,b\nC,1,\nN,nan,2\nO,3,4\n"), targets=["a", "b"])
    assert torch.cat([data.y_mask for data in graphs]).tolist() == [[True, False], [False, True], [True, True]]
    assert torch.equal(graphs.y.isnan(), ~graphs.graph["y_mask"])


def test_classes_may_be_numbers_or_words(write):
    path = write("smiles,toxic,colour\nC,1,red\nN,0,blue\nO,,red\nF,10,\n")
    graphs = load(path, task="classification", targets=["toxic", "colour"])
    assert graphs.classes == (("0", "1", "10"), ("blue", "red"))
    assert torch.equal(graphs.y.nan_to_num(-1), torch.tensor([[1.0, 1], [0, 0], [-1, 1], [2, -1]]))


def test_columns_can_be_named(write):
    graphs = load(write("name,SMI,p,q\nmethane,C,1,2\n"), smiles="SMI", targets=["q"])
    assert graphs.y.tolist() == [[2.0]]


def test_an_unparsable_smiles_is_reported_with_row_and_reason(write):
    path = write("smiles,y\nC,1\nC(C)(C)(C)(C)C,2\nnonsense,3\n,4\nO,5\n")
    with pytest.raises(DataError, match=r"mine\.csv, row 3: .*valence.*and 2 more rows.*skip_invalid"):
        load(path)


def test_skipped_rows_are_listed_and_never_shift_the_others(write):
    path = write("smiles,y\nC,1\nC(C)(C)(C)(C)C,2\nnonsense,3\n,4\nO,5\n")
    graphs = load(path, skip_invalid=True)
    assert graphs.y.view(-1).tolist() == [1, 5]
    assert graphs.rows.tolist() == [2, 6]
    assert graphs.smiles == ("C", "O")
    assert [row.row for row in graphs.skipped] == [3, 4, 5]
    assert ["valence" in graphs.skipped[0].reason, "syntax" in graphs.skipped[1].reason] == [True, True]
    assert "empty" in graphs.skipped[2].reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smiles,y\nC,1\nN,high\n", r"mine\.csv, row 3: y is 'high', which is not a number"),
        ("smiles,y\nC,inf\n", r"row 2: y is 'inf'"),
        ("smiles,y\nC,1\nN\n", r"row 3: 1 cells under 2 columns.*truncated"),
        ("smiles,y\n", r"mine\.csv: the file has no rows"),
        ("", r"mine\.csv: the file has no rows"),
        ("smiles\nC\n", "no target column"),
        ("smiles,y\nC,1\nN,1e40\n", r"row 3: y is '1e40', which is too large"),
        ("smiles,a\nCCO,1\n\n\nCCC,2\nC1CC(,3\n", r"mine\.csv, row 6: "),
        ("smiles,a\nCCO,1\n\nCCC,high\n", r"row 4: a is 'high'"),
        ("smiles,a\nCCO,1\n\nCCC\n", r"row 4: 1 cells under 2 columns"),
        ("smiles,a,a\nCCO,1,1\nCCC,2,6\n", r"row 3: two columns are named 'a' and differ: '2' and '6'"),
        (
            "smiles,a,b\nCCO,1,2\nCCC,2,6\n",
            r"(?s)not clear .* 2 columns.*  a  numbers, 1 to 2\n  b  numbers",
        ),
        ("smiles,y\nC,1\nnonsense,2\n", r"row 3: .*; more than 5% of all rows cannot be read"),
        ("smiles,a,b\nC,1,5\nN,0,6\n", r"(?s)not clear which of 2.*a  0 and 1, 1 of 2 are 1"),
        ("smiles_1,smiles_2,y\nC,C,1\nN,N,2\n", r"several columns may hold SMILES: smiles_1, smiles_2. .*smiles='"),
    ],
)
def test_a_bad_file_is_named_with_row_and_remedy(write, text, message):
    with pytest.raises(DataError, match=message):
        molecules.molecules(write(text))


def test_a_file_without_a_usable_row_is_an_error(write):
    with pytest.raises(DataError, match=r"mine\.csv: there is no usable row"):
        load(write("smiles,y\nnonsense,1\n"), skip_invalid=True)


def test_blank_lines_are_counted_as_rows(write):
    graphs = load(write("smiles,a\nCCO,1\n\n \nCCC,2\nC1CC(,3\n"), skip_invalid=True)
    assert graphs.rows.tolist() == [2, 5]
    assert [row.row for row in graphs.skipped] == [6]


def test_a_column_that_is_repeated_with_the_same_values_is_read_as_in_qm8(write):
    graphs = load(write("smiles,a,b,a\nCCO,1,5,1\nCCC,2,6,2\n"), targets=["b", "a"])
    assert graphs.y.tolist() == [[5, 1], [6, 2]]


def test_a_single_target_may_be_named_without_a_list(write):
    graphs = load(write("smiles,logS,2020\nC,1,2\n"), targets="logS")
    assert (graphs.targets, graphs.y.tolist()) == (("logS",), [[1.0]])
    assert load(write("smiles,logS,2020\nC,1,2\n"), targets=2020).targets == ("2020",)


def test_a_column_in_other_capitals_is_found_or_recommended(write):
    path = write("SMILES,logS\nC,1\n")
    assert load(path, targets=["logS"]).smiles == ("C",)
    with pytest.raises(DataError, match=r"no column 'Smiles'. The columns are SMILES, logS: pass smiles='SMILES' "):
        load(path, smiles="Smiles", targets=["logS"])
    with pytest.raises(DataError, match=r"no column 'LOGS'. .*: pass targets=\['logS'\]"):
        load(path, smiles="SMILES", targets=["LOGS"])


def test_a_wrong_column_lists_the_right_ones(write):
    path = write("smiles,y\nC,1\n")
    with pytest.raises(DataError, match=r"no column 'SMILES'.*columns are smiles, y"):
        load(path, smiles="SMILES")
    with pytest.raises(DataError, match=r"no column 'z'"):
        load(path, targets=["z"])
    with pytest.raises(DataError, match="no task 'ranking'"):
        load(path, task="ranking")


def test_text_that_is_not_utf8_is_an_error(tmp_path):
    (tmp_path / "mine.csv").write_bytes(b"smiles,y\nC,\xff\xfe\n")
    with pytest.raises(DataError, match="not a CSV text file"):
        load(tmp_path / "mine.csv")


def test_parallel_reading_keeps_the_order(monkeypatch):
    monkeypatch.setattr(molecules, "CHUNK", 2)
    smiles = ["C" * n for n in range(1, 8)]
    heavy = [int((m.atoms == 6).sum()) for m in read_in_parallel(smiles, workers=2)]
    assert heavy == list(range(1, 8))


class TestCache:
    """Featurised once; a cache that is stale, torn or foreign is made again, not trusted."""

    @pytest.fixture
    def path(self, write):
        return write("smiles,y\nC,1\nO,2\n")

    @pytest.fixture
    def count(self, monkeypatch):
        calls = []
        original = molecules.featurize
        monkeypatch.setattr(molecules, "featurize", lambda *a, **k: calls.append(1) or original(*a, **k))
        return calls

    def test_the_second_load_reads_the_cache(self, path, count, user_cache):
        first, second = load(path), load(path)
        assert len(count) == 1
        assert torch.equal(first.y, second.y)
        assert len(cache_files(user_cache)) == 1

    def test_other_options_have_their_own_cache(self, path, count):
        load(path)
        load(path, task="classification")
        load(path)
        assert len(count) == 2

    def test_a_changed_source_is_featurised_again(self, path, count, user_cache):
        load(path)
        path.write_text("smiles,y\nC,1\nO,3\n")
        assert load(path).y.view(-1).tolist() == [1, 3]
        assert len(cache_files(user_cache)) == 1

    @pytest.mark.parametrize("damage", ["empty", "half", "flipped", "garbage", "version"])
    def test_a_damaged_cache_is_made_again(self, path, count, user_cache, damage):
        load(path)
        (cache,) = cache_files(user_cache)
        content = cache.read_bytes()
        damaged = {
            "empty": b"",
            "half": content[: len(content) // 2],
            "flipped": content[:-1] + bytes([content[-1] ^ 1]),
            "garbage": b"garbage" * 100,
            "version": content.replace(f'\\"version\\": {VERSION}'.encode(), f'\\"version\\": {VERSION + 8}'.encode()),
        }[damage]
        assert damaged != content
        cache.write_bytes(damaged)
        assert load(path).y.view(-1).tolist() == [1, 2]
        assert len(count) == 2
        assert cache.read_bytes() == content

    def test_a_damaged_cache_given_by_path_is_an_error(self, path, user_cache):
        load(path)
        (cache,) = cache_files(user_cache)
        cache.write_bytes(b"")
        with pytest.raises(DataError, match=r"safetensors: the cache cannot be used.*Delete it"):
            load(cache)

    def test_the_cache_needs_neither_rdkit_nor_the_source(self, path, user_cache, monkeypatch):
        expected = load(path)
        path.unlink()
        monkeypatch.setitem(sys.modules, "rdkit", None)
        (cache,) = cache_files(user_cache)
        graphs = load(cache)
        assert torch.equal(graphs.y, expected.y)
        assert graphs.smiles == expected.smiles

    def test_without_rdkit_the_message_says_how_to_get_it(self, path, monkeypatch):
        monkeypatch.setitem(sys.modules, "rdkit", None)
        with pytest.raises(MissingExtraError, match=r"RDKit is needed to read SMILES.*lanczosnet\[chem\]"):
            load(path)

    def test_a_failed_run_leaves_no_cache(self, write, user_cache):
        with pytest.raises(DataError):
            load(write("smiles,y\nnonsense,1\n"))
        assert cache_files(user_cache) == []

    def test_the_cache_never_lands_beside_the_source(self, path):
        load(path)
        assert list(path.parent.iterdir()) == [path]
