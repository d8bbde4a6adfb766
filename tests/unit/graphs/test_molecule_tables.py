"""Tables as people have them: separators, marks, compression, formats, and which column is what."""

import gzip

import pytest

from lanczosnet.graphs import DataError, load
from lanczosnet.graphs.molecules.columns import UnclearColumnsError
from lanczosnet.graphs.molecules.table import read_table
from parquet_builders import with_bad_text

pytest.importorskip("rdkit")

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN"]
PLAIN = "smiles,logS\n" + "".join(f"{smiles},{i}.5\n" for i, smiles in enumerate(SMILES))


def written(path, content: str | bytes):
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", PLAIN),
        ("a.csv", "\ufeff" + PLAIN),
        ("a.csv", PLAIN.encode("utf-16")),
        ("a.csv", PLAIN.replace("\n", "\r\n")),
        ("a.csv", PLAIN.replace(",", ";").replace(".", ",")),
        ("a.tsv", PLAIN.replace(",", "\t")),
        ("a.txt", PLAIN.replace(",", "|")),
        ("a.csv.gz", gzip.compress(PLAIN.encode(), mtime=0)),
        ("a.csv", PLAIN.replace("smiles", "Canonical SMILES")),
        ("a.csv", PLAIN.replace("smiles", "structure")),
        ("a.smi", PLAIN.replace(",", " ")),
        ("a.csv", "," + PLAIN.replace("\n", "\n7,").removesuffix("7,")),
        ("a.csv", "Compound ID," + PLAIN.replace("\n", "\nacid,").removesuffix("acid,")),
    ],
)
def test_a_table_is_read_however_it_is_written(tmp_path, name, content):
    graphs = load(written(tmp_path / name, content))
    assert graphs.smiles == tuple(SMILES)
    assert (graphs.targets, graphs.task) == (("logS",), "regression")
    assert graphs.y.view(-1).tolist() == [0.5, 1.5, 2.5, 3.5]


def test_an_sdf_brings_its_properties(tmp_path):
    from rdkit import Chem

    with Chem.SDWriter(str(tmp_path / "a.sdf")) as writer:
        for i, smiles in enumerate(SMILES):
            molecule = Chem.MolFromSmiles(smiles)
            molecule.SetProp("logS", f"{i}.5")
            writer.write(molecule)
    graphs = load(tmp_path / "a.sdf")
    assert (graphs.targets, graphs.y.view(-1).tolist()) == (("logS",), [0.5, 1.5, 2.5, 3.5])
    assert graphs[0].num_nodes == 3


def test_parquet_is_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"smiles": SMILES, "logS": [0.5, None, 2.5, 3.5]}).to_parquet(tmp_path / "a.parquet")
    graphs = load(tmp_path / "a.parquet")
    assert graphs.y.view(-1).nan_to_num(-1).tolist() == [0.5, -1, 2.5, 3.5]


def test_columns_of_0_and_1_are_classes_and_it_is_said(tmp_path):
    path = written(tmp_path / "a.csv", "smiles,id,a,b\nC,x1,0,1\nCC,x2,1,\nCCC,x3,1,0\n")
    graphs = load(path)
    assert (graphs.targets, graphs.task) == (("a", "b"), "classification")
    assert graphs.classes == (("0", "1"), ("0", "1"))
    assert any("a, b: treated as classes" in note for note in graphs.notes)
    assert load(path, task="regression").task == "regression"


def test_what_is_left_out_is_said(tmp_path):
    path = written(tmp_path / "a.csv", "smiles,name,id,logS\nC,methane gas,1,0.5\nCC,ethane gas,2,1.5\n")
    (note,) = load(path).notes
    assert note.startswith("target: logS; left out: name (text, such as")
    assert "id (an index, 1 to 2)" in note


def test_several_columns_of_numbers_are_listed_not_guessed(tmp_path):
    path = written(tmp_path / "a.csv", "smiles,weight,logS\nC,16,0.5\nCC,30,1.5\n")
    with pytest.raises(UnclearColumnsError, match=r"(?s)which of 2 columns.*weight  numbers, 16 to 30") as error:
        load(path)
    assert error.value.candidates == ["weight", "logS"]
    assert load(path, ignore="weight").targets == ("logS",)
    assert load(path, targets="weight,logS").targets == ("weight", "logS")
    assert load(path, id="weight").targets == ("logS",)


