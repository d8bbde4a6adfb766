"""Graph folders: what is written is opened, sliced and checked."""

import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.graphs import DataError, load
from lanczosnet.graphs.formats.graph_folder import open_graph
from lanczosnet.graphs.formats.stored_graph import store_graph


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
        ({"num_nodes": 7}, "row_pointer has not 8 rows"),
        ({"kind": "else"}, "not a 'lanczosnet graph folder'"),
        ({"format": 9}, "Update lanczosnet"),
        ({"arrays": {}}, "there is no array column, row_pointer"),
        ({"num_entries": "many"}, "not a manifest"),
    ],
)
def test_a_wrong_manifest_is_an_error(data, tmp_path, change, message):
    store_graph(data, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(DataError, match=message):
        open_graph(tmp_path)


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


def test_a_network_trains_on_a_folder_as_on_the_graph(tmp_path):
    from lanczosnet.training import JobSpec, prepare, run

    store_graph(load("karate"), tmp_path / "folder")
    torch.save(load("karate"), tmp_path / "karate.pt")
    settings = {"epochs": 3, "hidden_channels": 4}
    results = []
    for source in (tmp_path / "folder", tmp_path / "karate.pt"):
        spec = JobSpec(str(source), settings=settings, split="1-per-class")
        results.append(run(prepare(spec), tmp_path / f"model-{source.suffix}"))
    assert results[0].metrics == results[1].metrics
