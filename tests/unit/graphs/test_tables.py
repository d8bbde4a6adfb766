from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import torch

from lanczosnet.graphs import DataError, knn_graph, load, split
from parquet_builders import with_bad_text

NODES = "id,height,width,label\na,1,2,red\nb,3,4,blue\nc,5,6,red\nd,7,8,\n"
EDGES = "source,target\na,b\nb,c\nc,b\nd,d\n"


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_an_edge_list_and_a_table_become_a_graph(write):
    data = load(write("nodes.csv", NODES), edges=write("edges.csv", EDGES))
    assert data.x.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.y.tolist() == [1, 0, 1, -1]
    assert data.labelled.tolist() == [True, True, True, False]
    assert (data.classes, data.name) == (["blue", "red"], "nodes")


@pytest.mark.parametrize("name", ["label", "a", "error"])
def test_two_columns_of_one_name_are_refused(write, name):
    header = ["id", "a", "label", name]
    text = "\n".join([",".join(header), *(f"{i},{i},{i % 2},{i % 2}" for i in range(12))])
    with pytest.raises(DataError, match=f"two columns are named '{name}'") if name != "error" else nullcontext():
        load(write("nodes.csv", text), k=2)


def test_many_columns_are_read_in_linear_time_and_limited(write, monkeypatch):
    text = "\n".join([",".join(f"c{i}" for i in range(20_000)), *[",".join(["1"] * 20_000)] * 4])
    path = write("nodes.csv", text)
    assert load(path, k=2).x.shape == (4, 20_000)
    monkeypatch.setenv("LANCZOSNET_MAX_COLUMNS", "1e4")
    with pytest.raises(ValueError, match=r"columns: 20,000 is more than the limit of 10,000.*LANCZOSNET_MAX_COLUMNS"):
        load(path, k=2)


def test_a_feature_that_is_too_large_and_a_huge_cell_are_refused(write):
    with pytest.raises(DataError, match=r"row 2: a is '1e\+38', which is too large"):
        load(write("nodes.csv", "id,a\n0,1e38\n1,2\n2,3\n"), k=1)
    with pytest.raises(ValueError, match=r"a cell after row 1: this is more than the limit.*LANCZOSNET_MAX_CELL"):
        load(write("more.csv", f"id,a\n0,{'1' * 100_001}\n1,2\n2,3\n"), k=1)
    with pytest.raises(ValueError, match=r"label.*10,001 .*LANCZOSNET_MAX_CLASSES"):
        load(write("classes.csv", "a,label\n" + "".join(f"{i},{i}\n" for i in range(10_001))), k=1)


def test_parquet_and_npz_tables_give_the_same_graph(write, tmp_path):
    expected = load(write("nodes.csv", NODES), edges=write("edges.csv", EDGES))
    pd.read_csv(tmp_path / "nodes.csv").to_parquet(tmp_path / "nodes.parquet")
    pd.read_csv(tmp_path / "edges.csv").to_parquet(tmp_path / "edges.parquet")
    parquet = load(tmp_path / "nodes.parquet", edges=tmp_path / "edges.parquet")
    edge_index = np.array([[0, 1, 2], [1, 2, 1]])
    np.savez(tmp_path / "all.npz", x=expected.x, y=np.array(["red", "blue", "red", "green"]), edge_index=edge_index)
    for data in (parquet, load(tmp_path / "all.npz")):
        assert torch.equal(data.x, expected.x)
        assert torch.equal(data.edge_index, expected.edge_index)
    assert torch.equal(parquet.y, expected.y)
    assert load(tmp_path / "all.npz").classes == ["blue", "green", "red"]


def test_the_edges_may_lie_in_an_npz_of_their_own(write, tmp_path):
    np.savez(tmp_path / "edges.npz", edge_index=np.array([[0, 1], [1, 2]]), edge_weight=np.array([0.5, 2.0]))
    data = load(write("nodes.csv", "x\n1\n2\n3\n"), edges=tmp_path / "edges.npz")
    assert data.edge_weight.tolist() == [0.5, 0.5, 2, 2]


def test_without_ids_the_rows_are_numbered_from_zero(write):
    data = load(write("nodes.csv", "x,y\n1,0\n2,1\n"), edges=write("edges.csv", "from,to\n0,1\n"))
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]