def test_a_column_with_a_comma_in_its_name_can_be_a_target(tmp_path):
    path = written(tmp_path / "a.csv", 'smiles,"logS, mol/L",b\nC,16,0.5\nCC,30,1.5\n')
    assert load(path, targets="logS, mol/L").targets == ("logS, mol/L",)


def test_classes_and_numbers_are_not_learnt_together(tmp_path):
    path = written(tmp_path / "a.csv", "smiles,a,b\nC,0,0.5\nCC,1,1.5\n")
    with pytest.raises(DataError, match=r"some targets are classes \(a\), others numbers \(b\)"):
        load(path, targets=["a", "b"])
    assert load(path, targets=["a", "b"], task="regression").task == "regression"


@pytest.mark.parametrize("cell", ["inf", "1e999", "9" * 400])
@pytest.mark.parametrize("options", [{"ignore": "logS"}, {"targets": ["y", "logS"]}], ids=["found", "named"])
def test_an_infinite_cell_after_rising_numbers_is_named(tmp_path, cell, options):
    rows = [f"{'C' * (i + 1)},{3 * i},{i % 7}.5" for i in range(25)]
    path = written(tmp_path / "a.csv", "smiles,y,logS\n" + "\n".join(rows) + f"\nCC,{cell},0.5\n")
    with pytest.raises(DataError, match=rf"a\.csv, row 27: y is '{cell[:3]}.*, which is not a number"):
        load(path, **options)


def test_few_bad_rows_are_listed_and_left_out(tmp_path):
    rows = [f"{'C' * (i % 9 + 1)},{i}.5" for i in range(40)] + ["nonsense,1.5"]
    path = written(tmp_path / "a.csv", "smiles,y\n" + "\n".join(rows) + "\n")
    graphs = load(path)
    assert (len(graphs), [row.row for row in graphs.skipped]) == (40, [42])
    assert any("1 row was left out:\n  row 42: RDKit cannot parse 'nonsense'" in note for note in graphs.notes)
    with pytest.raises(DataError, match="row 42: RDKit cannot parse"):
        load(path, skip_invalid=False)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv.gz", b"no gzip", "torn or not gzipped"),
        ("a.csv", "name,y\nwater,1\n", "there is no column of SMILES.*The columns are name, y"),
        ("a.csv", "smiles,name\nC,methane gas\nCC,ethane gas\n", "cannot be|not a number|usable"),
        ("a.parquet", b"PAR1", "the table cannot be read"),
        ("a.xlsx", b"PK", "a table of molecules ends in .csv"),
    ],
)
def test_what_cannot_be_read_is_a_message(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        load(written(tmp_path / name, content), targets="name" if "methane" in str(content) else "y")


def test_parquet_whose_texts_are_no_utf8_is_a_message(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match=r"a\.parquet: the table cannot be read .*UTF.*\. Write the file again"):
        load(with_bad_text(tmp_path / "a.parquet", {"smiles": SMILES, "logS": [0.5, 1.5, 2.5, 3.5]}))


def test_rows_of_a_table_keep_their_numbers(tmp_path):
    table = read_table(written(tmp_path / "a.csv", "smiles,y\nC,1\n\nCC,2\n"))
    assert table.rows == [2, 4]


def test_rising_whole_numbers_count_the_rows_unless_there_is_nothing_else(tmp_path):
    rows = [f"{'C' * (i + 1)},{3 * i},{i % 7}.5" for i in range(25)]
    path = written(tmp_path / "a.csv", "smiles,entry,y\n" + "\n".join(rows) + "\n")
    assert load(path).targets == ("y",)
    assert load(path, ignore="y").targets == ("entry",)


def test_a_huge_cell_is_named_with_its_file(tmp_path):
    with pytest.raises(ValueError, match=r"a\.csv: a cell after row 2: .*LANCZOSNET_MAX_CELL"):
        load(written(tmp_path / "a.csv", "smiles,y\nC,1\nC," + "1" * 100_001 + "\n"), targets="y")
