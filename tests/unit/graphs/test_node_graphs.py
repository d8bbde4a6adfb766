"""The benchmarks of node classification, from small files of the published forms and from the real ones."""

import hashlib
import io
import json
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.datasets import CityNetwork, HeterophilousGraphDataset, WikiCS
from torch_geometric.io import read_npz as pyg_read_npz

from lanczosnet.graphs import CATALOGUE, DataError, load, public_splits
from lanczosnet.graphs.data_sets.node_graphs import read_node_graph
from lanczosnet.graphs.data_sets.node_sets import NODE_FILES, NODE_SETS, NodeSet
from lanczosnet.graphs.data_sets.verify import verify

NODES, FEATURES, CLASSES, SPLITS = 12, 5, 3, 4
# One edge is there in both directions, one twice, and one is a self-loop: ten are left.
EDGES = np.array([[i, (i + 1) % 10] for i in range(10)] + [[1, 0], [2, 3], [4, 4]])


def published(form: str, **changes) -> NodeSet:
    sizes = {"nodes": NODES, "edges": 10, "features": FEATURES, "classes": CLASSES}
    return NodeSet("toy", "a toy", form, **sizes | changes)


@pytest.fixture
def content():
    """Features, labels and masks `[split, node]`."""
    random = np.random.default_rng(0)
    part = random.integers(0, 3, (SPLITS, NODES))
    features = random.integers(0, 3, (NODES, FEATURES)).astype(np.float32)
    return features, np.arange(NODES) % CLASSES, [part == number for number in range(3)]


def heterophilous(path, content, **changes):
    features, labels, masks = content
    arrays = {"node_features": features, "node_labels": labels, "edges": EDGES}
    arrays |= dict(zip(("train_masks", "val_masks", "test_masks"), masks, strict=True))
    np.savez_compressed(path, **arrays | changes)


