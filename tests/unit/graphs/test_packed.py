import pickle

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from lanczosnet.backends.arrays import DeviceArrays
from lanczosnet.graphs import DataError, PackedGraphs, load, pack
from lanczosnet.transforms import AddRitzPairs


def random_graphs(count: int = 20) -> list[Data]:
    """Graphs of 1 to 6 nodes, some without edges."""
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for i in range(count):
        nodes, edges = 1 + i % 6, 2 * (i % 4)
        graphs.append(
            Data(
                x=torch.randn(nodes, 3, generator=generator),
                edge_index=torch.randint(nodes, (2, edges), generator=generator),
                edge_attr=torch.randn(edges, 2, generator=generator),
                edge_weight=torch.rand(edges, generator=generator),
                y=torch.randn(1, 4, generator=generator),
            )
        )
    return graphs


@pytest.fixture(scope="module")
def graphs() -> PackedGraphs:
    return pack(random_graphs(), name="toy", targets=("a", "b", "c", "d"))


def assert_equal(left: Data, right: Data) -> None:
    assert set(left.keys()) == set(right.keys())
    for key in right.keys():  # noqa: SIM118 - Data is not a dictionary
        assert left[key].dtype == right[key].dtype, key
        assert torch.equal(left[key], right[key]), key


def test_packing_and_unpacking_changes_nothing(graphs):
    originals = random_graphs()
    assert len(graphs) == len(originals)
    for packed, original in zip(graphs, originals, strict=True):
        assert_equal(packed, original)
    assert_equal(graphs[-1], originals[-1])
    assert len(graphs[3:7]) == 4
    with pytest.raises(IndexError):
        graphs[len(graphs)]


@pytest.mark.parametrize("chosen", [[3], [5, 0, 7], list(range(20)), [2, 2, 2], [0]])
def test_a_batch_equals_what_pyg_collates(graphs, chosen):
    batch, reference = graphs.batch(chosen), Batch.from_data_list([graphs[i] for i in chosen])
    assert type(batch) is type(reference)
    assert_equal(batch, reference)
    assert batch.num_graphs == reference.num_graphs
    assert batch.edge_index.is_contiguous()


def test_a_batch_can_be_taken_apart_again(graphs):
    for single, i in zip(graphs.batch([5, 0, 7]).to_data_list(), (5, 0, 7), strict=True):
        assert_equal(single, graphs[i])


def test_a_batch_moves_and_clones_like_any_other(graphs):
    batch = graphs.batch([1, 2]).clone().to("cpu")
    assert repr(graphs) == "PackedGraphs(toy, 20 graphs, 66 nodes, 60 edges)"
    assert batch.num_nodes == graphs[1].num_nodes + graphs[2].num_nodes


@pytest.mark.parametrize("batch_size", [1, 3, 20, 64])
def test_batches_equal_those_of_the_data_loader(graphs, batch_size):
    reference = list(DataLoader([graphs[i] for i in range(20)], batch_size=batch_size))
    batches = list(graphs.batches(batch_size))
    assert len(batches) == len(reference)
    for batch, expected in zip(batches, reference, strict=True):
        assert_equal(batch, expected)
        for single, again in zip(batch.to_data_list(), expected.to_data_list(), strict=True):
            assert_equal(single, again)


def test_batches_follow_the_order_they_are_given(graphs):
    order = torch.randperm(20, generator=torch.Generator().manual_seed(0))[:10]
    first, _, third = graphs.batches(4, order)
    assert_equal(first, graphs.batch(order[:4]))
    assert_equal(third, graphs.batch(order[8:]))
    assert len(list(graphs.batches(4, order, drop_last=True))) == 2


def test_the_two_array_libraries_gather_alike(graphs):
    on_host = list(graphs.batches(3))
    other = pack(random_graphs())
    arrays = {key: torch.from_numpy(value) for key, value in other._arrays[1].items()}
    other.__dict__["_arrays"] = (DeviceArrays(torch.device("cpu")), arrays)
    for left, right in zip(other.batches(3), on_host, strict=True):
        assert_equal(left, right)


def test_graphs_can_be_moved_to_a_device(graphs, device):
    batch = graphs.to(device).batch([4, 2])
    assert batch.x.device.type == device.type
    assert_equal(batch.cpu(), graphs.batch([4, 2]))


