"""What both networks promise, in both tasks."""

import copy
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Batch, Data

from graph_builders import generator, path_edges, random_edges
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.batching import from_data
from lanczosnet.krylov import lanczos
from lanczosnet.models import MODELS, AdaLanczosNet, LanczosNet, model
from lanczosnet.transforms import AddRitzPairs
from molecule_builders import NUM_EDGE_TYPES, NUM_NODE_TYPES, batched, molecule, molecules, relabelled

VARIANTS = {
    "LanczosNet": (LanczosNet, {}),
    "LanczosNet, published filter": (LanczosNet, {"spectral_filter": "mlp"}),
    "LanczosNet, no biases": (LanczosNet, {"spectral_filter": "unbiased", "bias": False}),
    "LanczosNet, residual blocks": (LanczosNet, {"block": "residual", "short_scales": (0, 1, 2)}),
    "AdaLanczosNet": (AdaLanczosNet, {}),
    "AdaLanczosNet, residual blocks": (AdaLanczosNet, {"block": "residual", "feedforward": False}),
    "AdaLanczosNet, no biases": (AdaLanczosNet, {"spectral_filter": "unbiased", "bias": False}),
    "AdaLanczosNet, learned kernel": (AdaLanczosNet, {"kernel_channels": (6, 4)}),
    "AdaLanczosNet, published path": (AdaLanczosNet, {"tridiagonal_filter": "vectorized", "start": "random"}),
    "AdaLanczosNet, lean filter": (AdaLanczosNet, {"tridiagonal_filter": "entrywise"}),
    "AdaLanczosNet, spectral filter through Lanczos": (AdaLanczosNet, {"exact_up_to": 0}),
}
EQUIVARIANT = [name for name in VARIANTS if "published path" not in name]


def graph_network(name: str, width: int = 8, num_layers: int = 3, **more) -> torch.nn.Module:
    torch.manual_seed(0)
    kind, options = VARIANTS[name]
    defaults = {"num_steps": 8, "node_input": "learned", "embedding_channels": 6, "readout": "gated"}
    settings = defaults | {"num_edge_types": NUM_EDGE_TYPES} | options | more
    return kind(NUM_NODE_TYPES, width, 2, num_layers, **settings)


def node_network(name: str, **more) -> torch.nn.Module:
    torch.manual_seed(0)
    kind, options = VARIANTS[name]
    return kind(4, 8, 3, **({"num_steps": 6} | options | more))


def node_graph(num_nodes: int = 90) -> Data:
    """One large component, one of medium size, some small ones and two isolated nodes."""
    parts = [random_edges(num_nodes - 20), path_edges(10) + num_nodes - 20, path_edges(4) + num_nodes - 10]
    x = torch.randn(num_nodes, 4, generator=generator(0))
    y = torch.randint(3, (num_nodes,), generator=generator(1))
    return Data(x=x, edge_index=torch.cat(parts, 1), y=y)


@pytest.fixture(params=VARIANTS)
def name(request) -> str:
    return request.param


def test_shapes_follow_the_task(name: str) -> None:
    assert graph_network(name)(batched(molecules())).shape == (5, 2)
    assert node_network(name)(node_graph()).shape == (90, 3)


def test_a_batch_equals_its_graphs_one_by_one(name: str) -> None:
    network, graphs = graph_network(name), molecules()
    singles = torch.cat([network(batched([graph])) for graph in graphs])
    torch.testing.assert_close(network(batched(graphs)), singles, atol=1e-5, rtol=1e-4)


