import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from torch_geometric.datasets import Planetoid
from torch_geometric.transforms import NormalizeFeatures

from lanczosnet.graphs import load
from lanczosnet.graphs.data_sets import sources
from lanczosnet.graphs.data_sets.citation import read_planetoid
from lanczosnet.graphs.errors import DataError
from lanczosnet.transforms import summary

pytestmark = pytest.mark.data

NAMES = ("cora", "citeseer", "pubmed")


def copy_raw(real_data, name, folder):
    folder.mkdir(parents=True)
    for file in sources.planetoid(name).values():
        shutil.copy(real_data / "planetoid" / file.name, folder)
        (folder / file.name).chmod(0o644)


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "classes", "components"),
    [("cora", 2708, 5278, 7, 78), ("citeseer", 3327, 4552, 6, 438), ("pubmed", 19717, 44324, 3, 1)],
)
def test_the_networks_have_the_published_sizes(real_data, name, nodes, edges, classes, components):
    facts = summary(load(name, data_dir=real_data))
    assert (facts["nodes"], facts["edges"]) == (nodes, edges)
    assert (facts["classes"], facts["components"]) == (classes, components)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("normalize", [False, True], ids=["raw", "normalised"])
def test_the_networks_equal_those_of_pyg_tensor_for_tensor(real_data, tmp_path, name, normalize, capsys):
    copy_raw(real_data, name, tmp_path / name / "raw")
    reference = Planetoid(str(tmp_path), name, transform=NormalizeFeatures() if normalize else None)[0]
    data = load(name, data_dir=real_data, normalize=normalize)
    assert set(reference.keys()) == {"x", "edge_index", "y", "train_mask", "val_mask", "test_mask"}
    for key, value in reference.items():
        assert data[key].dtype == value.dtype
        assert torch.equal(data[key], value), key


@pytest.mark.parametrize("name", NAMES)
def test_features_are_row_normalised_unless_unwanted(real_data, name):
    sums = load(name, data_dir=real_data).x.sum(dim=1)
    ones = torch.ones_like(sums)
    assert torch.allclose(torch.where(sums == 0, ones, sums), ones, atol=1e-5)
    assert not torch.allclose(load(name, data_dir=real_data, normalize=False).x.sum(dim=1), sums)


@pytest.mark.parametrize("name", NAMES)
def test_features_may_be_rows_of_length_one(real_data, name):
    raw, scaled = (load(name, data_dir=real_data, normalize=normalize).x for normalize in (False, "length"))
    assert torch.allclose(scaled * raw.norm(dim=1, keepdim=True), raw, atol=1e-5)
    lengths = scaled.norm(dim=1)
    assert torch.allclose(lengths[raw.any(1)], torch.ones(()), atol=1e-5)
    assert torch.equal(load(name, data_dir=real_data, normalize="sum").x, load(name, data_dir=real_data).x)


def test_an_unknown_way_to_normalise_lists_the_known_ones(real_data):
    with pytest.raises(DataError, match="'sum', 'length' or False, but is 'max'"):
        load("cora", data_dir=real_data, normalize="max")


def test_the_nodes_that_citeseer_leaves_out_have_zero_features_and_no_label(real_data):
    data = load("citeseer", data_dir=real_data)
    missing = ~data.labelled
    assert int(missing.sum()) == 15
    assert not data.x[missing].any()
    assert not (data.train_mask | data.val_mask | data.test_mask)[missing].any()
    assert load("cora", data_dir=real_data).labelled.all()


@pytest.mark.parametrize("layout", ["planetoid", "Cora/raw", "cora/raw", "cora", "."])
def test_other_layouts_of_the_files_are_found(real_data, tmp_path, layout):
    copy_raw(real_data, "cora", tmp_path / "data" / layout if layout != "." else tmp_path / "data")
    assert load("cora", data_dir=tmp_path / "data").num_nodes == 2708


def test_a_truncated_file_is_named_with_the_remedy(real_data, tmp_path):
    copy_raw(real_data, "cora", tmp_path / "planetoid")
    victim = tmp_path / "planetoid" / "ind.cora.allx"
    victim.write_bytes(victim.read_bytes()[:1000])
    with pytest.raises(DataError, match=r"ind\.cora\.allx.*1000 bytes.*257305.*wrong checksum.*data fetch cora"):
        load("cora", data_dir=tmp_path)


def test_a_good_copy_elsewhere_on_the_search_path_serves_instead_of_a_bad_one(real_data, tmp_path, user_cache):
    copy_raw(real_data, "cora", tmp_path / "planetoid")
    copy_raw(real_data, "cora", user_cache / "planetoid")
    (tmp_path / "planetoid" / "ind.cora.x").write_bytes(b"")
    assert load("cora", data_dir=tmp_path).num_nodes == 2708


def test_missing_files_are_downloaded(real_data, tmp_path, monkeypatch):
    handler = partial(QuietHandler, directory=str(real_data / "planetoid"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(sources, "_PLANETOID_MIRRORS", (f"http://127.0.0.1:{server.server_port}",))
        assert load("cora", data_dir=tmp_path).num_nodes == 2708
        server.shutdown()
        thread.join()
    assert (tmp_path / "planetoid" / "ind.cora.x").is_file()
    monkeypatch.setattr(sources, "_PLANETOID_MIRRORS", ())
    assert load("cora", data_dir=tmp_path).num_nodes == 2708


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments) -> None:
        pass


def test_missing_files_come_with_directions_where_there_is_no_network(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_PLANETOID_MIRRORS", ("http://127.0.0.1:9",))
    with pytest.raises(
        DataError, match=r"(?s)ind\.cora\.x could not be downloaded.*data fetch cora.*without a network"
    ):
        load("cora", data_dir=tmp_path)


def test_an_edge_to_a_node_that_does_not_exist_is_an_error(real_data, tmp_path):
    copy_raw(real_data, "cora", tmp_path / "planetoid")
    paths = {part: tmp_path / "planetoid" / file.name for part, file in sources.planetoid("cora").items()}
    paths["graph"].write_bytes(b"\x80\x02}K\x00](J\x10\x27\x00\x00es.")
    with pytest.raises(DataError, match=r"ind\.cora\.graph.*node 10000 of 2708"):
        read_planetoid(paths)


def test_an_index_file_that_is_not_numbers_is_an_error(real_data, tmp_path):
    copy_raw(real_data, "cora", tmp_path / "planetoid")
    paths = {part: tmp_path / "planetoid" / file.name for part, file in sources.planetoid("cora").items()}
    paths["test.index"].write_text("1708\nseven\n")
    with pytest.raises(DataError, match=r"test\.index.*not a list of node numbers"):
        read_planetoid(paths)
