"""Published sets of molecules by name: what is accepted, and what is taken from them."""

import gzip
import json

import pytest

from lanczosnet.graphs import CATALOGUE, DataError, load
from lanczosnet.graphs.data_sets import molecule_sets as sets

pytest.importorskip("rdkit")


@pytest.fixture
def known(monkeypatch, tmp_path):
    """A small set in place of a published one; the function writes its file."""

    def make(name, rows, text, **changes):
        from dataclasses import replace

        small = replace(sets.MOLECULE_SETS[name], rows=rows, versions=(), **changes)
        monkeypatch.setitem(sets.MOLECULE_SETS, name, small)
        monkeypatch.setitem(sets.MOLECULE_FILES, name, sets._source(small))
        path = tmp_path / small.folder / small.files[0]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
        return path

    return make


def test_a_set_brings_its_targets_metric_and_split(known, tmp_path):
    known("bace", 3, "mol,CID,Class,pIC50\nCC,a,1,7.1\nCCO,b,0,3.2\nCCN,c,1,5\n")
    graphs = load("bace", data_dir=tmp_path)
    assert (graphs.name, graphs.targets, graphs.task) == ("bace", ("Class",), "classification")
    assert (graphs.metric, graphs.default_split) == ("roc_auc", "scaffold")


def test_a_set_of_many_columns_learns_them_all(known, tmp_path):
    known("sider", 2, "smiles,Eye disorders,Other\nCC,1,0\nCCO,0,1\n")
    assert load("sider", data_dir=tmp_path).targets == ("Eye disorders", "Other")


def test_peptides_have_their_official_split(known, tmp_path):
    columns = ",".join(f"class_{i}" for i in range(10))
    path = known("peptides-func", 3, f"smiles,{columns}\n" + "".join(f"{s}{',1' * 10}\n" for s in ("CC", "CCO", "CN")))
    with pytest.raises(DataError, match="there is no split that can be read"):
        load("peptides-func", data_dir=tmp_path)
    path.with_name("split.json").write_text(json.dumps({"train": [1], "val": [0], "test": [2]}))
    assert load("peptides-func", data_dir=tmp_path).parts == ("val", "train", "test")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mol,Class\nCC,1\n", "there are 1 rows, but 3 are published"),
        ("mol,class\nCC,1\nC,0\nN,1\n", "there is no column 'Class'"),
    ],
)
def test_another_content_is_refused(known, tmp_path, text, message):
    known("bace", 3, text)
    with pytest.raises(DataError, match=message):
        load("bace", data_dir=tmp_path)


def test_a_set_without_a_mirror_says_where_to_place_it(tmp_path):
    with pytest.raises(DataError, match=r"not offered for download: place it at .*peptides_func\.csv\.gz"):
        load("peptides-func", data_dir=tmp_path)


def test_every_set_is_in_the_catalogue():
    assert set(sets.MOLECULE_SETS) <= set(CATALOGUE)
    for known in sets.MOLECULE_SETS.values():
        assert known.task in ("regression", "classification")