def test_an_empty_last_graph_and_more_padding_change_nothing(name: str) -> None:
    network, graphs = graph_network(name), molecules((5, 3))
    alone = network(batched(graphs))
    torch.testing.assert_close(network(batched([*graphs, molecule(0)]))[:2], alone, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(network(batched([*graphs, molecule(40)]))[:2], alone, atol=1e-5, rtol=1e-4)


def test_the_dense_and_the_sparse_layout_agree(name: str, monkeypatch) -> None:
    network, batch = graph_network(name), batched(molecules())
    dense = network(batch)
    assert network.prepare(batch)  # the layout is chosen at the door
    monkeypatch.setattr(from_data, "DENSE_UP_TO", 0)
    torch.testing.assert_close(network(batch), dense, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", EQUIVARIANT)
def test_relabelling_the_nodes_permutes_node_outputs_and_keeps_graph_outputs(name: str) -> None:
    graph = molecule(9)
    order = torch.randperm(9, generator=generator(3))
    network = graph_network(name)
    torch.testing.assert_close(
        network(batched([relabelled(graph, order)])), network(batched([graph])), atol=1e-5, rtol=1e-4
    )
    graph, network = node_graph(), node_network(name)
    order = torch.randperm(90, generator=generator(3))
    torch.testing.assert_close(network(relabelled(graph, order)), network(graph)[order], atol=1e-4, rtol=1e-3)


def test_every_parameter_receives_a_gradient(name: str) -> None:
    for network, data in ((graph_network(name), batched(molecules())), (node_network(name), node_graph())):
        out = network(data)
        (out * torch.randn(out.shape, generator=generator(0))).sum().backward()
        missing = [key for key, p in network.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
        assert missing == []
        assert all(torch.isfinite(p.grad).all() for p in network.parameters())


def train(network: torch.nn.Module, loss, steps: int, rate: float) -> float:
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
    return value.item()


def test_eight_molecules_are_memorised(name: str) -> None:
    network = graph_network(name, width=32, embedding_channels=16)
    batch = batched(molecules((5, 6, 7, 8, 9, 10, 11, 12)))
    prepared = network.prepare(batch)
    assert train(network, lambda: (network(prepared) - batch.y).square().mean(), 200, 0.003) < 0.05


def test_a_small_graph_is_memorised(name: str) -> None:
    network, graph = node_network(name), node_graph()
    chosen = torch.arange(0, 90, 6)
    prepared = network.prepare(graph)

    def loss() -> torch.Tensor:
        return torch.nn.functional.cross_entropy(network(prepared)[chosen], graph.y[chosen])

    assert train(network, loss, 150, 0.01) < 0.1


def test_predictions_are_reproducible_and_survive_a_state_dict_round_trip_and_deepcopy(name: str) -> None:
    network, batch = graph_network(name), batched(molecules())
    first = network(batch)
    assert network(batch).equal(first)
    other = graph_network(name)
    other.reset_parameters()
    assert not torch.allclose(other(batch), first)
    other.load_state_dict(network.state_dict())
    assert other(batch).equal(first)
    assert copy.deepcopy(network)(batch).equal(first)


def test_reset_parameters_with_a_seed_is_a_fresh_start(name: str) -> None:
    network = graph_network(name)
    torch.manual_seed(5)
    network.reset_parameters()
    first = network(batched(molecules()))
    torch.manual_seed(5)
    network.reset_parameters()
    assert network(batched(molecules())).equal(first)


def test_bf16_autocast_keeps_the_krylov_part_in_full_precision(name: str) -> None:
    network, batch = graph_network(name), batched(molecules())
    exact = network(batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = network(batch)
    assert torch.isfinite(rough).all()
    torch.testing.assert_close(rough.float(), exact, atol=0.1, rtol=0.1)
    rough.float().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LanczosNet", "AdaLanczosNet", "AdaLanczosNet, published path"])
@pytest.mark.filterwarnings("ignore")  # the compiler's own notices
def test_compiled_networks_give_the_same_values_and_gradients(name: str) -> None:
    network, batch = graph_network(name, num_layers=1), batched(molecules())
    compiled = torch.compile(network, backend="aot_eager")
    expected = torch.autograd.grad(network(batch).sum(), list(network.parameters()))
    out = compiled(batch)
    torch.testing.assert_close(out, network(batch), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(
        torch.autograd.grad(out.sum(), list(network.parameters())), expected, atol=1e-4, rtol=1e-3
    )


@pytest.mark.parametrize("num_steps", [1, 50], ids=["one step", "more steps than nodes"])
def test_one_step_and_more_steps_than_nodes_are_fine(name: str, num_steps: int) -> None:
    for network, data in (
        (graph_network(name, num_steps=num_steps), batched(molecules())),
        (node_network(name, num_steps=num_steps), node_graph()),
    ):
        out = network(data)
        assert torch.isfinite(out).all()
        out.sum().backward()
        assert all(p.grad is None or torch.isfinite(p.grad).all() for p in network.parameters())


def test_edgeless_one_node_and_empty_graphs_are_fine(name: str) -> None:
    network = graph_network(name)
    assert torch.isfinite(network(batched([molecule(1), molecule(0)]))).all()
    edgeless = Data(x=torch.randn(5, 4), edge_index=torch.zeros(2, 0, dtype=torch.long))
    assert torch.isfinite(node_network(name)(edgeless)).all()
    empty = Data(x=torch.zeros(0, 4), edge_index=torch.zeros(2, 0, dtype=torch.long))
    assert node_network(name)(empty).shape == (0, 3)


def test_every_node_of_a_complete_graph_keeps_its_row_after_breakdown(name: str) -> None:
    edges = (torch.ones(9, 9) - torch.eye(9)).nonzero().T
    graph = Data(x=torch.randn(9, 4, generator=generator(0)), edge_index=edges)
    out = node_network(name, short_scales=[], bias=False)(graph)
    assert torch.isfinite(out).all()
    assert (out.abs().sum(1) > 0).all()


def test_all_node_embeddings_equal_is_no_trouble(name: str) -> None:
    network = graph_network(name)
    torch.nn.init.ones_(network.encoder.embedding.weight)
    out = network(batched(molecules()))
    out.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters())


@pytest.mark.parametrize("readout", ["mean", "sum", "gated", "set2set"])
def test_every_readout_serves_both_networks(readout: str) -> None:
    for variant in ("LanczosNet", "AdaLanczosNet"):
        assert graph_network(variant, readout=readout)(batched(molecules())).shape == (5, 2)


def test_node_types_may_be_fixed_one_hot_vectors_without_edge_types() -> None:
    for variant in ("LanczosNet", "AdaLanczosNet"):
        network = graph_network(variant, node_input="one-hot", num_edge_types=0)
        assert network.encoder.embedding is None
        assert network(batched(molecules())).shape == (5, 2)


def test_dropout_acts_in_training_only() -> None:
    graph = node_graph()
    for option in ("dropout", "input_dropout"):
        network = node_network("LanczosNet", **{option: 0.5})
        assert not network(graph).equal(network(graph))
        network.eval()
        assert network(graph).equal(network(graph))


def test_precomputed_pairs_are_used_and_give_the_same() -> None:
    network, graphs = graph_network("LanczosNet"), molecules()
    with_pairs = batched([AddRitzPairs(8)(graph) for graph in graphs])
    torch.testing.assert_close(network(with_pairs), network(batched(graphs)), atol=1e-5, rtol=1e-4)
    with_pairs.ritz_values = torch.zeros_like(with_pairs.ritz_values)
    assert not torch.allclose(network(network.prepare(with_pairs, validate=False)), network(batched(graphs)))


@pytest.mark.parametrize("long_scales", [(10, 20), ()], ids=["pairs", "components alone"])
def test_pairs_of_a_graph_that_has_changed_since_are_refused(long_scales: tuple) -> None:
    network = node_network("LanczosNet", long_scales=long_scales)
    graph = AddRitzPairs(6)(node_graph())
    network(graph)
    joined, part, weighted = graph.clone(), graph.subgraph(torch.arange(30, 90)), graph.clone()
    joined.edge_index = torch.cat([graph.edge_index, torch.tensor([[0, 75], [75, 0]])], 1)
    weighted.edge_weight = 1.0 + (graph.edge_index.sum(0) % 3)
    for changed in (joined, part) if not long_scales else (joined, part, weighted):
        with pytest.raises(ValueError, match="apply AddRitzPairs again after changing a graph"):
            network(changed)


def test_prepared_graphs_and_models_that_hold_them_can_be_copied(name: str) -> None:
    network, graph = node_network(name), node_graph()
    prepared = network.prepare(graph)
    torch.testing.assert_close(copy.deepcopy(network)(copy.deepcopy(prepared)), network(graph))


def in_double(graph: Data) -> Data:
    return graph.clone().update({"x": graph.x.double()})


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_a_double_network_takes_single_pairs_and_weights(name: str, layout: str, monkeypatch) -> None:
    monkeypatch.setattr(from_data, "DENSE_UP_TO", 100 if layout == "dense" else 0)
    network, graph = node_network(name), node_graph()
    graph.edge_weight = torch.full((graph.num_edges,), 0.5)
    expected = network(graph).double()
    network.double()
    for data in (in_double(graph), AddRitzPairs(6)(in_double(graph))):
        torch.testing.assert_close(network(data), expected, atol=1e-4, rtol=1e-3)


def test_double_weights_do_not_make_a_single_network_double(name: str) -> None:
    network, graph = node_network(name), node_graph()
    graph.edge_weight = torch.full((graph.num_edges,), 0.5)
    expected = network(graph)
    graph.edge_weight = graph.edge_weight.double()
    torch.testing.assert_close(network(graph), expected)


@pytest.mark.parametrize("name", ["LanczosNet", "AdaLanczosNet"])
def test_a_double_network_takes_node_types_and_pairs_in_single(name: str) -> None:
    graphs = [AddRitzPairs(8)(graph) for graph in molecules()]
    network = graph_network(name)
    expected = network(batched(graphs)).double()
    torch.testing.assert_close(network.double()(batched(graphs)), expected, atol=1e-4, rtol=1e-3)


def test_with_long_scales_a_gradient_of_edge_weights_is_refused() -> None:
    graph = node_graph()
    graph.edge_weight = torch.ones(graph.num_edges, requires_grad=True)
    for data in (graph, AddRitzPairs(6)(graph.clone())):
        with pytest.raises(ValueError, match=r"edge_weight requires a gradient.*constants.*detach\(\)"):
            node_network("LanczosNet")(data)
        with torch.no_grad():
            assert node_network("LanczosNet")(data).shape == (90, 3)
    node_network("LanczosNet", long_scales=())(graph).sum().backward()
    assert graph.edge_weight.grad.abs().sum() > 0


def test_a_molecule_of_several_fragments_is_treated_fragment_by_fragment() -> None:
    first, second = molecule(6), molecule(4, 50)
    joined = Data(
        x=torch.cat([first.x, second.x]),
        edge_index=torch.cat([first.edge_index, second.edge_index + 6], 1),
        edge_attr=torch.cat([first.edge_attr, second.edge_attr]),
        edge_weight=torch.cat([first.edge_weight, second.edge_weight]),
    )
    network = graph_network("LanczosNet", readout="sum", num_steps=4)
    apart = network(batched([first, second])).sum(0) - network.readout.linear.bias
    torch.testing.assert_close(network(batched([AddRitzPairs(4)(joined)]))[0], apart, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["LanczosNet", "AdaLanczosNet"])
def test_an_edge_of_weight_zero_between_two_fragments_is_no_edge(kind: str) -> None:
    first, second = molecule(6), molecule(4, 50)
    apart = Data(
        x=torch.cat([first.x, second.x]),
        edge_index=torch.cat([first.edge_index, second.edge_index + 6], 1),
        edge_attr=torch.cat([first.edge_attr, second.edge_attr]),
        edge_weight=torch.cat([first.edge_weight, second.edge_weight]),
    )
    joined = apart.clone()
    bridges = torch.tensor([[0, 1, 6, 7], [6, 7, 0, 1]])
    joined.edge_index = torch.cat([apart.edge_index, bridges], 1)
    joined.edge_weight = torch.cat([apart.edge_weight, torch.zeros(4)])
    joined.edge_attr = torch.cat([apart.edge_attr, torch.ones(4, NUM_EDGE_TYPES)])
    network = graph_network(kind)
    torch.testing.assert_close(network(batched([joined])), network(batched([apart])), atol=1e-6, rtol=1e-5)


def test_the_random_start_vector_depends_on_the_seed_alone() -> None:
    batch = batched(molecules((12, 9)))
    options = {"tridiagonal_filter": "vectorized", "start": "random", "num_steps": 5}
    first, same, other = (graph_network("AdaLanczosNet", **options, seed=seed)(batch) for seed in (1, 1, 2))
    assert first.equal(same)
    assert not torch.allclose(first, other)


def test_without_self_loops_the_affinity_is_that_of_the_kernel_alone() -> None:
    x = torch.randn(12, 3, dtype=torch.float64, generator=generator(3))
    network = AdaLanczosNet(3, 4, 2, num_steps=4, self_loops=False).double()
    inputs = network.prepare(Data(x=x, edge_index=random_edges(12)))
    A = network.kernel(inputs.adjacency, x).dense()
    scale = A.sum(1).rsqrt()
    found = network.spectrum(inputs, x).operator.dense().squeeze(0)
    assert torch.allclose(found, scale.unsqueeze(1) * A * scale)
    assert (found.diagonal() == 0).all()


def test_without_self_loops_a_node_that_has_no_edge_keeps_its_own() -> None:
    x = torch.randn(14, 3, dtype=torch.float64, generator=generator(3))
    network = AdaLanczosNet(3, 4, 2, num_steps=4, self_loops=False).double()
    data = Data(x=x, edge_index=random_edges(12))
    diagonals = network.spectrum(network.prepare(data), x).operator.dense().diagonal(dim1=-2, dim2=-1)
    assert diagonals.sum() == 2
    answers = network(data)[12:]
    assert not torch.allclose(answers[0], answers[1])


def test_the_published_recurrence_without_reorthogonalisation_is_selectable(monkeypatch) -> None:
    asked = []

    def recorded(*arguments, **options):
        asked.append(options["reorthogonalize"])
        return lanczos(*arguments, **options)

    monkeypatch.setattr("lanczosnet.batching.adaptive_spectrum.lanczos", recorded)
    graph = node_graph()
    safe = node_network("AdaLanczosNet", exact_up_to=0)(graph)
    out = node_network("AdaLanczosNet", exact_up_to=0, reorthogonalize=False)(graph)
    assert asked == [True, False]
    torch.testing.assert_close(out, safe, atol=1e-3, rtol=1e-2)
    out.sum().backward()


def test_adalanczosnet_learns_its_embeddings_through_the_affinity_alone() -> None:
    """With the signal's own path to the embedding cut, a gradient still arrives through the kernel."""
    network = graph_network("AdaLanczosNet", block="plain")
    inputs = network.prepare(batched(molecules()))
    features = network.encoder(inputs.x)
    spectrum = network.spectrum(inputs, features)
    out = network.convolutions[0](inputs.pad(features.detach()), spectrum)
    (grad,) = torch.autograd.grad(out.square().sum(), network.encoder.embedding.weight)
    assert grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "no x: give every node features"),
        ({"x": torch.full((90, 4), float("nan"))}, "must be finite, but x.* is nan"),
        ({"x": torch.randn(90, 3)}, r"real node features \[node, 4\]"),
        ({"x": torch.zeros(90, dtype=torch.long)}, "real node features"),
        ({"edge_weight": torch.rand(10)}, "one entry per edge"),
        ({"edge_index": torch.tensor([[0], [1]])}, "not symmetric"),
        ({"edge_index": torch.tensor([[0, 99], [99, 0]])}, "set num_nodes"),
        ({"ritz_values": torch.zeros(1, 6), "ritz_vectors": torch.zeros(7, 6)}, "apply AddRitzPairs again"),
    ],
)
def test_bad_data_says_what_was_given_and_what_to_do(change: dict, message: str) -> None:
    graph = node_graph()
    for key, value in change.items():
        graph[key] = value
    with pytest.raises(ValueError, match=message):
        node_network("LanczosNet")(graph)


def test_pairs_of_another_step_count_are_refused() -> None:
    with pytest.raises(ValueError, match=r"apply AddRitzPairs\(num_steps=6\)"):
        node_network("LanczosNet")(AddRitzPairs(5)(node_graph()))


def test_missing_edge_types_are_named() -> None:
    graph = molecule(4)
    del graph.edge_attr
    with pytest.raises(ValueError, match=r"neither edge_type \[edge\] nor edge_attr"):
        graph_network("LanczosNet")(batched([graph]))


def test_node_types_must_be_integers() -> None:
    graph = molecule(4)
    graph.x = graph.x.float()
    with pytest.raises(ValueError, match="node types, integers"):
        graph_network("LanczosNet")(batched([graph]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"readout": "max"}, "unknown readout 'max'"),
        ({"num_steps": 0}, "num_steps must be at least 1"),
        ({"num_layers": 0}, "num_layers must be at least 1"),
        ({"node_input": "words"}, "'features', 'one-hot' or 'learned'"),
        ({"short_scales": [-2]}, "one is -2"),
    ],
)
def test_bad_options_say_what_was_given_and_what_to_do(options: dict, message: str) -> None:
    for kind in (LanczosNet, AdaLanczosNet):
        with pytest.raises(ValueError, match=message):
            kind(4, 8, 3, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "middle"}, "'ones' or 'random'"),
        ({"tridiagonal_filter": "magic"}, "'spectral', 'vectorized' or 'entrywise'"),
    ],
)
def test_bad_options_of_adalanczosnet_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AdaLanczosNet(4, 8, 3, **options)


