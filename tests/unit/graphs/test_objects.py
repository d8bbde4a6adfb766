import os

import pytest
import torch
from torch_geometric.data import Data

from lanczosnet.graphs import DataError, load


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
    with pytest.raises(DataError, match=r"bad\.pt: the file cannot be read safely .it asks for posix.mkdir"):
        load(tmp_path / "bad.pt")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([a_graph(1), 7], r"item 1 is a int, not a PyG Data object"),
        ([Data(x=torch.ones(2, 1))], r"graph 0 has no edge_index"),
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