def test_weights_are_read_and_those_of_repeated_edges_averaged(write):
    nodes = write("nodes.csv", "x\n1\n2\n3\n")
    data = load(nodes, edges=write("edges.csv", "source,target,weight\n0,1,2\n1,0,4\n1,2,5\n"))
    assert data.edge_weight.tolist() == [3, 3, 5, 5]
    data = load(nodes, edges=write("edges.csv", "source,target,w\n0,1,2\n"), weight="w")
    assert data.edge_weight.tolist() == [2, 2]


def test_a_bare_feature_table_becomes_a_graph_of_nearest_neighbours(write):
    rows = "\n".join(f"{i},{i % 3}" for i in range(20))
    data = load(write("points.csv", f"x,y\n{rows}\n"), k=2)
    assert torch.equal(data.edge_index, knn_graph(data.x, 2))
    assert len(split(data, "1-per-class").train) == 3


def test_columns_can_be_named(write):
    path = write("nodes.csv", "key,a,b,kind\n7,1,2,x\n9,3,4,y\n")
    data = load(path, edges=write("edges.csv", "s,t\n7,9\n"), id="key", label="kind", features=["b"])
    assert data.x.tolist() == [[2], [4]]
    assert data.y.tolist() == [0, 1]


def test_regression_keeps_numbers_and_masks_missing_ones(write):
    data = load(write("nodes.csv", "x,y\n1,0.5\n2,\n3,2\n"), task="regression", k=1)
    assert data.labelled.tolist() == [True, False, True]
    assert torch.equal(data.y.isnan(), ~data.labelled)


def test_integer_labels_keep_their_names_when_one_is_missing(write):
    data = load(write("nodes.csv", "x,label\n1,0\n2,\n3,10\n4,2\n"), k=1)
    assert data.classes == ["0", "2", "10"]
    assert data.y.tolist() == [0, -1, 2, 1]
    assert load(write("nodes.csv", "x,label\n1,0.5\n2,\n3,1\n"), k=1).classes == ["0.5", "1.0"]


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        ("id,x\n1,1\n2,2\nA,3\n", "source,target\n1,2\n"),
        ("id,x\n1,1\n2,2\nA,3\n", "source,target\n1,2\n2,1\n"),
        ("id,x\n01,1\n02,2\nA,3\n", "from,to\n01,02\n"),
        ("id,x\n01,1\n02,2\n", "from,to\n1,2\n"),
    ],
)
def test_ids_are_compared_in_one_form(write, nodes, edges):
    data = load(write("nodes.csv", nodes), edges=write("edges.csv", edges))
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]


def test_an_unknown_id_among_numbers_is_named(write):
    edges = write("edges.csv", "source,target\n1,2\n2,A\n")
    with pytest.raises(DataError, match=r"edges\.csv, row 3: the edge leads to node 'A', which does not exist"):
        load(write("nodes.csv", "id,x\n1,1\n2,2\n"), edges=edges)


@pytest.mark.parametrize("ids", ["1234", "abcd"])
def test_an_edge_in_the_place_of_the_header_is_refused(write, ids):
    a, b, c, d = ids
    nodes = write("nodes.csv", "id,x\n" + "".join(f"{name},1\n" for name in ids))
    edges = write("edges.csv", f"{a},{b}\n{b},{c}\n{c},{d}\n")
    with pytest.raises(DataError, match=rf"edges\.csv, row 1: .*\({a},{b}\) .*must name the columns.*source,target"):
        load(nodes, edges=edges)


@pytest.mark.parametrize("header", ["source,target", "from,to", "Node 1,Node 2", "u,v"])
def test_any_names_do_as_header_of_an_edge_list(write, header):
    nodes = write("nodes.csv", "id,x\n1,1\n2,2\n3,3\n")
    data = load(nodes, edges=write("edges.csv", f"{header}\n1,2\n2,3\n"))
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_a_node_called_like_a_column_is_no_edge_if_the_columns_are_source_and_target(write):
    nodes = write("nodes.csv", "id,x\nsource,1\ntarget,2\n")
    data = load(nodes, edges=write("edges.csv", "source,target\ntarget,source\n"))
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ("id,x\na,1\n\n\nb,tall\n", EDGES, r"nodes\.csv, row 5: x is 'tall'"),
        ("\nid,x\na,1\n  \na,2\n", EDGES, r"nodes\.csv, row 5: node id 'a' is repeated"),
        ("id,x\na,1\nb,2\n", "source,target\na,b\n\na,z\n", r"edges\.csv, row 4: the edge leads to node 'z'"),
        ('id,x\n"a\n\nb",1\n\nc,tall\n', EDGES, r"nodes\.csv, row 4: x is 'tall'"),
    ],
)
def test_blank_lines_are_counted_as_rows(write, nodes, edges, message):
    with pytest.raises(DataError, match=message):
        load(write("nodes.csv", nodes), edges=write("edges.csv", edges))