def test_the_catalogue_finds_models_by_name_and_lists_them_when_it_does_not() -> None:
    assert isinstance(model("LanczosNet", 4, 8, 3), LanczosNet)
    assert isinstance(model("ada-lanczos-net", 4, 8, 3), AdaLanczosNet)
    with pytest.raises(ValueError, match="unknown model 'LancosNet': choose one of " + ", ".join(MODELS)):
        model("LancosNet", 4, 8, 3)


def test_a_batch_object_of_pyg_is_what_the_graph_networks_take() -> None:
    batch = Batch.from_data_list(molecules((3, 4)))
    assert graph_network("LanczosNet")(batch).shape == (2, 2)


def test_the_initial_gain_scales_the_first_weights_of_the_convolutions(name: str) -> None:
    plain, small = (node_network(name, initial_gain=gain) for gain in (1.0, 0.1))
    for one, tenth in zip(plain.convolutions, small.convolutions, strict=True):
        torch.testing.assert_close(tenth.weight, 0.1 * one.weight)
    torch.manual_seed(3)
    small.reset_parameters()
    torch.manual_seed(3)
    plain.reset_parameters()
    torch.testing.assert_close(small.convolutions[1].weight, 0.1 * plain.convolutions[1].weight)


def test_without_biases_a_network_is_the_one_whose_biases_are_zero(name: str) -> None:
    with_zeros, without = (node_network(name, bias=bias) for bias in (True, False))  # biases begin at zero
    assert all(convolution.bias is None for convolution in without.convolutions)
    torch.testing.assert_close(without(node_graph()), with_zeros(node_graph()))


