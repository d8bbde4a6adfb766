import subprocess
import sys
from pathlib import Path

import pytest

from lanczosnet import graphs
from lanczosnet.graphs import CATALOGUE, DataError, load
from lanczosnet.graphs.data_sets.molecule_sets import MOLECULE_SETS


def test_every_name_of_the_issue_is_there():
    expected = {"cora", "citeseer", "pubmed", "qm8", "digits", "karate", *MOLECULE_SETS}
    benchmarks = {"minesweeper", "tolokers", "questions", "roman-empire", "amazon-ratings", "chameleon-filtered"}
    benchmarks |= {"squirrel-filtered", "amazon-photo", "amazon-computers", "coauthor-cs", "coauthor-physics"}
    benchmarks |= {"wikics", "city-paris", "city-shanghai", "city-la", "city-london"}
    assert expected | benchmarks | {"path", "ring", "clique", "block-model", "swiss-roll"} == set(CATALOGUE)


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(DataError, match=r"'coar'.*Known data sets: cora, citeseer, pubmed, qm8, digits"):
        load("coar")


def test_names_may_be_written_in_capitals():
    assert load("Karate").num_nodes == 34


def test_a_path_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"neither a data set nor a file .*absent\.csv"):
        load(tmp_path / "absent.csv")


def test_a_misspelt_option_is_an_error():
    with pytest.raises(DataError, match=r"without such an option.*neighbours"):
        load("digits", neighbours=3)


def test_listing_names_does_not_wait_for_torch():
    script = "import sys; from lanczosnet.graphs import CATALOGUE, load; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_all_public_names_exist():
    for name in graphs.__all__:
        assert getattr(graphs, name) is not None
    with pytest.raises(AttributeError, match="laod"):
        _ = graphs.laod


def test_data_errors_say_where_what_and_what_to_do():
    error = DataError("it is wrong", file=Path("a.csv"), row=3, remedy="Repair it")
    assert str(error) == "a.csv, row 3: it is wrong. Repair it"
    assert str(DataError("it is wrong")) == "it is wrong"


@pytest.mark.parametrize("options", [{"n": "abc"}, {"n": None}], ids=str)
def test_an_option_of_the_wrong_kind_is_an_error_of_the_data(options):
    with pytest.raises(DataError, match="ring cannot be loaded with n="):
        load("ring", **options)
