import io

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from graph_builders import path_edges, random_edges
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.transforms import AddRitzPairs
from molecule_builders import molecules


def low_rank(data: Data, power: int) -> torch.Tensor:
    """V R^power V^T, component by component."""
    is_first = data.component_index == torch.arange(data.num_nodes)
    component = (is_first.cumsum(0) - 1)[data.component_index]
    same = component.unsqueeze(0) == component.unsqueeze(1)
    scaled = data.ritz_vectors * data.ritz_values[component] ** power
    return (scaled @ data.ritz_vectors.mT) * same


@pytest.mark.parametrize("num_nodes", [1, 2, 7])
def test_pairs_of_small_graphs_reproduce_s_exactly(num_nodes: int) -> None:
    data = AddRitzPairs(8)(Data(edge_index=random_edges(num_nodes), num_nodes=num_nodes))
    assert data.ritz_vectors.shape == (num_nodes, 8)
    assert data.ritz_values.shape == (1, 8)
    S = normalized(adjacency(data.edge_index, num_nodes=num_nodes)).dense()
    torch.testing.assert_close(low_rank(data, 1), S, atol=1e-6, rtol=0)


def test_isolated_nodes_and_components_have_pairs_of_their_own() -> None:
    edges = torch.cat([path_edges(3), path_edges(2) + 4], 1)  # node 3 and node 6 stand alone
    data = AddRitzPairs(4)(Data(edge_index=edges, num_nodes=7))
    assert data.component_index.tolist() == [0, 0, 0, 3, 4, 4, 6]
    assert data.ritz_values.shape == (4, 4)
    S = normalized(adjacency(edges, num_nodes=7)).dense()
    torch.testing.assert_close(low_rank(data, 1), S, atol=1e-6, rtol=0)


def test_an_empty_graph_has_no_pairs() -> None:
    data = AddRitzPairs(4)(Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=0))
    assert data.ritz_vectors.shape == (0, 4)
    assert data.ritz_values.shape == (0, 4)


def test_batches_carry_the_pairs_of_their_graphs() -> None:
    graphs = [AddRitzPairs(6)(graph) for graph in molecules((4, 1, 0, 7))]
    batch = Batch.from_data_list(graphs)
    assert batch.ritz_vectors.shape == (12, 6)
    assert batch.ritz_values.shape == (3, 6)
    S = normalized(adjacency(batch.edge_index, batch.edge_weight, num_nodes=12)).dense()
    error = (low_rank(batch, 1) - S).abs()
    assert error[:5, :5].max() < 1e-6  # the first two graphs have no more than six nodes
    loaded = next(iter(DataLoader(graphs, batch_size=4)))
    assert loaded.component_index.equal(batch.component_index)


def test_saving_and_moving_the_data_keeps_the_pairs(device) -> None:
    data = AddRitzPairs(5)(molecules()[2]).to(device)
    assert data.ritz_vectors.device.type == device.type
    buffer = io.BytesIO()
    torch.save(data.to_dict(), buffer)
    buffer.seek(0)
    again = Data.from_dict(torch.load(buffer, weights_only=True))
    assert again.ritz_vectors.equal(data.ritz_vectors)


def test_the_same_seed_gives_the_same_values_and_another_seed_others() -> None:
    graph = Data(edge_index=random_edges(30), num_nodes=30)
    first, same, other = (AddRitzPairs(5, "random", seed)(graph).ritz_values for seed in (1, 1, 2))
    assert first.equal(same)
    assert not first.equal(other)


def test_the_start_vector_can_be_the_mean_feature() -> None:
    graph = Data(x=torch.rand(30, 3), edge_index=random_edges(30))
    assert not AddRitzPairs(5, "mean")(graph).ritz_values.equal(AddRitzPairs(5)(graph).ritz_values)


def test_the_input_is_left_as_it_was() -> None:
    graph = molecules()[0]
    AddRitzPairs(3)(graph)
    assert "ritz_values" not in graph


@pytest.mark.parametrize(
    ("options", "message"), [({"num_steps": 0}, "at least 1"), ({"start": "zero"}, "'ones', 'mean'")]
)
def test_bad_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AddRitzPairs(**options)


def test_the_text_of_a_transform_says_all_that_changes_the_pairs():
    """PyG takes processed files for those of a transform with the same text."""
    texts = [{}, {"search_steps": 9}, {"exact_up_to": 3}, {"seed": 1}, {"start": "mean"}]
    assert len({repr(AddRitzPairs(5, **options)) for options in texts}) == len(texts)


def test_the_mean_of_no_features_is_refused():
    with pytest.raises(ValueError, match="the data has no x"):
        AddRitzPairs(5, "mean")(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