@pytest.mark.parametrize("kind", [LanczosNet, AdaLanczosNet])
def test_more_steps_in_search_of_the_pairs_are_a_filter_of_the_leading_eigenvalues(kind: type) -> None:
    """With as many as there are nodes, one layer multiplies with the leading eigenpairs of each component."""
    data = node_graph()
    data.x = torch.ones(90, 4)  # the kernel of AdaLanczosNet is then one on every edge, as the graph's own weights
    torch.manual_seed(0)
    options = {"short_scales": (), "long_scales": (1,), "spectral_filter": "power", "block": "plain"}
    network = kind(4, 8, 3, 1, num_steps=6, search_steps=90, **options)
    S = normalized(adjacency(data.edge_index, num_nodes=90, dtype=torch.float64)).dense()
    values, vectors = torch.linalg.eigh(S[:70, :70])
    kept = values.abs().argsort(descending=True)[:6]
    expected = vectors[:, kept] * values[kept] @ vectors[:, kept].T @ torch.ones(70, 4, dtype=torch.float64)
    out = network.double()(data.update({"x": data.x.double()}))
    torch.testing.assert_close(out[:70], expected @ network.convolutions[0].weight[0])


def test_the_transform_of_lanczosnet_searches_as_the_network_does() -> None:
    network = node_network("LanczosNet", search_steps=20)
    prepared = network.transform(node_graph())
    torch.testing.assert_close(network(prepared), network(node_graph()))
    assert not torch.allclose(network(prepared), node_network("LanczosNet")(node_graph()))


