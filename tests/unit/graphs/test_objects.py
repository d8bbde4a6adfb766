import os

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from lanczosnet.graphs import DataError, load, split


def a_graph(mark: int) -> Data:
    return Data(x=torch.full((3, 1), float(mark)), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([mark]))


def marks(graphs) -> list[int]:
    return graphs.y.tolist()


def test_a_list_of_data_objects_is_packed():
    assert marks(load([a_graph(4), a_graph(2)])) == [4, 2]


def test_a_folder_is_read_in_the_order_of_names_numbers_by_value(tmp_path):
    for mark in (10, 9, 1, 2):
        torch.save(a_graph(mark), tmp_path / f"graph_{mark}.pt")
    graphs = load(tmp_path)
    assert marks(graphs) == [1, 2, 9, 10]
    assert graphs.name == tmp_path.stem


def test_a_file_may_hold_one_graph_or_a_list(tmp_path):
    torch.save([a_graph(1), a_graph(2)], tmp_path / "many.pt")
    torch.save(a_graph(3), tmp_path / "one.pt")
    assert marks(load(tmp_path / "many.pt")) == [1, 2]
    assert marks(load(str(tmp_path / "one.pt"))) == [3]


class Attack:
    def __init__(self, trace) -> None:
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


def test_a_file_that_would_run_code_is_refused_and_runs_nothing(tmp_path):
    trace = tmp_path / "it-ran"
    torch.save([a_graph(1), Attack(trace)], tmp_path / "bad.pt")
    with pytest.raises(DataError, match=r"bad\.pt: the file cannot be read safely .it references posix.mkdir"):
        load(tmp_path / "bad.pt")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([a_graph(1), 7], r"item 1 is a int, not a PyG Data object"),
        ([Data(x=torch.ones(2, 1))], r"graph 0: there is no edge_index"),
        ([Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [2]]))], r"an edge to a node that does not exist"),
        ([Data(x=torch.ones(2, 1), edge_index=torch.tensor([[-1], [0]]))], r"an edge to a node that does not exist"),
    ],
)
def test_wrong_content_is_named(tmp_path, content, message):
    torch.save(content, tmp_path / "bad.pt")
    with pytest.raises(DataError, match=rf"bad\.pt: .*{message}"):
        load(tmp_path / "bad.pt")


def test_a_truncated_file_is_named(tmp_path):
    torch.save(a_graph(1), tmp_path / "bad.pt")
    content = (tmp_path / "bad.pt").read_bytes()
    (tmp_path / "bad.pt").write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"bad\.pt: the file cannot be read safely"):
        load(tmp_path / "bad.pt")


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"holds no \.pt files"):
        load(tmp_path)


def test_reading_a_file_leaves_what_torch_may_load_as_it_was(tmp_path):
    torch.save(Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]])), tmp_path / "g.pt")
    before = set(torch.serialization.get_safe_globals())
    assert Data in before
    load(tmp_path / "g.pt")
    assert set(torch.serialization.get_safe_globals()) == before


def test_one_graph_with_targets_of_its_nodes_comes_as_it_is(tmp_path):
    graph = Data(x=torch.ones(6, 2), y=torch.arange(6) % 2, edge_index=torch.tensor([[0, 1], [1, 0]]))
    torch.save(graph, tmp_path / "mine.pt")
    for source, name in ((graph, "graph"), (tmp_path / "mine.pt", "mine")):
        loaded = load(source)
        assert isinstance(loaded, Data)
        assert loaded.name == name
        assert loaded.y.equal(graph.y)
    assert "name" not in graph
    assert len(load([graph])) == len(load(tmp_path)) == 1  # a list is a set of graphs, and so is a folder
    graph.y = torch.ones(1, 3)
    assert load(graph).y.shape == (1, 3)  # and so is a graph with targets of its own


def whole() -> Data:
    return Data(x=torch.ones(4, 3), y=torch.arange(4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]))