def test_a_single_feature_may_be_named_without_a_list(write):
    data = load(write("nodes.csv", "height,2020,y\n1,5,0\n2,6,1\n"), features="height", k=1)
    assert (data.x.tolist(), data.features) == ([[1], [2]], ["height"])
    assert load(write("nodes.csv", "height,2020,y\n1,5,0\n2,6,1\n"), features=2020, k=1).features == ["2020"]


def test_labels_may_be_absent_altogether(write):
    assert "y" not in load(write("nodes.csv", "a,b\n1,2\n3,4\n"), k=1)


@pytest.mark.parametrize(
    ("nodes", "edges", "options", "message"),
    [
        (
            NODES,
            "source,target\na,b\nb,z\n",
            {},
            r"edges\.csv, row 3: the edge leads to node 'z', which does not exist",
        ),
        ("x\n1\n2\n", "source,target\n0,1\n0,2\n", {}, r"edges\.csv, row 3: .*node '2',"),
        ("id,x\na,1\nb,2\na,3\n", EDGES, {}, r"nodes\.csv, row 4: node id 'a' is repeated"),
        ("id,x\na,1\nb,tall\n", EDGES, {}, r"nodes\.csv, row 3: x is 'tall', which is not a number"),
        ("id,x\na,1\nb,\n", EDGES, {}, r"nodes\.csv, row 3: x is 'nan', which is not a number"),
        ("x,y\n1,2\n2,high\n", None, {"task": "regression"}, r"row 3: y is 'high', which is not a number"),
        (NODES, EDGES, {"label": "colour"}, r"no column 'colour'. The columns are id, height, width, label"),
        (NODES, EDGES, {"features": ["depth"]}, r"no column 'depth'"),
        (NODES, EDGES, {"id": "key"}, r"no column 'key'"),
        (NODES, EDGES, {"task": "ranking"}, r"no task 'ranking'"),
        (NODES, "source\na\n", {}, r"edges\.csv: an edge list needs two columns"),
        (NODES, "source,target,weight\na,b,heavy\n", {}, r"edges\.csv, row 2: weight is 'heavy'"),
        ("id,label\na,red\n", EDGES, {}, r"no feature column"),
        ("x,y\n1,\n2,\n", None, {}, r"no row has a label in 'y'"),
        ("x,y\n", None, {}, r"nodes\.csv: there is no usable row"),
        ("", None, {}, r"nodes\.csv: the table cannot be read"),
        ("x\n1\n2\n", None, {}, r"2 rows cannot have 10 neighbours"),
        ("x\n1\n1e40\n", None, {}, r"nodes\.csv, row 3: x is '1e\+40', which is too large"),
        ("x,y\n1,1\n2,-1e39\n", None, {"task": "regression"}, r"row 3: y is '-1e\+39', which is too large"),
        ("x;y\n1;2,5\n", None, {}, r"nodes\.csv: the columns are separated by semicolons.*commas"),
        ("x\ty\n1\t2\n", None, {}, r"nodes\.csv: the columns are separated by tabs.*commas"),
        (NODES, "source;target\na;b\n", {}, r"edges\.csv: the columns are separated by semicolons"),
        (NODES, "source,target\na,b,1\n", {}, r"edges\.csv, row 2: 3 cells under 2 columns"),
        (NODES, EDGES, {"label": "Label"}, r"no column 'Label'. The columns are .*: pass label='label'"),
        (NODES, EDGES, {"features": "Width"}, r"no column 'Width'. .*: pass features=\['width'\]"),
    ],
)
def test_a_bad_table_is_named_with_row_and_remedy(write, nodes, edges, options, message):
    more = {"edges": write("edges.csv", edges)} if edges else {}
    with pytest.raises(DataError, match=message):
        load(write("nodes.csv", nodes), **more, **options)


