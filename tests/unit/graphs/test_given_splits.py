"""Splits that the user brings."""

import json
import math

import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.graphs import DataError, pack, split, split_from_column, split_from_file


@pytest.fixture
def graph() -> Data:
    return Data(edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.arange(6) % 2, num_nodes=6, name="toy")


def sizes(chosen):
    return [part.tolist() for part in (chosen.train, chosen.val, chosen.test)]


EXPECTED = [[0, 3], [2], [1, 5]]
COLUMN = ["train", "test", "val", "train", "", "test"]


def test_a_column_says_the_part_of_every_item(graph):
    chosen = split_from_column(graph, COLUMN)
    assert sizes(chosen) == EXPECTED
    assert (chosen.dataset, chosen.kind, chosen.seed) == ("toy", "column", None)


@pytest.mark.parametrize("empty", ["", "  ", None, math.nan])
def test_other_words_are_understood_and_empty_cells_leave_items_out(graph, empty):
    assert sizes(split_from_column(graph, [" Training", "TEST", "valid", "train", empty, "test "])) == EXPECTED


def test_a_column_of_graphs():
    one = Data(edge_index=torch.empty(2, 0, dtype=torch.long), x=torch.ones(2, 1), y=torch.ones(1, 1))
    assert sizes(split_from_column(pack([one] * 6, name="toy"), COLUMN)) == EXPECTED


def test_a_file_of_lists_is_a_split(graph, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"train": [3, 0], "valid": [2], "test": [5, 1]}))
    chosen = split_from_file(graph, tmp_path / "a.json")
    assert sizes(chosen) == EXPECTED
    assert chosen.kind.startswith("file/")


def test_a_saved_split_can_be_read_as_a_file(graph, tmp_path):
    made = split(graph, "3-fold", fold=1)
    made.save(tmp_path / "a.json")
    assert sizes(split_from_file(graph, tmp_path / "a.json")) == sizes(made)


@pytest.mark.parametrize("header", ["item,part\n", "", "\ufeffnode,split\n"])
def test_a_table_of_items_and_parts_is_a_split(graph, tmp_path, header):
    (tmp_path / "a.csv").write_text(header + "0,train\n3,train\n2,val\n\n5,test\n1,test\n", encoding="utf-8")
    assert sizes(split_from_file(graph, tmp_path / "a.csv")) == EXPECTED


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (COLUMN[:5], "the split column has 5 cells, but toy has 6 items"),
        ([*COLUMN[:4], "dev", "test"], "item 4 is of the part 'dev'. Use train, val or test"),
        (["train"] * 5 + ["test"], "the part val has no items"),
    ],
)
def test_a_wrong_column_is_answered(graph, parts, message):
    with pytest.raises(DataError, match=message):
        split_from_column(graph, parts)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "not a JSON file with lists of item numbers"),
        ("a.json", "[1, 2]", "the file must have the lists train, val and test"),
        ("a.json", "3", "not a JSON file with lists"),
        ("a.json", '{"train": [0], "test": [1]}', "the file must have the lists train, val and test"),
        ("a.json", '{"train": [0.5], "val": [2], "test": [1]}', "train is not a list of item numbers"),
        ("a.json", '{"train": [true], "val": [2], "test": [1]}', "train is not a list of item numbers"),
        ("a.json", '{"train": 0, "val": [2], "test": [1]}', "train is not a list of item numbers"),
        ("a.json", '{"train": [0], "val": [], "test": [1]}', "the part val has no items"),
        ("a.json", '{"train": [0], "val": [2], "test": [6]}', "test names item 6, but the items are 0 to 5"),
        ("a.json", '{"train": [-1], "val": [2], "test": [5]}', "train names item -1"),
        ("a.json", '{"train": [0, 2], "val": [2], "test": [5]}', "item 2 appears twice in the split"),
        ("a.json", '{"val": [1], "valid": [2], "train": [0], "test": [5]}', "lists train, val and test once, but has"),
        ("a.csv", "item,part\n0,train\n1\n", r"a\.csv, row 3: a line must have an item number and its part"),
        ("a.csv", "item,part\n0,train\nx,val\n", r"row 3: a line must have"),
        ("a.csv", "0,train\n1,dev\n", r"a\.csv: item 1 is of the part 'dev'"),
        ("a.csv", "", "the part train has no items"),
        ("a.txt", "0 train", r"ends in \.json or \.csv"),
    ],
)
def test_a_wrong_file_is_answered(graph, tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message) as raised:
        split_from_file(graph, tmp_path / name)
    assert name in str(raised.value)


def test_a_file_that_is_not_there_is_named(graph, tmp_path):
    with pytest.raises(DataError, match=r"absent\.csv: there is no such file"):
        split_from_file(graph, tmp_path / "absent.csv")


@pytest.mark.data
def test_the_official_split_of_peptides_is_read(real_data):
    graphs = Data(num_nodes=15_535, name="peptides")  # only the number of items counts
    chosen = split_from_file(graphs, real_data / "peptides" / "split.json")
    assert list(map(len, (chosen.train, chosen.val, chosen.test))) == [10_873, 2_331, 2_331]