@pytest.mark.parametrize(
    "options",
    [{"kernel_channels": (5,)}, {"node_input": "learned"}, {"readout": "mean"}, {"tridiagonal_filter": "entrywise"}],
    ids=str,
)
def test_a_search_is_refused_where_single_pairs_would_need_a_gradient(options: dict) -> None:
    with pytest.raises(ValueError, match="search_steps is for outputs per node of an affinity of which nothing is"):
        AdaLanczosNet(4, 8, 3, num_steps=6, search_steps=20, **options)


def test_an_affinity_is_learned_where_kernel_or_embedding_have_weights() -> None:
    assert not AdaLanczosNet(4, 8, 3).learns_affinity
    assert not AdaLanczosNet(4, 8, 3, node_input="one-hot").learns_affinity
    assert AdaLanczosNet(4, 8, 3, kernel_channels=(5,)).learns_affinity
    assert AdaLanczosNet(4, 8, 3, node_input="learned").learns_affinity


@pytest.mark.parametrize("options", [{}, {"exact_up_to": 0}, {"tridiagonal_filter": "vectorized"}], ids=str)
def test_a_fixed_affinity_is_decomposed_once_with_the_same_outputs_and_gradients(options: dict) -> None:
    torch.manual_seed(0)
    network, graph = AdaLanczosNet(4, 8, 3, num_steps=6, **options).double(), node_graph()
    graph.x = graph.x.double()
    once = network.prepare(graph)
    assert once.spectrum is not None
    found = {}
    for way, inputs in (("once", once), ("again", replace(once, spectrum=None))):
        network.zero_grad()
        output = network(inputs)
        output.square().sum().backward()
        found[way] = [output.detach(), *(parameter.grad.clone() for parameter in network.parameters())]
    for one, again in zip(found["once"], found["again"], strict=True):
        torch.testing.assert_close(one, again, atol=1e-9, rtol=1e-7)


def test_a_learned_affinity_is_not_fixed() -> None:
    assert AdaLanczosNet(4, 8, 3, num_steps=6, kernel_channels=(5,)).prepare(node_graph()).spectrum is None
