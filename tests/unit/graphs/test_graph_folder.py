"""Graph folders: what is written is opened, sliced and checked."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.affinity import adjacency, stored_rows
from lanczosnet.batching import shard
from lanczosnet.graphs import DataError, load
from lanczosnet.graphs.formats.graph_folder import open_graph
from lanczosnet.graphs.formats.stored_graph import store_graph
from lanczosnet.graphs.node_order import node_order
from lanczosnet.schemas.record import FileError
from lanczosnet.training import JobSpec, TrainingError, prepare, run


@pytest.fixture
def data() -> Data:
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(0, 30, (2, 80), generator=generator)
    ends[:, 0] = 3  # a self-loop
    y = torch.randint(0, 3, (31,), generator=generator)
    return Data(x=torch.randn(31, 4, generator=generator), edge_index=ends, y=y, name="mine")  # node 30 is alone


def test_a_stored_graph_is_loaded_as_it_was_made_undirected(data, tmp_path):
    store_graph(data, tmp_path / "big")
    found = load(tmp_path / "big")
    expected = torch.cat([data.edge_index, data.edge_index.flip(0)], 1)
    expected = expected[:, expected[0] != expected[1]].unique(dim=1)
    assert torch.equal(found.edge_index, expected)
    assert (found.num_nodes, found.num_edges, found.name) == (31, expected.shape[1], "mine")
    assert torch.equal(found.x, data.x)
    assert torch.equal(found.y, data.y)
    assert found.column.dtype == torch.int32


def test_rows_of_a_folder_are_those_of_the_graph(data, tmp_path):
    data.edge_weight = torch.rand(80, generator=torch.Generator().manual_seed(1))
    store_graph(data, tmp_path)
    folder = open_graph(tmp_path)
    whole = folder.rows(0, 31)
    part = folder.rows(7, 20)
    begin, end = whole.row_pointer[7], whole.row_pointer[20]
    assert np.array_equal(part.row_pointer, whole.row_pointer[7:21] - begin)
    assert np.array_equal(part.column, whole.column[begin:end])
    assert np.array_equal(part.edge_weight, whole.edge_weight[begin:end])
    assert np.array_equal(part.arrays["features"], data.x[7:20])
    assert part.arrays.keys() == {"features", "labels"}


def test_writing_to_a_loaded_graph_leaves_the_file_as_it_is(data, tmp_path):
    store_graph(data, tmp_path)
    load(tmp_path).x.zero_()
    assert torch.equal(load(tmp_path).x, data.x)


def test_checksums_tell_a_changed_array(data, tmp_path):
    store_graph(data, tmp_path)
    assert set(open_graph(tmp_path).problems().values()) == {"ok"}
    content = bytearray((tmp_path / "features.npy").read_bytes())
    content[-1] ^= 1
    (tmp_path / "features.npy").write_bytes(content)
    assert open_graph(tmp_path).problems()["features"] == "wrong checksum"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_nodes": 7}, "row_pointer has the shape \\[32\\], but there are 8 rows"),
        ({"kind": "else"}, "not a 'lanczosnet graph folder'"),
        ({"format": 9}, "update lanczosnet"),
        ({"arrays": {}}, "there is no array column, row_pointer"),
        ({"num_entries": "many"}, "num_entries: expected a whole number"),
        ({"about": {"classes": 7}}, "about.classes: expected"),
        ({"about": {"classes": ["a", ["b"]]}}, "classes are either texts, or lists"),
        ({"about": {"features": ["a"]}}, "features has 4 columns, but 1 have a name"),
        ({"about": {"task": "guess"}}, "about.task: "),
        ({"more": 1}, "unknown field 'more'"),
    ],
)
def test_a_wrong_manifest_is_an_error(data, tmp_path, change, message):
    store_graph(data, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(FileError, match=message if "kind" in change else "changed after it was written"):
        open_graph(tmp_path)
    del manifest["checksum"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(FileError, match=message):
        open_graph(tmp_path)


def test_folders_of_earlier_versions_have_no_checksum(data, tmp_path):
    store_graph(data, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    del manifest["checksum"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert load(tmp_path).num_nodes == 31


def test_an_array_of_another_shape_or_of_objects_is_an_error(data, tmp_path):
    store_graph(data, tmp_path)
    np.save(tmp_path / "features.npy", np.zeros((31, 5), np.float32))
    with pytest.raises(DataError, match=r"float32 \[31, 5\]"):
        load(tmp_path)
    np.save(tmp_path / "features.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "features.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path)
    np.save(tmp_path / "features.npy", np.zeros((31, 4), ">f4"))
    with pytest.raises(DataError, match=r"features.npy: the array is >f4 \[31, 4\], but the manifest says float32"):
        load(tmp_path)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (31, 4L, }".ljust(117) + b"\n"
    (tmp_path / "features.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + header)
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path)


def test_a_network_trains_on_a_folder_as_on_the_graph(tmp_path):
    store_graph(load("karate"), tmp_path / "folder")
    torch.save(load("karate"), tmp_path / "karate.pt")
    settings = {"epochs": 3, "hidden_channels": 4}
    results = []
    for source in (tmp_path / "folder", tmp_path / "karate.pt"):
        spec = JobSpec(str(source), settings=settings, split="1-per-class")
        results.append(run(prepare(spec), tmp_path / f"model-{source.suffix}"))
    assert results[0].metrics == results[1].metrics


def damaged(array: str, place: int, value: float, folder: Path) -> None:
    """As by somebody who corrects the checksums."""
    content = np.load(folder / f"{array}.npy")
    content.reshape(-1)[place] = value
    np.save(folder / f"{array}.npy", content)


@pytest.mark.parametrize(
    ("array", "place", "value", "message"),
    [
        ("column", 5, 10**9, "a column is 1,000,000,000, but there are 31 nodes"),
        ("column", 5, -7, "a column is -7, but there are 31 nodes"),
        ("column", 1, 0, "(do not rise|has a self-loop)"),
        ("column", -1, 2, "(do not rise|no transpose)"),
        ("row_pointer", 5, 10**6, "the row pointers do not rise"),
        ("row_pointer", 5, -30, "the row pointers do not rise"),
        ("edge_weight", 3, 77.0, "one of another weight"),
    ],
)
@pytest.mark.parametrize("use", ["adjacency", "order", "shard", "train"])
def test_rows_that_are_no_graph_are_named_where_they_are_used(data, tmp_path, array, place, value, message, use):
    data.edge_weight = torch.rand(80, generator=torch.Generator().manual_seed(1))
    store_graph(data, tmp_path)
    damaged(array, place, value, tmp_path)
    found = load(tmp_path)
    if use == "adjacency":
        with pytest.raises(ValueError, match=f"^{tmp_path}: .*{message}"):
            adjacency(found)
    elif use == "order":
        if abs(value) > 5 and array != "edge_weight":
            with pytest.raises(ValueError, match=r"ind(ex|ices|ptr)"):
                node_order(found, "rcm")
    elif use == "shard":
        if abs(value) > 5 and array != "edge_weight":
            with pytest.raises(ValueError, match=f"^{tmp_path}: .*{message}"):
                shard._rows(found, torch.arange(31))
    else:
        spec = JobSpec(str(tmp_path), settings={"epochs": 1, "hidden_channels": 4}, split="1-per-class")
        with pytest.raises(ValueError, match=f"^{tmp_path}: .*{message}"):
            run(prepare(spec), tmp_path / "model")


def test_rows_that_are_a_graph_pass(data, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_rows, "ENTRIES_AT_A_TIME", 7)
    for weight in (None, torch.rand(80, generator=torch.Generator().manual_seed(1))):
        if weight is not None:
            data.edge_weight = weight
        store_graph(data, tmp_path)
        torch.testing.assert_close(adjacency(load(tmp_path)).dense(), adjacency(load(tmp_path), validate=False).dense())


def test_an_entry_without_its_transpose_is_found():
    pointer, column = torch.tensor([0, 2, 3, 3]), torch.tensor([1, 2, 0])
    with pytest.raises(ValueError, match="no transpose"):
        stored_rows.check_rows(pointer, column, None)


def test_classes_without_a_name_are_an_error(data, tmp_path):
    data.classes = ["red", "blue"]  # y goes up to 2
    store_graph(data, tmp_path)
    with pytest.raises(TrainingError, match=r"^mine: .* up to 2, but 2 classes have names"):
        prepare(JobSpec(str(tmp_path), split="1-per-class"))


def test_a_process_without_rows_has_nothing_to_check():
    stored_rows.check_row_pointers(torch.empty(0, dtype=torch.long), 5)