LAWS = {
    "an integer feature table": (
        {"x": torch.ones(4, 3).long()},
        "x has whole numbers in several columns",
    ),
    "features of one axis": ({"x": torch.ones(4)}, r"x has the shape \(4,\), not \[node, feature\]"),
    "features of four axes": ({"x": torch.ones(4, 3, 2, 2)}, r"x has the shape \(4, 3, 2, 2\)"),
    "features that are NaN": ({"x": torch.full((4, 3), float("nan"))}, "x has a value that is not a number"),
    "huge features": ({"x": torch.full((4, 3), 1e38)}, "or above 1e"),
    "complex features": ({"x": torch.ones(4, 3, dtype=torch.complex64)}, "not a dense tensor of real numbers"),
    "sparse features": ({"x": torch.ones(4, 3).to_sparse()}, "not a dense tensor of real numbers"),
    "features as a list": ({"x": [1, 2]}, r"x is a list, not a tensor \[node, feature\]"),
    "features of fewer nodes": ({"x": torch.ones(2, 3)}, "an edge to a node that does not exist"),
    "features of no node": ({"x": torch.tensor(1.0)}, r"x has the shape \(\), but"),
    "edges as numbers": ({"edge_index": torch.ones(2, 3)}, "there is no edge_index, whole numbers"),
    "edges as a list": ({"edge_index": [[0], [1]]}, "there is no edge_index"),
    "text for targets": ({"y": "a"}, "y is a str, not a tensor"),
    "infinite targets": ({"y": torch.full((4,), float("inf"))}, "y has a value that is not a number"),
    "targets of three axes": ({"y": torch.ones(4, 1, 1)}, "too many axes"),
    "weights too few": ({"edge_weight": torch.ones(2)}, "edge_weight is not one number for each of 4 edges"),
    "weights that are NaN": ({"edge_weight": torch.full((4,), float("nan"))}, "edge_weight has a value"),
    "types too many": ({"edge_attr": torch.ones(9, 2)}, "edge_attr is not one row for each of 4 edges"),
    "masks of numbers": ({"train_mask": torch.ones(4)}, r"use train_mask.bool\(\)"),
    "an odd name": ({"name": {"a": 1}}, r"name is \{'a': 1\}, not text"),
    "odd classes": ({"classes": [1, 2]}, r"classes is \[1, 2\], not text"),
    "many nodes": ({"x": None, "y": None, "num_nodes": 10**12}, "LANCZOSNET_MAX_NODES"),
    "many classes": ({"y": torch.arange(4) * 10**7}, "classes: 30,000,001 .*LANCZOSNET_MAX_CLASSES"),
    "little that is much": ({"pos": torch.ones(1, 1).expand(4, 10**9)}, "LANCZOSNET_MAX_BYTES"),
}


@pytest.mark.parametrize("name", LAWS)
def test_an_attribute_that_breaks_a_law_is_named(tmp_path, name):
    changes, message = LAWS[name]
    data = whole()
    for key, value in changes.items():
        setattr(data, key, value)
    torch.save(data, tmp_path / "bad.pt")
    for source in (tmp_path / "bad.pt", data):
        with pytest.raises(ValueError, match=message) as wrong:
            load(source)
        assert "graph 0" in str(wrong.value)
        assert "bad.pt" in str(wrong.value) or source is data


def test_booleans_and_whole_numbers_become_what_networks_take():
    data = whole()
    data.x, data.y, data.edge_weight = data.x.bool(), data.y.bool(), torch.arange(1, 5)
    data.edge_index = data.edge_index.int()
    found = load(data)
    assert [found[key].dtype for key in ("x", "y", "edge_weight", "edge_index")] == [
        torch.float32, torch.int64, torch.float32, torch.int64
    ]  # fmt: skip
    assert data.x.dtype == torch.bool


def test_graphs_that_differ_are_named():
    other = whole()
    other.x = torch.ones(4, 9)
    with pytest.raises(DataError, match=r"'x' differs .* graph 0 has float32 \(4, 3\), graph 1 has float32 \(4, 9\)"):
        load([whole(), other])


@pytest.mark.parametrize(("count", "message"), [(0, "there are no graphs"), (2, "'x' differs")])
def test_a_list_that_cannot_be_packed_is_named_by_its_file(tmp_path, count, message):
    graphs = [whole(), whole()][:count]
    if graphs:
        graphs[0].x = torch.ones(4, 9)
    torch.save(graphs, tmp_path / "bad.pt")
    with pytest.raises(DataError, match=rf"bad\.pt: .*{message}"):
        load(str(tmp_path / "bad.pt"))


def test_a_graph_of_several_kinds_of_nodes_is_told_how_to_become_one(tmp_path):
    torch.save(HeteroData(), tmp_path / "hetero.pt")
    for source in (HeteroData(), [HeteroData()]):
        with pytest.raises(DataError, match=r"HeteroData, not a PyG Data object: make it one with to_homogeneous"):
            load(source)
    with pytest.raises(DataError, match=r"hetero\.pt"):
        load(tmp_path / "hetero.pt")


def test_masks_of_several_splits_are_used(tmp_path):
    data = whole()
    for key, node in (("train_mask", 0), ("val_mask", 1), ("test_mask", 2)):
        data[key] = torch.nn.functional.one_hot(torch.tensor([node, (node + 1) % 4]), 4).t().bool()
    found = load(data)
    assert split(found, "public", mask=1).train.tolist() == [1]
    with pytest.raises(DataError, match=r"graph has 2 public splits\. Choose one"):
        split(found, "public")