def gnn_benchmark(path, content, **changes):
    features, labels, _ = content
    words = scipy.sparse.csr_matrix(features)
    adjacency = scipy.sparse.coo_matrix((np.ones(len(EDGES)), EDGES.T), shape=(NODES, NODES)).tocsr()
    arrays = {
        "labels": labels,
        "attr_names": np.array(["a", None], dtype=object),
    }  # names need pickle, and are not read
    for prefix, matrix in (("adj", adjacency), ("attr", words)):
        arrays |= {f"{prefix}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(path, **arrays | changes)


def with_edges(path, content):
    features, labels, _ = content
    words = scipy.sparse.csr_matrix(features)
    arrays = {f"feature_{part}": getattr(words, part) for part in ("data", "indices", "indptr")}
    shape = np.array(words.shape[::-1])  # some files have the transposed shape
    np.savez(path, edges=EDGES.astype(np.int32), node_labels=labels, feature_shape=shape, **arrays)


def wikics(path, content, **changes):
    features, labels, masks = content
    links = [EDGES[EDGES[:, 0] == node, 1].tolist() for node in range(NODES)]
    held = {"features": features.tolist(), "labels": labels.tolist(), "links": links}
    held |= {"train_masks": masks[0].tolist(), "val_masks": masks[1].tolist(), "stopping_masks": masks[2].tolist()}
    path.write_text(json.dumps(held | {"test_mask": masks[2][0].tolist()} | changes))


def city(path, content, **changes):
    features, labels, masks = (content[0], content[1], [torch.from_numpy(mask[0]) for mask in content[2]])
    files = {"node_features_augmented": torch.from_numpy(features), "edge_indices": torch.from_numpy(EDGES.T)}
    files |= {"10-chunk_16-hop_node_labels": torch.from_numpy(labels), "edge_features": torch.zeros(len(EDGES), 2)}
    files |= dict(zip(("train_mask", "valid_mask", "test_mask"), masks, strict=True))
    with tarfile.open(path, "w:gz") as archive:
        for name, tensor in (files | changes).items():
            stream = io.BytesIO()
            torch.save(tensor, stream)
            member = tarfile.TarInfo(f"{path.name.split('.')[0]}/{name}.pt")
            member.size = stream.tell()
            archive.addfile(member, io.BytesIO(stream.getvalue()))


FORMS = {
    "heterophilous": ("heterophilous", heterophilous, "toy.npz"),
    "gnn-benchmark": ("gnn-benchmark", gnn_benchmark, "toy.npz"),
    "gnn-benchmark with edges": ("gnn-benchmark", with_edges, "toy.npz"),
    "wikics": ("wikics", wikics, "data.json"),
    "city": ("city", city, "toy.tar.gz"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_published_form_is_read(tmp_path, content, form):
    name, write, file = FORMS[form]
    write(tmp_path / file, content)
    data = read_node_graph(tmp_path / file, published(name))
    expected = torch.from_numpy(content[0])
    assert torch.equal(data.x, (expected > 0).float() if name == "gnn-benchmark" else expected)
    assert torch.equal(data.y, torch.from_numpy(content[1]))
    assert data.edge_index.size(1) == 20
    assert data.is_undirected()
    assert not data.has_self_loops()
    assert data.is_coalesced()
    assert (data.name, data.metric) == ("toy", "accuracy")
    assert data.validate()


@pytest.mark.parametrize("form", ["heterophilous", "wikics"])
def test_masks_are_those_of_pyg(tmp_path, content, form):
    name, write, file = FORMS[form]
    write(tmp_path / file, content)
    data = read_node_graph(tmp_path / file, published(name))
    assert data.train_mask.shape == (NODES, SPLITS)
    assert torch.equal(data.val_mask, torch.from_numpy(content[2][1]).t())
    assert len(public_splits(data)) == SPLITS
    assert data.test_mask.shape == ((NODES,) if form == "wikics" else (NODES, SPLITS))


def without_loops(edge_index):
    return edge_index[:, edge_index[0] != edge_index[1]]


def assert_same(data, reference):
    for key, value in reference.items():
        expected = without_loops(value) if key == "edge_index" else value
        assert data[key].dtype == value.dtype
        assert torch.equal(data[key], expected), key


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_graphs_equal_those_of_pyg(tmp_path, content, monkeypatch):
    for folder in ("minesweeper", "wikics", "paris/raw"):
        (tmp_path / folder / "raw").mkdir(parents=True)
    heterophilous(tmp_path / "minesweeper/raw/minesweeper.npz", content)
    data = read_node_graph(tmp_path / "minesweeper/raw/minesweeper.npz", published("heterophilous"))
    assert_same(data, HeterophilousGraphDataset(str(tmp_path), "minesweeper")[0])

    wikics(tmp_path / "wikics/raw/data.json", content)
    data = read_node_graph(tmp_path / "wikics/raw/data.json", published("wikics"))
    assert_same(data, WikiCS(str(tmp_path / "wikics"))[0])

    gnn_benchmark(tmp_path / "photo.npz", content)
    assert_same(
        read_node_graph(tmp_path / "photo.npz", published("gnn-benchmark")), pyg_read_npz(tmp_path / "photo.npz")
    )

    def there(dataset):
        dataset.download_path = str(tmp_path / "paris.tar.gz")

    monkeypatch.setattr(CityNetwork, "download", there)
    city(tmp_path / "paris.tar.gz", content)
    data = read_node_graph(tmp_path / "paris.tar.gz", published("city"))
    reference = CityNetwork(str(tmp_path / "city"), "paris")[0]
    assert torch.equal(data.x, reference.x)
    assert torch.equal(data.test_mask, reference.test_mask)


def test_published_counts_of_edges_may_include_self_loops_or_be_half_of_the_entries(tmp_path, content):
    wikics(tmp_path / "data.json", content)
    for edges in (10, 11, len(EDGES) // 2):
        assert read_node_graph(tmp_path / "data.json", published("wikics", edges=edges)).edge_index.size(1) == 20


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": 13}, "published are 13 nodes with 5 features"),
        ({"features": 4}, "published are 12 nodes with 4 features"),
        ({"edges": 9}, "the graph has 10 undirected edges, published are 9"),
        ({"classes": 4}, "not one of 4 classes for each of 12 nodes"),
    ],
    ids=str,
)
def test_a_file_with_other_counts_is_refused(tmp_path, content, form, changes, message):
    name, write, file = FORMS[form]
    write(tmp_path / file, content)
    with pytest.raises(DataError, match=rf"{file}: .*{message}.*run `lanczosnet data fetch toy`"):
        read_node_graph(tmp_path / file, published(name, **changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": np.array([[0, 12]])}, "an edge leads to node 12, the nodes are 0 to 11"),
        ({"edges": np.array([[0, -1]])}, "an edge leads to node"),
        ({"edges": np.zeros((0, 2), dtype=int)}, "the edges have the shape"),
        ({"node_labels": np.arange(5)}, "the labels are not one of 3 classes"),
        ({"val_masks": np.ones((NODES, SPLITS), dtype=bool)}, r"val_mask has the shape \(4, 12\), not \[node, split\]"),
        ({"node_labels": np.array([{}] * NODES, dtype=object)}, "holds object, not numbers"),
        ({"node_labels": np.array(["a"] * NODES)}, "holds <U1, not numbers"),
    ],
)
def test_damaged_content_is_named(tmp_path, content, changes, message):
    heterophilous(tmp_path / "toy.npz", content, **changes)
    with pytest.raises(DataError, match=message):
        read_node_graph(tmp_path / "toy.npz", published("heterophilous"))


def test_a_missing_array_lists_those_that_are_there(tmp_path):
    np.savez(tmp_path / "toy.npz", edges=EDGES)
    with pytest.raises(DataError, match="there is no array 'node_features'; the file has edges"):
        read_node_graph(tmp_path / "toy.npz", published("heterophilous"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("damage", ["cut", "empty", "text"])
def test_a_damaged_file_is_named(tmp_path, content, form, damage):
    name, write, file = FORMS[form]
    write(tmp_path / file, content)
    whole = (tmp_path / file).read_bytes()
    (tmp_path / file).write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "text": b"<html>"}[damage])
    with pytest.raises(DataError, match=f"{file}: the file cannot be read"):
        read_node_graph(tmp_path / file, published(name))


def test_an_array_that_would_fill_the_memory_is_refused_before_it_is_read(tmp_path, content):
    heterophilous(tmp_path / "toy.npz", content, edges=np.zeros((2_000_000, 2), dtype=np.int64))
    assert (tmp_path / "toy.npz").stat().st_size < 100_000
    with pytest.raises(DataError, match="bytes decompressed, more than the 16,"):
        read_node_graph(tmp_path / "toy.npz", published("heterophilous"))


def test_a_header_that_promises_more_than_there_is_is_refused(tmp_path, content):
    heterophilous(tmp_path / "toy.npz", content)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (10**13, FEATURES)})
    with zipfile.ZipFile(tmp_path / "toy.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "forged.npz", "w") as archive:
        for name, member in members.items():
            archive.writestr(name, header.getvalue() if name == "node_features.npy" else member)
    with pytest.raises(DataError, match=r"'node_features.npy' is shorter than its header says"):
        read_node_graph(tmp_path / "forged.npz", published("heterophilous"))


@pytest.mark.parametrize("edges", [torch.zeros(2, 4_000_000), torch.zeros(2, 1).expand(2, 10**12)], ids=str)
def test_tensors_that_would_fill_the_memory_are_refused(tmp_path, content, edges):
    city(tmp_path / "toy.tar.gz", content, edge_indices=edges)
    with pytest.raises(DataError, match="bytes decompressed, more than the 16,"):
        read_node_graph(tmp_path / "toy.tar.gz", published("city"))


class Evil:
    def __reduce__(self):
        return print, ("this must not run",)


@pytest.mark.parametrize("held", [Evil(), {"a": 1}])
def test_an_archive_with_anything_but_tensors_is_refused(tmp_path, content, held, capsys):
    city(tmp_path / "toy.tar.gz", content, train_mask=held)
    with pytest.raises(DataError, match=r"toy\.tar\.gz: (the file cannot be read|train_mask.pt holds a dict)"):
        read_node_graph(tmp_path / "toy.tar.gz", published("city"))
    assert "must not run" not in capsys.readouterr().out


def test_an_archive_without_a_tensor_names_it(tmp_path):
    with tarfile.open(tmp_path / "toy.tar.gz", "w:gz"):
        pass
    with pytest.raises(DataError, match=r"the archive has no 10-chunk_16-hop_node_labels\.pt, edge_indices\.pt"):
        read_node_graph(tmp_path / "toy.tar.gz", published("city"))


def test_a_large_json_is_refused_unread(tmp_path):
    with (tmp_path / "data.json").open("wb") as stream:
        stream.truncate(published("wikics").largest + 1)
    with pytest.raises(DataError, match="bytes, more than the"):
        read_node_graph(tmp_path / "data.json", published("wikics"))


def test_every_benchmark_is_in_the_catalogue_with_its_file_and_metric():
    for name, known in NODE_SETS.items():
        assert CATALOGUE[name].files == (NODE_FILES[name],)
        assert all(mirror.startswith("https://") for mirror in NODE_FILES[name].mirrors)
        assert (known.metric == "roc_auc") == (known.classes == 2)


def test_a_file_in_the_data_directory_is_found_and_checked(tmp_path, content, monkeypatch):
    small = replace(published("heterophilous"), name="minesweeper", metric="roc_auc")
    monkeypatch.setitem(NODE_SETS, "minesweeper", small)
    (tmp_path / "heterophilous-graphs").mkdir()
    heterophilous(tmp_path / "heterophilous-graphs/minesweeper.npz", content)
    assert load("minesweeper", data_dir=tmp_path).metric == "roc_auc"
    (state,) = verify("minesweeper", tmp_path)  # compares with what is published
    assert state.state == "wrong content"
    with pytest.raises(DataError, match=r"minesweeper\.npz: .*published are 10,000 nodes with 7 features"):
        NODE_FILES["minesweeper"].checked("minesweeper", tmp_path)


REAL = ("minesweeper", "chameleon-filtered", "amazon-photo", "coauthor-cs")


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_the_real_files_have_the_published_counts(real_data, name):
    data, known = load(name, data_dir=real_data), NODE_SETS[name]
    assert (data.num_nodes, data.num_edges // 2, data.num_features) == (known.nodes, known.edges, known.features)
    assert len(data.y.unique()) == known.classes
    assert [state.state for state in verify(name, real_data)] == ["ok"]
    path = NODE_FILES[name].good(real_data)
    assert hashlib.sha256(path.read_bytes()).hexdigest() in NODE_FILES[name].versions


@pytest.mark.data
@pytest.mark.parametrize("name", ["minesweeper", "chameleon-filtered"])
def test_the_real_files_have_ten_splits_of_all_nodes(real_data, name):
    data = load(name, data_dir=real_data)
    splits = public_splits(data)
    assert len(splits) == 10
    for number, chosen in enumerate(splits):
        assert chosen.number == number
        assert torch.cat([chosen.train, chosen.val, chosen.test]).unique().numel() == data.num_nodes
        assert torch.equal(chosen.masks(data.num_nodes)[0], data.train_mask[:, number])
