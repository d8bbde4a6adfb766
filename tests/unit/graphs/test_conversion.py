"""Files of any size become graph folders: the same graph from every format, after a kill, and with errors by row."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.affinity import adjacency
from lanczosnet.graphs import DataError, load
from lanczosnet.graphs.conversion import edges as edge_module
from lanczosnet.graphs.conversion import journal, tables
from lanczosnet.graphs.conversion.convert import convert
from lanczosnet.graphs.formats.graph_folder import is_graph_folder
from lanczosnet.graphs.formats.stored_graph import store_graph
from lanczosnet.models.registry import model
from parquet_builders import with_bad_text

NODES, EDGES = 300, 2000


@pytest.fixture
def ends() -> np.ndarray:
    """With self-loops, both directions of some edges, repeated ones, and a hub."""
    ends = np.random.default_rng(0).integers(0, NODES, (2, EDGES))
    ends[0, :150] = 7
    ends[:, -1] = NODES - 1
    return np.concatenate([ends, ends[::-1, :100], ends[:, 100:150]], 1)


def write_edges(ends: np.ndarray, path: Path, **more: np.ndarray) -> Path:
    table = pd.DataFrame({"source": ends[0], "target": ends[1]} | more)
    if path.suffix == ".npy":
        np.save(path, ends)
    elif path.suffix == ".parquet":
        table.to_parquet(path, row_group_size=100)
    else:
        table.to_csv(path, index=False)
    return path


def expected_graph(ends: np.ndarray, folder: Path, weight: np.ndarray | None = None) -> Data:
    data = Data(edge_index=torch.from_numpy(ends.copy()), num_nodes=NODES)
    if weight is not None:
        data.edge_weight = torch.from_numpy(weight)
    store_graph(data, folder)
    return load(folder)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 300)
    monkeypatch.setattr(tables, "BYTES", 3000)
    monkeypatch.setattr(edge_module, "NUM_FILES", 4)
    monkeypatch.setattr(edge_module, "FEWEST_ROWS", 1)
    monkeypatch.setattr(edge_module, "IN_MEMORY", 400)
    monkeypatch.setattr(journal, "SECONDS", 0.0)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["edges.npy", "edges.parquet", "edges.csv", "edges.csv.gz"])
def test_edges_of_every_format_become_the_same_rows(ends, name, tmp_path):
    path = write_edges(ends, tmp_path / name)
    convert(path, tmp_path / "big")
    found, expected = load(tmp_path / "big"), expected_graph(ends, tmp_path / "small")
    assert torch.equal(found.row_pointer, expected.row_pointer)
    assert torch.equal(found.column, expected.column)
    assert sorted(file.name for file in (tmp_path / "big").iterdir()) == [
        "column.npy",
        "manifest.json",
        "row_pointer.npy",
    ]


@pytest.mark.usefixtures("small_blocks")
def test_weights_of_repeated_edges_are_averaged(ends, tmp_path):
    weight = np.random.default_rng(1).random(ends.shape[1]).astype(np.float32)
    path = write_edges(ends, tmp_path / "edges.parquet", weight=weight)
    convert(path, tmp_path / "big", num_nodes=NODES)
    found, expected = load(tmp_path / "big"), expected_graph(ends, tmp_path / "small", weight)
    assert torch.equal(found.column, expected.column)
    torch.testing.assert_close(found.edge_weight, expected.edge_weight)
    A = adjacency(found.edge_index, found.edge_weight, num_nodes=NODES)
    assert torch.equal(A.values, adjacency(found).values)  # and both directions are equal: the check has passed


def test_rows_become_the_operator_that_their_edges_become(ends, tmp_path):
    graph = expected_graph(ends, tmp_path)
    found, expected = adjacency(graph), adjacency(graph.edge_index, num_nodes=NODES)
    for name in ("row_pointer", "column", "values", "diagonal_position"):
        assert torch.equal(getattr(found, name), getattr(expected, name))
        assert getattr(found, name).dtype == getattr(expected, name).dtype


class KilledError(Exception):
    pass


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("name", "after"), [("edges.parquet", 3), ("edges.csv.gz", 6), ("edges.npy", 11), ("edges.csv", 14)]
)
def test_a_killed_conversion_goes_on(ends, name, after, tmp_path, monkeypatch):
    path, nodes = write_edges(ends, tmp_path / name), tmp_path / "nodes.csv"
    rng = np.random.default_rng(2)
    pd.DataFrame({"a": rng.random(NODES), "y": rng.integers(0, 3, NODES)}).to_csv(nodes, index=False)
    notes: list[str] = []
    kill_at = 10**6

    def killing(self, step, facts, note=journal.Journal.note):
        notes.append(step)
        note(self, step, facts)
        if len(notes) == kill_at:
            raise KilledError

    monkeypatch.setattr(journal.Journal, "note", killing)
    whole = convert(path, tmp_path / "whole", nodes=nodes)
    in_all, kill_at = len(notes), len(notes) + after
    with pytest.raises(KilledError):
        convert(path, tmp_path / "big", nodes=nodes)
    found = convert(path, tmp_path / "big", nodes=nodes)
    assert len(notes) <= 2 * in_all + 3  # it did not begin anew
    assert found.checksums == whole.checksums
    assert found.about["features"] == ["a"]


@pytest.mark.parametrize("line", ["5", "5,x", "5,-1", "5,300", "5,", "5,6,7", ""])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_malformed_row_is_named(line, suffix, tmp_path):
    path = tmp_path / f"edges{suffix}"
    text = "source,target\n1,2\n3,4\n" + line + "\n8,9\n"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    with pytest.raises(DataError, match="row 4"):
        convert(path, tmp_path / "big", num_nodes=300)
    assert not is_graph_folder(tmp_path / "big")


def test_wrong_rows_of_parquet_and_arrays_are_named(ends, tmp_path):
    ends[0, 123] = -5
    with pytest.raises(DataError, match=r"row 125: source is -5"):
        convert(write_edges(ends, tmp_path / "edges.parquet"), tmp_path / "big")
    with pytest.raises(DataError, match=r"row 123: source is -5"):
        convert(write_edges(ends, tmp_path / "edges.npy"), tmp_path / "big")
    (tmp_path / "edges.csv").write_text("1,2\n3,4\n")
    with pytest.raises(DataError, match="first line"):
        convert(tmp_path / "edges.csv", tmp_path / "big")


def test_a_node_table_brings_features_labels_and_the_split(ends, tmp_path):
    path = write_edges(ends, tmp_path / "edges.csv")
    rng = np.random.default_rng(3)
    kind = rng.choice(["b", "a", ""], NODES)
    part = rng.choice(["train", "valid", "test", ""], NODES)
    a = rng.random(NODES)
    pd.DataFrame({"a": a, "kind": kind, "n": range(NODES), "split": part}).to_csv(tmp_path / "nodes.csv", index=False)
    convert(path, tmp_path / "big", nodes=tmp_path / "nodes.csv", label="kind")
    data = load(tmp_path / "big")
    assert data.features == ["a", "n"]
    np.testing.assert_array_equal(data.x, np.stack([a, np.arange(NODES)], 1).astype(np.float32))
    assert data.classes == ["a", "b"]
    assert data.y.tolist() == [{"a": 0, "b": 1, "": -1}[word] for word in kind]
    assert data.labelled.tolist() == [bool(word) for word in kind]
    assert data.val_mask.tolist() == [word == "valid" for word in part]


def test_arrays_bring_features_labels_and_masks(ends, tmp_path):
    rng = np.random.default_rng(4)
    x, y = rng.random((NODES, 5)), rng.integers(-1, 3, NODES)
    is_train, test = rng.random(NODES) < 0.5, rng.permutation(NODES)[:40]
    for name, array in {"x": x, "y": y, "train": is_train, "test": test}.items():
        np.save(tmp_path / f"{name}.npy", array)
    options = {"features": tmp_path / "x.npy", "labels": tmp_path / "y.npy"}
    masks = {"train": tmp_path / "train.npy", "test": tmp_path / "test.npy"}
    convert(write_edges(ends, tmp_path / "edges.npy"), tmp_path / "big", masks=masks, **options)
    data = load(tmp_path / "big")
    np.testing.assert_array_equal(data.x, x.astype(np.float32))
    assert data.y.tolist() == y.tolist()
    assert data.train_mask.tolist() == is_train.tolist()
    assert sorted(data.test_mask.nonzero().squeeze(1).tolist()) == sorted(test.tolist())
    np.save(tmp_path / "x.npy", np.where(x == x[9, 2], np.nan, x))
    with pytest.raises(DataError, match="node 9 are not finite"):
        convert(tmp_path / "edges.npy", tmp_path / "other", **options)


def test_raw_folders_of_the_open_graph_benchmark_are_read(ends, tmp_path):
    raw, split = tmp_path / "ogbn_toy" / "raw", tmp_path / "ogbn_toy" / "split" / "time"
    raw.mkdir(parents=True)
    split.mkdir(parents=True)
    rng = np.random.default_rng(5)
    x, y = rng.random((NODES, 3)).round(4), rng.integers(0, 4, (NODES, 1))
    order = np.array_split(rng.permutation(NODES), 3)
    tables_of = {"edge": ends.T, "node-feat": x, "node-label": y, "num-node-list": np.array([[NODES]])}
    for name, array in tables_of.items():
        pd.DataFrame(array).to_csv(raw / f"{name}.csv.gz", header=False, index=False)
    for name, numbers in zip(("train", "valid", "test"), order, strict=True):
        pd.DataFrame(numbers).to_csv(split / f"{name}.csv.gz", header=False, index=False)
    convert(tmp_path / "ogbn_toy", tmp_path / "big")
    data, expected = load(tmp_path / "big"), expected_graph(ends, tmp_path / "small")
    assert torch.equal(data.column, expected.column)
    np.testing.assert_array_equal(data.x, x.astype(np.float32))
    assert data.y.tolist() == y[:, 0].tolist()
    assert data.val_mask.nonzero().squeeze(1).tolist() == sorted(order[1].tolist())
    np.savez(raw / "data.npz", edge_index=ends, node_feat=x.astype(np.float16))
    np.savez(raw / "node-label.npz", node_label=np.where(y == 3, np.nan, y)[:, 0])
    convert(tmp_path / "ogbn_toy", tmp_path / "packed")
    data = load(tmp_path / "packed")
    assert torch.equal(data.column, expected.column)
    assert data.y.tolist() == np.where(y == 3, -1, y)[:, 0].tolist()


def test_a_folder_is_not_replaced_unless_asked(ends, tmp_path):
    path = write_edges(ends, tmp_path / "edges.npy")
    convert(path, tmp_path / "big")
    with pytest.raises(DataError, match="overwrite"):
        convert(path, tmp_path / "big")
    convert(path, tmp_path / "big", overwrite=True)


def test_a_network_sees_the_same_graph_in_a_folder(ends, tmp_path):
    graph = expected_graph(ends, tmp_path)
    graph.x = torch.randn(NODES, 4, generator=torch.Generator().manual_seed(0))
    network = model("lanczosnet", in_channels=4, hidden_channels=8, out_channels=2).eval()
    with torch.no_grad():
        assert torch.equal(network(graph), network(graph.x, graph.edge_index))


def test_parquet_that_is_damaged_is_a_message(ends, tmp_path):
    edges = write_edges(ends, tmp_path / "edges.npy")
    nodes = with_bad_text(tmp_path / "nodes.parquet", {"size": [0.5] * NODES, "kind": ["a"] * NODES})
    with pytest.raises(DataError, match=r"nodes\.parquet: the table cannot be read .*UTF.*\. Write the file again"):
        convert(edges, tmp_path / "big", nodes=nodes, label="kind")
    nodes.write_bytes(nodes.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"nodes\.parquet: the table cannot be read .*\. Write the file again"):
        convert(edges, tmp_path / "big", nodes=nodes, label="kind")


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_ids_of_nodes_are_what_edges_name_and_no_feature(ends, suffix, tmp_path):
    ids = np.random.default_rng(2).permutation(10**12 + 7 * np.arange(NODES))
    nodes = pd.DataFrame({"id": ids, "weight": np.arange(NODES, dtype=float), "label": np.arange(NODES) % 3})
    path = tmp_path / f"nodes{suffix}"
    nodes.to_csv(path, index=False) if suffix == ".csv" else nodes.to_parquet(path)
    edges = write_edges(ids[ends], tmp_path / "edges.csv")
    folder = convert(edges, tmp_path / "big", nodes=path)
    found, expected = load(tmp_path / "big"), expected_graph(ends, tmp_path / "small")
    assert folder.about["features"] == ["weight"]
    assert torch.equal(found.row_pointer, expected.row_pointer)
    assert torch.equal(found.column, expected.column)


def test_a_folder_has_the_graph_that_load_makes_of_the_same_tables(tmp_path):
    nodes = "id,a,label\n30,0.5,red\n10,1.5,blue\n20,2.5,red\n"
    (tmp_path / "nodes.csv").write_text(nodes, encoding="utf-8")
    (tmp_path / "edges.csv").write_text("source,target\n10,20\n30,10\n", encoding="utf-8")
    small = load(tmp_path / "nodes.csv", edges=tmp_path / "edges.csv")
    convert(tmp_path / "edges.csv", tmp_path / "big", nodes=tmp_path / "nodes.csv")
    big = load(tmp_path / "big")
    rows = torch.repeat_interleave(torch.arange(3), big.row_pointer.diff())
    assert {*zip(rows.tolist(), big.column.tolist(), strict=True)} == {*map(tuple, small.edge_index.T.tolist())}
    assert torch.equal(torch.as_tensor(big.x), small.x)
    assert torch.equal(big.y, small.y)


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ("id,a\n5,1\n7,2\n", "5,6", r"edges\.csv, row 2: target is 6, but no node has this id"),
        ("id,a\n5,1\n7,2\n5,3\n", "5,7", r"nodes\.csv, row 4: the id 5 stands in an earlier row"),
        ("id,a\n5,1\n,2\n", "5,5", r"nodes\.csv, row 3: (the node has no id|id is '')"),
        ("id,a\nx,1\ny,2\n", "0,1", r"nodes\.csv, row 2: id is 'x', which is not an integer"),
    ],
)
def test_wrong_ids_are_named(nodes, edges, message, tmp_path):
    (tmp_path / "nodes.csv").write_text(nodes, encoding="utf-8")
    (tmp_path / "edges.csv").write_text(f"source,target\n{edges}\n", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        convert(tmp_path / "edges.csv", tmp_path / "big", nodes=tmp_path / "nodes.csv")


def test_ids_can_be_features_where_they_are_asked_for(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,a\n5,1\n7,2\n", encoding="utf-8")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n", encoding="utf-8")
    folder = convert(tmp_path / "edges.csv", tmp_path / "big", nodes=tmp_path / "nodes.csv", columns=["id", "a"])
    assert folder.about["features"] == ["id", "a"]