def test_what_is_known_about_the_set_is_an_attribute(graphs):
    assert graphs.targets == ("a", "b", "c", "d")
    assert graphs.y.shape == (20, 4)
    with pytest.raises(AttributeError, match="smells"):
        _ = graphs.smells


def test_packed_graphs_can_be_pickled(graphs):
    again = pickle.loads(pickle.dumps(graphs))
    assert_equal(again.batch([0, 1]), graphs.batch([0, 1]))


def test_labels_may_belong_to_nodes_or_be_plain_numbers():
    ring = load("ring", n=5)
    single = [Data(x=ring.x, edge_index=ring.edge_index, y=torch.arange(5), mark=torch.tensor(i)) for i in range(3)]
    packed = pack(single)
    assert set(packed.node) == {"x", "y"}
    assert packed.graph["mark"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": torch.ones(1)}, "graph 1 does not have the attributes of graph 0: extra"),
        ({"y": torch.ones(3, 4)}, "'y' has neither one row per node"),
        ({"y": "text"}, r"'y' of graph 1 is a str, not a tensor. Leave it out of every graph \(del data.y\)"),
    ],
)
def test_graphs_that_do_not_match_are_refused(change, message):
    first, second = random_graphs(2)
    with pytest.raises(DataError, match=message):
        pack([first, Data(**second.to_dict() | change)])


def test_text_is_refused_whatever_its_name():
    data = random_graphs(1)[0]
    with pytest.raises(DataError, match="'my_index' of graph 0 is a str"):
        pack([Data(**data.to_dict() | {"my_index": "text"})])


def test_nothing_cannot_be_packed():
    with pytest.raises(DataError, match="no graphs"):
        pack([])
    with pytest.raises(DataError, match="no edge_index"):
        pack([Data(x=torch.ones(2, 1))])


def test_node_numbers_are_renumbered_as_pyg_does():
    graphs = random_graphs(6)
    for data in graphs:
        data.component_index = torch.zeros(data.num_nodes, dtype=torch.long)
        data.center_index = torch.tensor([data.num_nodes - 1])
        data.edge_mirror_index = torch.arange(data.num_edges) % data.num_nodes
    packed = pack(graphs)
    assert_equal(packed.batch([5, 3, 0]), Batch.from_data_list([graphs[i] for i in (5, 3, 0)]))
    for batch, expected in zip(packed.batches(4), DataLoader(graphs, batch_size=4), strict=True):
        assert_equal(batch, expected)
        for single, again in zip(batch.to_data_list(), expected.to_data_list(), strict=True):
            assert_equal(single, again)


def test_ritz_pairs_of_connected_graphs_travel_in_packed_batches():
    rings = [
        AddRitzPairs(num_steps=4)(Data(x=r.x, edge_index=r.edge_index)) for r in (load("ring", n=5), load("ring", n=7))
    ]
    assert_equal(pack(rings).batch([1, 0]), Batch.from_data_list(rings[::-1]))


@pytest.mark.parametrize("key", ["my_index", "face", "batch_of"])
def test_an_attribute_that_pyg_would_treat_in_its_own_way_is_refused(key):
    data = random_graphs(1)[0]
    with pytest.raises(DataError, match=rf"{key}.*rename"):
        pack([Data(**data.to_dict() | {key: torch.ones(1, 2)})])


def test_a_mask_names_the_graphs_where_it_is_true():
    graphs = pack([Data(x=torch.full((2, 1), float(i)), edge_index=torch.tensor([[0], [1]])) for i in range(5)])
    mask = torch.tensor([False, True, False, True, True])
    assert graphs.batch(mask).x.view(-1).tolist() == [1.0, 1.0, 3.0, 3.0, 4.0, 4.0]
    assert [batch.num_graphs for batch in graphs.batches(2, mask)] == [2, 1]
    assert [batch.num_graphs for batch in graphs.batches(2, [0, 3, 1])] == [2, 1]
    assert graphs.batch([]).num_graphs == 0
    with pytest.raises(DataError, match="a mask over these 5 graphs has that length, but this one 3"):
        graphs.batch(mask[:3])


def test_graphs_without_attributes_of_nodes_keep_their_number_of_nodes():
    edges = torch.tensor([[0], [1]])
    graphs = pack([Data(edge_index=edges, num_nodes=4), Data(edge_index=edges, num_nodes=3)])
    assert [graph.num_nodes for graph in graphs] == [4, 3]
