"""Each of the nine networks against PyG's layers or against its definition, written out."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import ChebConv, GATConv, GatedGraphConv, GCNConv, MFConv, SAGEConv
from torch_geometric.utils import to_dense_adj

from graph_builders import complete_edges, generator, path_edges, random_edges
from lanczosnet.baselines.base import edge_inputs
from lanczosnet.baselines.graph_sage import sample_neighbors
from lanczosnet.layers import NodeEncoder
from lanczosnet.models import DCNN, GAT, GCN, GCNFP, GGNN, GPNN, MPNN, ChebyNet, GraphSAGE
from lanczosnet.transforms import AddPartition, partition
from molecule_builders import NUM_EDGE_TYPES, NUM_NODE_TYPES, batched, molecule, molecules

TYPED = {"node_input": "learned", "embedding_channels": 6, "num_edge_types": NUM_EDGE_TYPES}


def graph(num_nodes: int = 12) -> Data:
    """A connected graph and one isolated node."""
    x = torch.randn(num_nodes + 1, 4, generator=generator(0))
    return Data(x=x, edge_index=random_edges(num_nodes))


def two_layers(layers: list[nn.Module], network: nn.Module, data: Data) -> Tensor:
    """PyG's layers with the weights of the network's convolutions, assembled by hand."""
    first, second = layers
    first.load_state_dict(network.convolutions[0].simple.state_dict())
    second.load_state_dict(network.convolutions[1].simple.state_dict())
    return second(first(data.x, data.edge_index).relu(), data.edge_index)


def types_of(data: Data) -> list[Tensor]:
    """The adjacency matrix of the simple graph, weighted, and of every edge type."""
    n = data.num_nodes
    weights = [data.edge_weight, *data.edge_attr.T]
    return [torch.zeros(n, n).index_put(tuple(data.edge_index.flip(0)), w, accumulate=True) for w in weights]


def symmetric(A: Tensor) -> Tensor:
    A = A + torch.eye(len(A))
    scale = A.sum(1).rsqrt()
    return scale[:, None] * A * scale


def one_typed_layer(kind: type[nn.Module], **options) -> tuple[nn.Module, Data, Tensor]:
    """A network of one layer on a molecule, and the node states that enter it."""
    torch.manual_seed(0)
    network = kind(NUM_NODE_TYPES, 8, 3, 1, **TYPED, **options)
    data = molecule(9)
    return network, data, network.encoder(data.x)


def test_gcn_equals_pyg_layers_with_the_same_weights() -> None:
    network, data = GCN(4, 8, 3), graph()
    expected = two_layers([GCNConv(4, 8), GCNConv(8, 3)], network, data)
    torch.testing.assert_close(network(data), expected)
    data.edge_weight = torch.full((data.num_edges,), 3.0)
    assert not torch.allclose(network(data), expected)


def test_chebynet_equals_pyg_layers_with_the_same_weights() -> None:
    network, data = ChebyNet(4, 8, 3, polynomial_order=3), graph()
    for convolution in network.convolutions:
        nn.init.normal_(convolution.simple.bias)
    torch.testing.assert_close(network(data), two_layers([ChebConv(4, 8, K=4), ChebConv(8, 3, K=4)], network, data))


def test_self_loops_of_chebynet_are_the_laplacian_of_a_graph_that_has_them() -> None:
    data = graph()
    network = ChebyNet(4, 8, 3, 1, polynomial_order=2, self_loops=True)
    A = torch.eye(len(data.x))
    A[data.edge_index[1], data.edge_index[0]] += 1.0
    scale = A.sum(1).rsqrt()
    M = -scale[:, None] * A * scale
    terms = [data.x, M @ data.x, 2 * M @ M @ data.x - data.x]
    layer = network.convolutions[0].simple
    expected = sum(linear(term) for linear, term in zip(layer.lins, terms, strict=True)) + layer.bias
    torch.testing.assert_close(network(data), expected)


def test_chebynet_sends_no_more_channels_along_the_edges_than_it_must() -> None:
    network, widths = ChebyNet(4, 8, 3, polynomial_order=2), []
    for convolution in network.convolutions:
        convolution.simple.register_propagate_forward_pre_hook(
            lambda _, inputs: widths.append(inputs[-1]["x"].shape[1])
        )
    network(graph())
    assert widths == [4, 4, 3, 3]


def test_graphsage_equals_pyg_layers_with_the_same_weights() -> None:
    network, data = GraphSAGE(4, 8, 3, normalize=False), graph()
    torch.testing.assert_close(network(data), two_layers([SAGEConv(4, 8), SAGEConv(8, 3)], network, data))


def test_gcn_fp_with_weights_per_degree_equals_pyg_layers_with_the_same_weights() -> None:
    network, data = GCNFP(4, 8, 3, max_degree=3), graph()
    torch.testing.assert_close(network(data), two_layers([MFConv(4, 8, 3), MFConv(8, 3, 3)], network, data))


def test_gat_equals_pyg_layers_with_the_same_weights() -> None:
    network, data = GAT(4, 5, 3, heads=(2, 1)), graph()
    first, second = GATConv(4, 5, 2), GATConv(10, 3, 1, concat=False)
    first.load_state_dict(network.convolutions[0][0].state_dict())
    second.load_state_dict(network.convolutions[1][0].state_dict())
    expected = second(nn.functional.elu(first(data.x, data.edge_index)), data.edge_index)
    torch.testing.assert_close(network(data), expected)


@pytest.mark.parametrize(("aggregation", "aggr"), [("sum", "add"), ("mean", "mean")])
def test_ggnn_equals_pyg_layers_with_the_same_weights(aggregation: str, aggr: str) -> None:
    network, data = GGNN(4, 8, 3, 4, aggregation=aggregation), graph()
    layer = GatedGraphConv(8, num_layers=1, aggr=aggr)
    layer.rnn.load_state_dict(network.update.state_dict())
    layer.weight.data[0] = network.messages.functions[0].lins[0].weight.T
    state = network.input(data.x)
    for _ in range(4):
        state = layer(state, data.edge_index)
    torch.testing.assert_close(network(data), network.output(state))


def test_gcn_multiplies_the_normalised_laplacian_of_every_edge_type() -> None:
    network, data, x = one_typed_layer(GCN)
    conv, (simple, *types) = network.convolutions[0], types_of(data)
    expected = symmetric(simple) @ x @ conv.simple.lin.weight.T + conv.simple.bias
    for A, weight in zip(types, conv.typed.weight.chunk(NUM_EDGE_TYPES, 1), strict=True):
        expected = expected + symmetric(A) @ x @ weight
    torch.testing.assert_close(network(data), expected)


def test_gcn_fp_adds_up_neighbours_and_the_node_itself_unweighted_per_edge_type() -> None:
    network, data, x = one_typed_layer(GCNFP)
    conv, (simple, *types) = network.convolutions[0], types_of(data)
    expected = ((simple > 0) + torch.eye(9)) @ x @ conv.simple.lin.weight.T + conv.simple.bias
    for A, weight in zip(types, conv.typed.weight.chunk(NUM_EDGE_TYPES, 1), strict=True):
        expected = expected + (A + torch.eye(9)) @ x @ weight
    torch.testing.assert_close(network(data), expected)


def test_chebynet_adds_one_hop_per_edge_type_to_the_polynomials_of_the_simple_graph() -> None:
    network, data, x = one_typed_layer(ChebyNet, polynomial_order=2)
    conv, (simple, *types) = network.convolutions[0], types_of(data)
    L = -simple * simple.sum(1).rsqrt()[:, None] * simple.sum(1).rsqrt()
    terms = [x, L @ x, 2 * L @ L @ x - x]
    expected = sum(t @ lin.weight.T for t, lin in zip(terms, conv.simple.lins, strict=True)) + conv.simple.bias
    for A, weight in zip(types, conv.typed.weight.chunk(NUM_EDGE_TYPES, 1), strict=True):
        expected = expected + symmetric(A) @ x @ weight
    torch.testing.assert_close(network(data), expected, atol=1e-5, rtol=1e-4)


def test_graphsage_averages_the_neighbours_of_every_edge_type() -> None:
    network, data, x = one_typed_layer(GraphSAGE)
    conv, (simple, *types) = network.convolutions[0], types_of(data)

    def mean(A: Tensor) -> Tensor:
        pattern = (A > 0).float()
        return pattern / pattern.sum(1, keepdim=True).clamp_min(1)

    expected = mean(simple) @ x @ conv.simple.lin_l.weight.T + conv.simple.lin_l.bias + x @ conv.simple.lin_r.weight.T
    for A, weight in zip(types, conv.typed.weight.chunk(NUM_EDGE_TYPES, 1), strict=True):
        expected = expected + mean(A) @ x @ weight
    torch.testing.assert_close(network(data), expected)


def test_dcnn_multiplies_powers_of_the_random_walk_and_one_hop_per_edge_type() -> None:
    network, data, x = one_typed_layer(DCNN, scales=(2, 5))
    conv, (simple, *types) = network.convolutions[0], types_of(data)
    P = simple / simple.sum(1, keepdim=True)
    powers = [torch.linalg.matrix_power(P, k) for k in (1, 2, 5)]
    operators = [*powers, *(symmetric(A) for A in types)]
    expected = conv.bias + sum(A @ x @ weight for A, weight in zip(operators, conv.weight, strict=True))
    torch.testing.assert_close(network(data), expected, atol=1e-5, rtol=1e-4)


def test_dcnn_diffuses_a_large_graph_over_its_scales_alone() -> None:
    network, data = DCNN(4, 8, 3, 1, scales=(1, 3)), Data(x=torch.randn(80, 4), edge_index=random_edges(80))
    A = to_dense_adj(data.edge_index)[0]
    P = A / A.sum(1, keepdim=True)
    conv = network.convolutions[0]
    expected = conv.bias + P @ data.x @ conv.weight[0] + torch.linalg.matrix_power(P, 3) @ data.x @ conv.weight[1]
    torch.testing.assert_close(network(data), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@pytest.mark.parametrize("message_channels", [(), (7,)], ids=["linear", "one hidden layer"])
def test_mpnn_sends_a_function_of_both_ends_along_every_edge_type(aggregation: str, message_channels: tuple) -> None:
    network, data, x = one_typed_layer(MPNN, aggregation=aggregation, message_channels=message_channels)
    state, received = network.input(x), []
    for A, function in zip(types_of(data), network.messages.functions, strict=True):
        rows = []
        for i in range(9):
            sent = [function(torch.cat([state[i], state[j]])[None])[0] for j in range(9) if A[i, j] > 0]
            total = torch.stack(sent).sum(0) if sent else torch.zeros(8)
            rows.append(total / max(len(sent), 1) if aggregation == "mean" else total)
        received.append(torch.stack(rows))
    expected = network.output(network.update(torch.cat(received, 1), state))
    torch.testing.assert_close(network(data), expected, atol=1e-5, rtol=1e-4)


def test_ggnn_has_a_message_function_per_edge_type() -> None:
    network, data, x = one_typed_layer(GGNN, message_channels=(7,))
    state = network.input(x)
    functions = network.messages.functions
    received = [(A > 0).float() @ f(state) for A, f in zip(types_of(data), functions, strict=True)]
    torch.testing.assert_close(network(data), network.output(network.update(torch.cat(received, 1), state)))


def test_attention_sums_to_one_over_the_neighbours_of_each_node_per_edge_type_and_head() -> None:
    torch.manual_seed(0)
    network = GAT(NUM_NODE_TYPES, 4, 2, 2, heads=3, readout="gated", **TYPED)
    data = batched([*molecules(), molecule(1)])
    inputs, seen = network.prepare(data), []
    x = network.encoder(inputs.x)
    for layer in network.convolutions:
        parts = []
        for convolution, edges in zip(layer, inputs.channels, strict=True):
            part, (index, attention) = convolution(x, edges.edge_index, return_attention_weights=True)
            total = torch.zeros(len(inputs.x), 3).index_add(0, index[1], attention)
            torch.testing.assert_close(total, torch.ones(len(inputs.x), 3))
            neighbours = set(map(tuple, edges.edge_index.T.tolist())) | {(i, i) for i in range(len(inputs.x))}
            assert set(map(tuple, index.T.tolist())) == neighbours
            parts.append(part)
            seen.append(attention)
        x = nn.functional.elu(torch.cat(parts, 1))
    assert len(seen) == 2 * (1 + NUM_EDGE_TYPES)
    assert any(not attention.allclose(attention.mean()) for attention in seen)


def star(num_leaves: int = 30) -> Tensor:
    leaves = torch.arange(1, num_leaves + 1)
    return torch.stack([torch.cat([leaves, 0 * leaves]), torch.cat([0 * leaves, leaves])])


def test_neighbours_are_sampled_without_replacement_and_all_taken_where_there_are_few() -> None:
    edges = star()
    keep = sample_neighbors(edges, 5, generator=generator(0))
    assert keep[edges[1] == 0].sum() == 5
    assert keep[edges[1] != 0].all()
    assert sample_neighbors(edges, 30).all()
    assert sample_neighbors(edges[:, :0], 5).shape == (0,)


def test_neighbour_sampling_follows_the_seed_and_reaches_every_neighbour() -> None:
    edges = star()
    drawn = [sample_neighbors(edges, 5, generator=generator(seed)) for seed in range(60)]
    assert sample_neighbors(edges, 5, generator=generator(0)).equal(drawn[0])
    assert not drawn[0].equal(drawn[1])
    assert torch.stack(drawn).any(0).all()


def test_graphsage_samples_in_training_by_the_seed_and_takes_all_neighbours_in_evaluation() -> None:
    data = Data(x=torch.randn(31, 4, generator=generator(0)), edge_index=star())
    network, full = GraphSAGE(4, 8, 3, num_neighbors=5), GraphSAGE(4, 8, 3, num_neighbors=30)
    full.load_state_dict(network.state_dict())
    torch.manual_seed(1)
    first = network(data)
    assert not torch.allclose(network(data), first)
    torch.manual_seed(1)
    assert network(data).equal(first)
    network.eval()
    assert network(data).equal(full(data))
    assert full(data).equal(full(data))


def test_graphsage_scales_hidden_states_to_length_one_after_the_activation() -> None:
    network, data = GraphSAGE(4, 8, 3), graph()
    first, second = SAGEConv(4, 8), SAGEConv(8, 3)
    first.load_state_dict(network.convolutions[0].simple.state_dict())
    second.load_state_dict(network.convolutions[1].simple.state_dict())
    hidden = first(data.x, data.edge_index).relu()
    hidden = hidden / hidden.norm(dim=1, keepdim=True).clamp_min(1e-12)
    torch.testing.assert_close(network(data), second(hidden, data.edge_index))


def two_cliques(size: int = 6) -> Data:
    """Two complete graphs and a bridge: the best cut is known."""
    bridge = torch.tensor([[0, size], [size, 0]])
    edges = torch.cat([complete_edges(size), complete_edges(size) + size, bridge], dim=1)
    return Data(x=torch.randn(2 * size, 4, generator=generator(0)), edge_index=edges)


@pytest.mark.parametrize("size", [6, 80], ids=["exact eigenvectors", "Lanczos"])
def test_the_partition_finds_two_cliques(size: int) -> None:
    cluster = AddPartition(2)(two_cliques(size)).partition
    assert (cluster[:size] == cluster[0]).all()
    assert (cluster[size:] == 1 - cluster[0]).all()


def test_the_partition_halves_a_path_though_its_halves_mirror_each_other() -> None:
    cluster = AddPartition(2)(Data(edge_index=path_edges(10), num_nodes=10)).partition
    assert cluster.tolist() in ([0] * 5 + [1] * 5, [1] * 5 + [0] * 5)


def test_the_partition_is_deterministic_and_the_seed_acts_on_large_graphs_alone() -> None:
    small = Data(edge_index=random_edges(60), num_nodes=60)
    assert AddPartition(4)(small.clone()).partition.equal(AddPartition(4, seed=1)(small.clone()).partition)
    large = Data(edge_index=random_edges(2000, mean_degree=6), num_nodes=2000)
    first, same, other = (AddPartition(8, seed=seed)(large.clone()).partition for seed in (0, 0, 1))
    assert first.equal(same)
    assert not first.equal(other)


def test_small_graphs_are_not_given_more_lanczos_steps_than_nodes(monkeypatch) -> None:
    asked = []
    found = partition.component_ritz_pairs
    monkeypatch.setattr(partition, "component_ritz_pairs", lambda S, k, q: asked.append(k) or found(S, k, q))
    AddPartition(3)(Data(edge_index=path_edges(10), num_nodes=10))
    AddPartition(3)(Data(edge_index=path_edges(2), num_nodes=2))
    AddPartition(3)(Data(edge_index=path_edges(200), num_nodes=200))
    assert asked == [10, 3, partition.NUM_STEPS]


def test_the_partition_has_one_order_of_additions(monkeypatch) -> None:
    entered = []
    monkeypatch.setattr(partition, "deterministic_algorithms", lambda device: nullcontext(entered.append(device.type)))
    AddPartition(2)(two_cliques(5))
    assert entered == ["cpu"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_partition_is_the_same_every_time_on_a_gpu() -> None:
    large = Data(edge_index=random_edges(3000, mean_degree=6), num_nodes=3000).to("cuda")
    first, *others = (AddPartition(8)(large.clone()).partition for _ in range(5))
    assert all(first.equal(other) for other in others)
    assert not torch.are_deterministic_algorithms_enabled()


def test_every_component_is_partitioned_by_itself_and_small_ones_stay_whole() -> None:
    edges = torch.cat([path_edges(10), path_edges(3) + 10], dim=1)
    cluster = AddPartition(3)(Data(edge_index=edges, num_nodes=14)).partition
    assert set(cluster[:10].tolist()) == {0, 1, 2}
    assert cluster[10:].tolist() == [0, 0, 0, 0]
    assert cluster[:10].equal(AddPartition(3)(Data(edge_index=path_edges(10), num_nodes=10)).partition)


def test_gpnn_uses_the_partition_that_the_data_brings() -> None:
    torch.manual_seed(0)
    network, graphs = GPNN(NUM_NODE_TYPES, 8, 2, readout="gated", **TYPED), molecules()
    prepared = Batch.from_data_list([AddPartition(3)(data.clone()) for data in graphs])
    torch.testing.assert_close(network(prepared), network(batched(graphs)))
    prepared.partition = torch.zeros_like(prepared.partition)
    assert not torch.allclose(network(prepared), network(batched(graphs)))


def test_gpnn_propagates_inside_clusters_then_across_the_cut_then_over_the_graph() -> None:
    data = AddPartition(2)(two_cliques())
    network = GPNN(4, 8, 3, 1, cluster_steps=2, cut_steps=1, message_channels=(5,))
    A = to_dense_adj(data.edge_index)[0]
    inside = (data.partition[:, None] == data.partition).float()

    def average(A: Tensor, sent: Tensor) -> Tensor:
        return A @ sent / A.sum(1, keepdim=True).clamp_min(1)

    def step(state: Tensor, A: Tensor) -> Tensor:
        return network.part_update(average(A, network.part_messages.functions[0](state)), state)

    state = network.input(data.x)
    clustered = step(step(state, A * inside), A * inside)
    crossed = step(clustered, A * (1 - inside))
    merged = network.merge(torch.cat([state, clustered, crossed], 1))
    expected = network.output(network.update(average(A, network.messages.functions[0](merged)), merged))
    torch.testing.assert_close(network(data), expected)


def test_the_number_of_partitions_and_of_steps_matter() -> None:
    data = graph(30)
    outputs = []
    for options in ({}, {"num_partitions": 5}, {"cluster_steps": 2}, {"cut_steps": 2}):
        torch.manual_seed(0)
        outputs.append(GPNN(4, 8, 3, **options)(data))
    assert all(not torch.allclose(outputs[0], other) for other in outputs[1:])


def test_a_partition_of_another_graph_is_refused() -> None:
    data = graph()
    data.partition = torch.zeros(5, dtype=torch.long)
    with pytest.raises(ValueError, match=r"partition of shape \(5,\), but has 13 nodes: apply AddPartition again"):
        GPNN(4, 8, 3)(data)


def test_the_simple_graph_is_the_first_channel_and_edge_types_follow() -> None:
    data = molecule(9)
    channels = edge_inputs(data, NodeEncoder(NUM_NODE_TYPES, "learned"), NUM_EDGE_TYPES).channels
    assert len(channels) == 1 + NUM_EDGE_TYPES
    assert channels[0].edge_weight.equal(data.edge_attr.sum(1))
    for edges, flag in zip(channels[1:], data.edge_attr.T, strict=True):
        assert edges.edge_index.equal(data.edge_index[:, flag > 0])


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (GCNFP, {"max_degree": -1}, "max_degree must be 0 .* or more, but is -1"),
        (GCN, {"num_edge_types": -1}, "num_edge_types must be 0 .* or more, but is -1"),
        (ChebyNet, {"polynomial_order": -1}, "polynomial_order must be 0 or more, but is -1"),
        (GraphSAGE, {"num_neighbors": 0}, "num_neighbors must be at least 1, but is 0"),
        (GAT, {"heads": (8, 8, 8)}, r"each of the 2 layers, but is \[8, 8, 8\]"),
        (GAT, {"heads": 0}, r"each of the 2 layers, but is \[0, 0\]"),
        (DCNN, {"scales": ()}, "one or more positive powers"),
        (DCNN, {"scales": (0, 1)}, r"one or more positive powers, but are \[0, 1\]"),
        (GGNN, {"aggregation": "max"}, "aggregation must be 'sum' or 'mean', not 'max'"),
        (MPNN, {"aggregation": "max"}, "aggregation must be 'sum' or 'mean', not 'max'"),
        (GPNN, {"num_partitions": 0}, "num_partitions must be at least 1, but is 0"),
        (GPNN, {"cut_steps": 0}, "cut_steps must be at least 1, but is 0"),
    ],
)
def test_bad_options_say_what_was_given_and_what_to_do(kind: type, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(4, 8, 3, **options)
    with pytest.raises(ValueError, match="num_partitions must be at least 1, but is 0"):
        AddPartition(0)


def test_the_states_of_seven_layers_of_gcn_fp_do_not_grow_though_its_sums_are_not_normalised() -> None:
    torch.manual_seed(0)
    network = GCNFP(NUM_NODE_TYPES, 64, 2, 7, readout="gated", **TYPED)
    inputs = network.prepare(batched(molecules((12, 15, 18))))
    simple, *types = inputs.channels
    x, sizes = network.encoder(inputs.x), []
    for convolution in network.convolutions:
        x = convolution(x, simple, types).relu()
        sizes.append(x.square().mean().sqrt().item())
    assert max(sizes) < 2
    assert min(sizes) > 0.02


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_mpnn_with_messages_of_the_sender_is_ggnn(aggregation: str) -> None:
    torch.manual_seed(0)
    options = TYPED | {"aggregation": aggregation, "message_channels": (7,), "readout": "set2set"}
    mpnn = MPNN(NUM_NODE_TYPES, 8, 3, both_ends=False, **options)
    ggnn = GGNN(NUM_NODE_TYPES, 8, 3, **options)
    ggnn.load_state_dict(mpnn.state_dict())
    data = batched(molecules())
    assert torch.equal(mpnn(data), ggnn(data))
    with pytest.raises(RuntimeError, match="size mismatch"):
        MPNN(NUM_NODE_TYPES, 8, 3, **options).load_state_dict(mpnn.state_dict())


@pytest.mark.parametrize("kind", [ChebyNet, GraphSAGE])
def test_the_initial_gain_scales_the_first_weights(kind: type) -> None:
    networks = []
    for gain in (1.0, 0.1):
        torch.manual_seed(3)
        networks.append(kind(4, 8, 3, initial_gain=gain))
    for plain, small in zip(*(network.parameters() for network in networks), strict=True):
        torch.testing.assert_close(small, 0.1 * plain if plain.dim() == 2 else plain)
