"""Padded blocks are the same networks: values and gradients equal those of ragged batches to rounding."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graph_builders import generator
from interpreted import HAS_TRITON, call_interpreted, needs_triton
from lanczosnet.backends.registry import reference
from lanczosnet.baselines import padded_endpoints
from lanczosnet.baselines.padded_endpoints import merge_capacities
from lanczosnet.batching.padded import _axes, pair_order, pair_width
from lanczosnet.graphs import PackedGraphs, pack
from lanczosnet.models import MODELS, model
from lanczosnet.transforms import AddRitzPairs
from molecule_builders import NUM_EDGE_TYPES, NUM_NODE_TYPES, molecule, molecules
from operations import operations
from waiting import Waits

TYPED = {"node_input": "learned", "embedding_channels": 6, "num_edge_types": NUM_EDGE_TYPES, "readout": "gated"}


@pytest.fixture(autouse=True)
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def in_float64(graphs: list[Data]) -> PackedGraphs:
    for graph in graphs:
        graph.edge_weight = graph.edge_weight.double()
    return pack(graphs)


def joined(first: Data, second: Data) -> Data:
    """One graph of two parts."""
    shift = {"edge_index": first.num_nodes}
    keys = [key for key in first.keys() if key not in ("y", "num_nodes")]  # noqa: SIM118
    parts = {key: torch.cat([first[key], second[key] + shift.get(key, 0)], data_axis(key)) for key in keys}
    return Data(**parts, y=first.y, num_nodes=first.num_nodes + second.num_nodes)


def data_axis(key: str) -> int:
    return 1 if key == "edge_index" else 0


def various(symmetric: bool) -> PackedGraphs:
    """Graphs of all sizes, among them an empty one and one of two parts."""
    graphs = [*molecules(), molecule(0), joined(molecule(4), molecule(1))]
    if not symmetric:
        graphs[2].edge_index[1, 0] = graphs[2].edge_index[0, 0]  # a loop, a one-way edge
        graphs[0].edge_index[:, 1] = graphs[0].edge_index[:, 0]  # and an edge twice
    return in_float64(graphs)


def network(name: str, **options) -> nn.Module:
    torch.manual_seed(0)
    return model(name, NUM_NODE_TYPES, 8, 2, 3, **(TYPED | options))


def assert_twins(network: nn.Module, graphs: PackedGraphs, numbers: Tensor | None = None) -> None:
    """The output and the gradient of every parameter, from a ragged batch and from blocks of either shape."""
    numbers = torch.tensor([2, 0, 1, len(graphs) - 1, 2]) if numbers is None else numbers
    blocks = network.prepare_all(graphs)
    results = []
    of_one_shape, compact = (blocks.gather(numbers, same_shape=same) for same in (True, False))
    assert of_one_shape.mask.shape == (len(numbers), int(graphs.node_ptr.diff().max()))
    assert len(compact.nodes) == int(graphs.node_ptr.diff()[numbers].sum())
    aligned = blocks.widened(8).gather(numbers, same_shape=True)
    assert aligned.mask.sum() == of_one_shape.mask.sum()
    for inputs in (graphs.batch(numbers), of_one_shape, compact, aligned):
        network.zero_grad()
        out = network(inputs)
        (out * torch.randn(out.shape, generator=generator(1))).sum().backward()
        results.append((out, [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in network.parameters()]))
    for result in results[1:]:
        torch.testing.assert_close(result, results[0], atol=1e-10, rtol=1e-10)
    assert any(grad.abs().sum() > 0 for grad in results[0][1])


LANCZOS = {
    "published filter": {"spectral_filter": "mlp"},
    "positive": {"positive": True},
    "nothing learned": {"spectral_filter": "power", "long_scales": (10, float("inf"))},
    "no long scales": {"long_scales": ()},
    "no short scales": {"short_scales": ()},
    "no edge types": {"num_edge_types": 0},
    "types as one-hot vectors": {"node_input": "one-hot"},
    "fewer pairs than nodes": {"num_steps": 4},
    "deep filter": {"filter_channels": (5, 4)},
    "normalised, residual": {"block": "plain", "normalization": "layer", "residual": True},
    "tied scales": {"tied_scales": True},
}


@pytest.mark.parametrize("options", LANCZOS.values(), ids=LANCZOS)
def test_lanczosnet_is_the_same_in_blocks(options: dict) -> None:
    assert_twins(network("lanczosnet", **({"num_steps": 8} | options)), in_float64(molecules()))


def test_long_scales_of_which_nothing_is_learned_are_formed_once_for_all_steps_and_layers() -> None:
    learned, power = (network("lanczosnet", num_steps=8, spectral_filter=kind) for kind in ("anchored", "power"))
    blocks = [chosen.prepare_all(in_float64(molecules())) for chosen in (learned, power)]
    num_short, num_long = len(power.short_scales), len(power.long_scales)
    assert [part.known.shape[2] for part in blocks] == [num_short, num_short + num_long]
    assert blocks[1].vectors.numel() == blocks[1].powers.numel() == 0
    first, *others = power.operators(blocks[1], power.encoder(blocks[1].nodes))
    assert all(operators is first for operators in others)


ADAPTIVE = {
    "exact": {"exact_up_to": 12},
    "exact, published filter": {"exact_up_to": 12, "spectral_filter": "mlp", "filter_channels": (5, 4)},
    "exact, nothing learned": {"exact_up_to": 12, "spectral_filter": "power"},
    "learned kernel": {"exact_up_to": 12, "kernel_channels": (6, 4)},
    "no long scales": {"exact_up_to": 12, "long_scales": ()},
    "no short scales, no edge types": {"exact_up_to": 12, "short_scales": (), "num_edge_types": 0},
    "Lanczos": {"exact_up_to": 0},
    "Lanczos, random start": {"exact_up_to": 0, "start": "random"},
    "published path": {"tridiagonal_filter": "vectorized", "start": "random", "reorthogonalize": False},
    "lean filter": {"tridiagonal_filter": "entrywise"},
    "no self-loops": {"exact_up_to": 12, "self_loops": False},
    "normalised, residual": {"exact_up_to": 12, "block": "plain", "normalization": "layer", "residual": True},
    "tied scales": {"exact_up_to": 12, "tied_scales": True},
}


@pytest.mark.parametrize("options", ADAPTIVE.values(), ids=ADAPTIVE)
def test_adalanczosnet_is_the_same_in_blocks(options: dict) -> None:
    assert_twins(network("adalanczosnet", **({"num_steps": 4} | options)), in_float64(molecules()))


RESIDUAL = {
    "LanczosNet": ("lanczosnet", {"num_steps": 8}),
    "LanczosNet, fewer pairs than nodes": ("lanczosnet", {"num_steps": 4, "feedforward": False}),
    "LanczosNet, times of diffusion": ("lanczosnet", {"spectral_filter": "heat"}),
    "LanczosNet, sum and head": ("lanczosnet", {"readout": "sum", "head_channels": 5, "spectral_filter": "mlp"}),
    "AdaLanczosNet, exact": ("adalanczosnet", {"exact_up_to": 12}),
    "AdaLanczosNet, Lanczos": ("adalanczosnet", {"exact_up_to": 0, "num_steps": 4}),
    "AdaLanczosNet, learned kernel": ("adalanczosnet", {"exact_up_to": 12, "kernel_channels": (6,), "readout": "mean"}),
    "GCN": ("gcn", {"block": "residual"}),
}


def output_and_gradients(network: nn.Module, *inputs: Any) -> tuple[Tensor, list[Tensor]]:
    """Of batches one after another, as of one."""
    network.zero_grad()
    out = torch.cat([network(each) for each in inputs])
    (out * torch.randn(out.shape, generator=generator(1))).sum().backward()
    return out, [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in network.parameters()]


@pytest.mark.parametrize(("name", "options"), RESIDUAL.values(), ids=RESIDUAL)
def test_residual_blocks_are_the_same_in_blocks_and_one_by_one(name: str, options: dict) -> None:
    graphs, chosen = in_float64(molecules()), network(name, **({"block": "residual", "dropout": 0.5} | options)).eval()
    assert_twins(chosen, graphs)
    numbers = torch.arange(len(graphs))
    together = output_and_gradients(chosen, chosen.prepare_all(graphs).gather(numbers, same_shape=True))
    one_by_one = output_and_gradients(chosen, *(graphs.batch(number) for number in numbers.split(1)))
    torch.testing.assert_close(together, one_by_one, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize(("name", "options"), RESIDUAL.values(), ids=RESIDUAL)
def test_neither_norm_nor_dropout_of_residual_blocks_sees_padding(name: str, options: dict) -> None:
    chosen = network(name, **({"block": "residual", "dropout": 0.5, "input_dropout": 0.2} | options)).train()
    blocks = chosen.prepare_all(in_float64(molecules())).widened(8).gather(torch.tensor([2, 0, 1]), same_shape=True)
    other = replace(blocks, x=torch.where(blocks.mask > 0, blocks.x, 3))
    assert not other.x.equal(blocks.x)
    results = []
    for inputs in (blocks, other):
        torch.manual_seed(0)  # of dropout, which is drawn for padding, too
        results.append(output_and_gradients(chosen, inputs))
    torch.testing.assert_close(*results, atol=1e-12, rtol=1e-12)


def test_adalanczosnet_has_no_blocks_for_graphs_of_both_paths_nor_for_components_through_lanczos() -> None:
    graphs = in_float64([joined(molecule(5), molecule(3)), molecule(4)])
    assert network("adalanczosnet", num_steps=4, exact_up_to=6).prepare_all(graphs) is None
    assert network("adalanczosnet", num_steps=4, exact_up_to=0).prepare_all(graphs) is None
    assert_twins(network("adalanczosnet", num_steps=4, exact_up_to=8), graphs, torch.tensor([1, 0]))


@pytest.mark.parametrize("readout", ["mean", "sum", "gated", "set2set"])
def test_every_readout_leaves_padding_out(readout: str) -> None:
    assert_twins(network("lanczosnet", num_steps=8, readout=readout), in_float64([*molecules(), molecule(0)]))


def test_real_features_enter_blocks_too() -> None:
    graphs = molecules()
    for place, graph in enumerate(graphs):
        graph.x = torch.randn(graph.num_nodes, NUM_NODE_TYPES, generator=generator(place))
    assert_twins(network("lanczosnet", node_input="features", num_steps=8), in_float64(graphs))


def test_graphs_of_several_parts_and_an_edge_of_weight_zero_are_the_same_in_blocks() -> None:
    parts = molecules()
    bridged = joined(parts[0], parts[3])
    bridged.edge_weight[[0, parts[0].num_edges // 2]] = 0.0
    graphs = [joined(parts[1], parts[2]), bridged, parts[4], joined(bridged.clone(), parts[2])]
    assert_twins(network("lanczosnet", num_steps=4), in_float64(graphs))


def test_a_batch_of_one_graph_and_data_of_one_node_each_are_fine() -> None:
    assert_twins(network("lanczosnet"), in_float64(molecules()), torch.tensor([1]))
    assert_twins(network("lanczosnet"), in_float64(molecules((1, 1))), torch.tensor([1, 0]))


def test_pairs_that_the_data_brings_are_used() -> None:
    chosen = network("lanczosnet", num_steps=8)
    graphs = pack([AddRitzPairs(8)(graph) for graph in in_float64(molecules())])
    assert_twins(chosen, graphs)
    before = chosen.prepare_all(graphs).powers
    graphs.graph["ritz_values"].zero_()
    assert not chosen.prepare_all(graphs, validate=False).powers.equal(before)
    with pytest.raises(ValueError, match="apply AddRitzPairs again"):
        chosen.prepare_all(graphs)


@pytest.mark.parametrize("graphs", [[molecule(65)], [molecule(3)]], ids=["too many nodes", "outputs per node"])
def test_what_does_not_fit_has_no_blocks(graphs: list[Data]) -> None:
    readout = "gated" if graphs[0].num_nodes > 3 else None
    assert network("lanczosnet", readout=readout).prepare_all(pack(graphs)) is None


def test_blocks_are_checked_at_the_door() -> None:
    bad = molecule(4)
    bad.edge_weight[0] = float("nan")
    with pytest.raises(ValueError, match="must be finite"):
        network("lanczosnet").prepare_all(pack([molecule(3), bad]))


OPERATORS = {
    "gcn": {},
    "gcnfp": {},
    "chebynet": {"polynomial_order": 3},
    "graphsage": {},
    "dcnn": {"scales": (2, 5)},
}


@pytest.mark.parametrize("edge_types", [0, NUM_EDGE_TYPES])
@pytest.mark.parametrize("name", OPERATORS)
def test_the_networks_of_known_operators_are_the_same_in_blocks(name: str, edge_types: int) -> None:
    assert_twins(network(name, num_edge_types=edge_types, **OPERATORS[name]), various(symmetric=name == "dcnn"))


MESSAGES = {
    "GGNN, sum of matrices": ("ggnn", {}),
    "GGNN, mean of perceptrons": ("ggnn", {"aggregation": "mean", "message_channels": (5,)}),
    "MPNN, mean": ("mpnn", {"readout": "set2set"}),
    "MPNN, functions of the sender": ("mpnn", {"both_ends": False, "message_channels": (5, 4)}),
    "MPNN, sum of perceptrons": ("mpnn", {"aggregation": "sum", "message_channels": (5,)}),
    "GPNN": ("gpnn", {"num_partitions": 2, "cluster_steps": 2}),
    "GPNN, sum of perceptrons": ("gpnn", {"aggregation": "sum", "message_channels": (5,), "merge_channels": (4,)}),
    "GAT": ("gat", {"heads": 2}),
    "GAT, heads of its own in every layer": ("gat", {"heads": (3, 1, 2)}),
}


@pytest.mark.parametrize("edge_types", [0, NUM_EDGE_TYPES])
@pytest.mark.parametrize(("name", "options"), MESSAGES.values(), ids=MESSAGES)
def test_the_networks_of_messages_are_the_same_in_blocks(name: str, options: dict, edge_types: int) -> None:
    assert_twins(network(name, num_edge_types=edge_types, **options), various(symmetric=name == "gpnn"))


# As a fused kernel a cell is two of these; written out it is more than twenty. Messages of both ends are two as well,
# and about fifteen.
MOST_OPERATIONS = {
    "GGNN, sum of matrices": 34,
    "GGNN, mean of perceptrons": 36,
    "MPNN, mean": 43,
    "MPNN, sum of perceptrons": 54,
    "GPNN, sum of perceptrons": 118,
    "GAT": 38,
}


@pytest.mark.parametrize("name", MOST_OPERATIONS)
def test_a_further_step_has_few_operations(name: str) -> None:
    kind, options = MESSAGES[name]
    numbers, counts = torch.tensor([2, 0, 1]), []
    for num_layers in (3, 4):
        chosen = model(kind, NUM_NODE_TYPES, 8, 2, num_layers, **(TYPED | options))
        blocks = chosen.prepare_all(various(symmetric=True)).gather(numbers, same_shape=True)
        counts.append(operations(lambda chosen=chosen, blocks=blocks: chosen(blocks).sum().backward()))
    assert (counts[1] - counts[0]).total() <= MOST_OPERATIONS[name]


def with_bare_parts() -> PackedGraphs:
    """Among the graphs one without edges and one without nodes; no graph has edges of the second type."""
    graphs = [*molecules((5, 4, 12, 7, 3)), molecule(6), molecule(0)]
    alone = graphs[1]
    alone.edge_index, alone.edge_weight, alone.edge_attr = (
        alone.edge_index[:, :0],
        alone.edge_weight[:0],
        alone.edge_attr[:0],
    )
    for graph in graphs:
        graph.edge_attr[:, 1] = 0.0
    return in_float64(graphs)


@pytest.fixture(params=[0, 512], ids=["products apart", "products shared"])
def products(request, monkeypatch) -> None:
    monkeypatch.setattr(padded_endpoints, "ROWS_PER_PRODUCT", request.param)


PACKED = {
    "usual": [2, 0, 1, 3, 4, 5, 6, 0],
    "smaller": [3, 5, 0],
    "one": [4],
    "no edges": [1, 6],
    "no nodes": [6],
    "as many edges as can be": [2, 2, 2, 2, 2, 2, 2, 2],
}


@pytest.mark.parametrize("numbers", PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("aggregation", ["sum", "mean"])
def test_packed_edges_are_the_same_as_lists_of_edges(products, numbers: list[int], aggregation: str) -> None:
    graphs, chosen = with_bare_parts(), network("mpnn", aggregation=aggregation, message_channels=(5,))
    blocks, chosen_numbers = chosen.prepare_all(graphs).widened(4), torch.tensor(numbers)
    shape, results = blocks.shape_of(chosen_numbers), []
    assert (shape is None) == (numbers == PACKED["as many edges as can be"])
    usual = [blocks.gather_as(chosen_numbers, shape)] if shape is not None else []
    for inputs in (graphs.batch(chosen_numbers), blocks.gather(chosen_numbers, same_shape=True), *usual):
        chosen.zero_grad()
        out = chosen(inputs)
        (out * torch.randn(out.shape, generator=generator(1))).sum().backward()
        results.append((out, [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in chosen.parameters()]))
    for result in results[1:]:
        torch.testing.assert_close(result, results[0], atol=1e-10, rtol=1e-10)


def test_usual_batches_have_fewer_rows_and_their_shape_depends_on_their_size_alone(products) -> None:
    blocks = network("mpnn").prepare_all(in_float64(molecules((12, 4, 4, 4, 5, 4, 5, 4) * 8)))
    batches = torch.randperm(64, generator=generator(0)).split(24)
    assert {blocks.shape_of(batch) for batch in batches} == {padded_endpoints.DEVIATIONS}
    usual = [blocks.gather_as(batch, padded_endpoints.DEVIATIONS).inputs().channels for batch in batches]
    any_batch = blocks.gather(batches[0], same_shape=True).inputs().channels
    assert usual[0].capacity == usual[1].capacity != usual[2].capacity
    assert sum(usual[0].capacity) == len(usual[0].node) < len(any_batch.node) * 2 / 3
    received = {int((rows.senders.weight.sum(1) > 0).sum()) for rows in (usual[0], any_batch)}
    assert received == {int(blocks.counts[batches[0]].sum())}


SCATTERED = {"index_add", "index_add_", "scatter_add", "scatter_add_", "index_put_", "_index_put_impl_"}


def test_a_step_on_packed_edges_never_waits_and_adds_in_an_order_of_its_own(products) -> None:
    chosen = network("mpnn", message_channels=(5,))
    blocks, numbers = chosen.prepare_all(in_float64(molecules())), torch.tensor([4, 3, 1])
    assert blocks.shape_of(numbers) is not None

    def step() -> None:
        chosen(blocks.gather_as(numbers, padded_endpoints.DEVIATIONS)).square().sum().backward()

    with Waits() as waits:
        found = operations(step)
    assert not waits.found
    assert not SCATTERED & set(found)


def test_neighbouring_channels_share_a_product_where_their_padding_costs_less() -> None:
    # The rows of QM8's channels for 64 molecules.
    assert merge_capacities([1128, 1096, 128, 72, 128, 232, 360]) == (1128, 1128, 128, 128, 128, 360, 360)
    assert merge_capacities([8, 16, 8]) == (16, 16, 16)


def test_weights_per_degree_sampled_neighbours_and_deep_messages_have_no_blocks() -> None:
    graphs = pack(molecules())
    assert network("gcnfp", max_degree=2).prepare_all(graphs) is None
    assert network("graphsage", num_neighbors=1).prepare_all(graphs) is None
    assert network("mpnn", message_channels=(5, 4)).prepare_all(graphs) is None
    assert network("graphsage", num_neighbors=12).prepare_all(graphs) is not None


STEPS = {
    **{name: {} for name in MODELS},
    "adalanczosnet": {"exact_up_to": 12},
    "adalanczosnet, Lanczos": {"exact_up_to": 0},
    "adalanczosnet, published": {"tridiagonal_filter": "vectorized", "start": "random", "reorthogonalize": False},
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("readout", ["gated", "set2set"])
def test_a_step_on_blocks_of_one_shape_never_waits_for_the_device(name: str, readout: str) -> None:
    chosen = network(name.split(",")[0], readout=readout, **STEPS[name])
    blocks = chosen.prepare_all(in_float64(molecules()))
    numbers = torch.tensor([4, 2, 1])
    step = lambda: chosen(blocks.gather(numbers, same_shape=True)).square().sum().backward()  # noqa: E731
    step()  # the first of a process may copy what all others find there
    with Waits() as waits:
        step()
    assert not waits.found


def test_wider_blocks_of_attention_attend_to_nothing_more() -> None:
    narrow = network("gat").prepare_all(in_float64(molecules()))
    wide, width = narrow.widened(8), narrow.mask.shape[1]
    assert wide.mask.shape[1] == 16
    torch.testing.assert_close(wide.matrix[..., :width, :width], narrow.matrix)
    counts = wide.inputs().channels.matrix.exp()  # [channel, graph, node, node]
    assert counts[..., :width, width:].sum() == 0
    torch.testing.assert_close(counts[..., width:, :], torch.eye(16)[width:].expand(*counts.shape[:2], -1, -1))
    assert (counts.sum(-1) > 0).all()


def test_blocks_without_padding_are_found_out_to_wait() -> None:
    blocks, numbers = network("gcn").prepare_all(in_float64(molecules())), torch.tensor([4, 2, 1])
    with Waits() as waits:
        blocks.gather(numbers, same_shape=False)
    assert set(waits.found) == {"_local_scalar_dense", "nonzero"}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.parametrize("name", STEPS)
def test_a_cuda_graph_can_hold_a_step(name: str) -> None:
    device = torch.device("cuda")
    chosen = network(name.split(",")[0], **STEPS[name]).to(device)
    blocks = chosen.prepare_all(in_float64(molecules()).to(device))
    numbers = torch.tensor([4, 2, 1], device=device)

    def step() -> Tensor:
        out = chosen(blocks.gather(numbers))
        return torch.cat([grad.flatten() for grad in torch.autograd.grad(out.square().sum(), chosen.parameters())])

    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        held = step()
    numbers.copy_(torch.tensor([0, 3, 2]))
    graph.replay()
    torch.testing.assert_close(held, step(), atol=1e-9, rtol=1e-9)


def test_wider_blocks_have_rows_of_a_multiple() -> None:
    blocks = network("lanczosnet", num_steps=8).prepare_all(in_float64(molecules()))
    wide = blocks.widened(8)
    assert wide.mask.shape[1] % 8 == 0
    assert wide.vectors.shape[1] == wide.typed.shape[3] == wide.mask.shape[1]
    assert wide.vectors.shape[2] == blocks.vectors.shape[2]


PAIRED = {
    "LanczosNet": ("lanczosnet", {"num_steps": 8}),
    "LanczosNet, more pairs than nodes": ("lanczosnet", {"num_steps": 20, "spectral_filter": "mlp"}),
    "LanczosNet, scale 0": ("lanczosnet", {"num_steps": 8, "short_scales": (0, 2), "long_scales": (0, 10)}),
    "LanczosNet, Set2Set": (
        "lanczosnet",
        {"num_steps": 8, "readout": "set2set", "block": "plain", "normalization": "layer"},
    ),
    "LanczosNet, sum and head": ("lanczosnet", {"num_steps": 8, "readout": "sum", "head_channels": 5}),
    "GCN": ("gcn", {}),
    "GCN, residual blocks": ("gcn", {"block": "residual"}),
    "DCNN": ("dcnn", {}),
    "GraphSAGE": ("graphsage", {}),
    "GGNN": ("ggnn", {}),
    "GGNN, perceptrons": ("ggnn", {"message_channels": (5,), "aggregation": "mean"}),
    "GPNN": ("gpnn", {}),
}


@pytest.mark.parametrize(("name", "options"), PAIRED.values(), ids=PAIRED)
@pytest.mark.parametrize("numbers", [[2, 0, 1, 3, 4, 5], [5, 1], [2, 2]], ids=str)
def test_two_graphs_in_a_block_are_the_same_as_two_blocks(name: str, options: dict, numbers: list[int]) -> None:
    graphs, chosen = various(symmetric=True), network(name, **options)
    blocks, sizes = chosen.prepare_all(graphs).widened(4), graphs.node_ptr.diff()[numbers]
    width = max(int(pair_width(sizes)), blocks.mask.shape[1])
    results = []
    for inputs in (graphs.batch(torch.tensor(numbers)), blocks.gather_pairs(torch.tensor(numbers), width)):
        chosen.zero_grad()
        out = chosen(inputs)
        (out * torch.randn(out.shape, generator=generator(1))).sum().backward()
        results.append((out, [p.grad.clone() for p in chosen.parameters() if p.grad is not None]))
    assert inputs.mask.shape == (len(numbers) // 2, width)
    torch.testing.assert_close(*results, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize(("name", "options"), PAIRED.values(), ids=PAIRED)
def test_what_may_share_a_block_is_zero_on_padding(name: str, options: dict) -> None:
    blocks = network(name, **options).prepare_all(various(symmetric=True))
    for key, names in _axes(type(blocks)).items():
        tensor = getattr(blocks, key)
        for place in (place for place, axis in enumerate(names) if axis == "node"):
            mask = blocks.mask.view(len(blocks), *(-1 if axis == place else 1 for axis in range(1, tensor.dim())))
            assert not (tensor * (1 - mask)).any(), key


def test_in_the_right_order_pairs_need_the_least_width() -> None:
    sizes = torch.tensor([[26, 3, 16, 15, 9, 20], [5, 5, 5, 1, 1, 1]])
    order = pair_order(sizes)
    assert order.sort(1).values.tolist() == [list(range(6))] * 2
    assert sizes.gather(1, order).tolist() == [[3, 9, 15, 26, 20, 16], [1, 1, 1, 5, 5, 5]]
    every = torch.cartesian_prod(*[torch.arange(6)] * 6)
    every = every[(every.sort(1).values == torch.arange(6)).all(1)]
    assert pair_width(sizes.gather(1, order)).tolist() == [int(pair_width(row[every]).min()) for row in sizes]


def test_pairs_are_gathered_without_sorting_or_waiting_and_read_in_rows_of_one_graph() -> None:
    chosen = network("lanczosnet", num_steps=8)
    blocks, numbers = chosen.prepare_all(in_float64(molecules())), torch.tensor([1, 4, 2, 3])
    rows = []
    chosen.readout.gate.register_forward_pre_hook(lambda module, inputs: rows.append(len(inputs[0])))

    def step() -> None:
        chosen(blocks.gather_pairs(numbers, 20)).square().sum().backward()

    with Waits() as waits:
        found = operations(step)
    assert not waits.found
    assert not {"sort", "argsort"} & set(found)
    assert rows == [len(numbers) * blocks.mask.shape[1]]


def tables(device: str) -> list[tuple[Tensor, list[int]]]:
    """As the blocks of networks have them, and the axes that grow; one is a view of another layout."""
    shapes = {
        (7, 6): [1],
        (7, 6, 3): [1],
        (7, 6, 5): [1, 2],
        (7, 4, 3): [1],
        (7, 6, 2, 6): [1, 3],
        (7, 2, 6, 6): [2, 3],
    }
    found = [(torch.randn(shape, generator=generator(0)), grown) for shape, grown in shapes.items()]
    found.append((torch.randint(9, (7, 6), generator=generator(1)), [1]))
    found.append((torch.randn(7, 26, 7, 26, generator=generator(2), dtype=torch.float32), [1, 3]))
    found.append((torch.randn(7, 6, 6, 2, generator=generator(3)).movedim(3, 2), [1, 3]))
    found.append((torch.randn(7, 6, 0, 6), [1, 3]))
    return [(table.to(device), grown) for table, grown in found]


def compare_pairs_with_the_plain_path(device: str = "cpu") -> None:
    """Exactly, also where the two graphs overlap and with all graphs in place of numbers."""
    from lanczosnet.backends.triton.block_pairs import block_pairs as kernel_pairs

    numbers = torch.tensor([3, 0, 6, 2, 2, 5], device=device)
    for table, grown in tables(device):
        for width in (table.shape[1 if 1 in grown else 2], 28, 33):
            if width < max(table.shape[place] for place in grown):
                continue
            for chosen, graphs in ((table, numbers), (table[:6], None)):
                found, expected = (
                    pairs(chosen, graphs, grown, width) for pairs in (kernel_pairs, reference("block_pairs"))
                )
                assert found.shape == expected.shape
                assert found.dtype == expected.dtype
                assert torch.equal(found, expected)


@pytest.mark.skipif(not (torch.cuda.is_available() and HAS_TRITON), reason="needs a GPU and Triton")
def test_the_kernel_of_pairs_is_the_plain_path() -> None:
    compare_pairs_with_the_plain_path("cuda")


@pytest.mark.slow
@needs_triton
def test_the_kernel_of_pairs_is_the_plain_path_in_the_interpreter() -> None:
    call_interpreted(__file__, "compare_pairs_with_the_plain_path")


@pytest.mark.parametrize("num_edge_types", [0, 3])
@pytest.mark.parametrize("name", ["gcn", "chebynet", "graphsage", "lanczosnet"])
def test_gradients_of_weights_are_not_copied_one_by_one(name: str, num_edge_types: int) -> None:
    model = network(name, num_edge_types=num_edge_types)
    graphs = in_float64(molecules())
    blocks = model.prepare_all(graphs).gather(torch.arange(len(graphs)), same_shape=True)
    loss = model(blocks).square().sum()
    assert operations(loss.backward)["copy_"] == 0