def test_other_files_are_answered(write, tmp_path):
    with pytest.raises(DataError, match=r"nodes\.xls: a table ends in \.csv, \.parquet, \.npz"):
        load(write("nodes.xls", "x"))
    with pytest.raises(DataError, match=r"edges\.csv: there is no such file"):
        load(write("nodes.csv", NODES), edges=tmp_path / "edges.csv")
    with pytest.raises(DataError, match=r"broken\.parquet: the table cannot be read"):
        load(write("broken.parquet", "not parquet"))
    with pytest.raises(DataError, match=r"text\.parquet: the table cannot be read .*UTF"):
        load(with_bad_text(tmp_path / "text.parquet", {"id": [0, 1], "label": ["a", "b"], "size": [0.5, 1.5]}))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": np.ones(3)}, "no array x, only z"),
        ({"x": np.ones((3, 1)), "y": np.ones(2)}, "x has 3 rows, y has 2"),
        ({"x": np.ones((3, 1)), "edge_index": np.ones((3, 2), int)}, r"no array edge_index of shape \[2, edges\]"),
        ({"x": np.array([{}], dtype=object)}, "the array 'x.npy' holds object, not numbers"),
        ({"x": np.ones((3, 1), complex)}, "the array 'x.npy' holds complex128, not numbers"),
        ({"x": np.ones((3, 0))}, r"x has the shape \(3, 0\), and no values"),
        ({"x": np.ones((3, 1)), "edge_index": np.ones((2, 3), bool)}, "no array edge_index"),
    ],
)
def test_a_bad_npz_is_named(tmp_path, arrays, message):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=rf"bad\.npz: .*{message}"):
        load(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    "text",
    [
        "weight,u,v\n2,0,1\n3,1,2\n",
        "Source,Target,Weight\n0,1,2\n1,2,3\n",
        "Id,Target,Source,weight\n9,1,0,2\n9,2,1,3\n",
        "Source,source,target,weight\n7,0,1,2\n7,1,2,3\n",
    ],
)
def test_columns_of_edges_are_found_in_any_order_and_case(tmp_path, text):
    (tmp_path / "n.csv").write_text("id,a\n0,1\n1,2\n2,3\n")
    (tmp_path / "e.csv").write_text(text)
    data = load(tmp_path / "n.csv", edges=tmp_path / "e.csv")
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.edge_weight.tolist() == [2.0, 2.0, 3.0, 3.0]


def test_a_column_may_have_a_number_for_a_name(tmp_path):
    (tmp_path / "n.csv").write_text("7,a,2020\n0,1,x\n1,2,y\n2,3,x\n")
    data = load(tmp_path / "n.csv", id=7, label=2020, k=1)
    assert data.features == ["a"]
    assert data.y.tolist() == [0, 1, 0]


def test_a_node_without_an_id_is_refused(tmp_path):
    (tmp_path / "n.csv").write_text("id,a\n1,0\n,1\n3,2\n")
    with pytest.raises(DataError, match=r"row 3: the node has no id"):
        load(tmp_path / "n.csv", k=1)


def test_an_edge_without_an_end_is_refused(tmp_path):
    (tmp_path / "n.csv").write_text("id,a\n1,0\n2,1\n3,2\n")
    (tmp_path / "e.csv").write_text("source,target\n1,2\n3,\n")
    with pytest.raises(DataError, match=r"row 3: the edge leads to node 'nan', which does not exist"):
        load(tmp_path / "n.csv", edges=tmp_path / "e.csv")


def test_an_archive_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros((1000, 1000)))
    assert load(tmp_path / "bomb.npz", k=1).x.shape == (1000, 1000)
    monkeypatch.setenv("LANCZOSNET_MAX_BYTES", "1e6")
    with pytest.raises(ValueError, match=r"bomb\.npz: bytes when it is decompressed: 8,000,128 .*LANCZOSNET_MAX_BYTES"):
        load(tmp_path / "bomb.npz", k=1)
    np.savez(tmp_path / "large.npz", x=np.zeros((1000, 1000)))  # what is large itself is as its owner wanted
    load(tmp_path / "large.npz", k=1)


@pytest.mark.parametrize("weight", [[1.0], [1.0, float("nan")], [[1.0], [2.0]]], ids=str)
def test_weights_in_an_npz_are_checked(tmp_path, weight):
    np.savez(tmp_path / "n.npz", x=np.ones((3, 2)), edge_index=np.array([[0, 1], [1, 2]]), edge_weight=np.array(weight))
    with pytest.raises(DataError, match="edge_weight is not one finite number for each edge"):
        load(tmp_path / "n.npz")
