import copy
import math

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv

from graph_builders import generator, random_edges, random_weights
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.filters import SpectralTridiagonalFilter
from lanczosnet.krylov import component_ritz_pairs
from lanczosnet.layers import AdaLanczosConv, LanczosConv, adaptive_spectrum
from lanczosnet.layers.lanczos_conv import fixed_ritz_pairs


def features(num_nodes: int, channels: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.randn(num_nodes, channels, generator=generator(seed))


def test_it_is_used_like_any_convolution_of_pyg(device) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = LanczosConv(3, 8, num_steps=6)
            self.second = GCNConv(8, 2)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x, edge_index).relu(), edge_index)

    net = Net().to(device)
    out = net(features(20).to(device), random_edges(20).to(device))
    assert out.shape == (20, 2)
    out.sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_one_hop_alone_is_gcn_with_the_same_weights() -> None:
    edges, x = random_edges(12), features(12)
    weights = random_weights(edges, dtype=torch.float32)
    ours, theirs = LanczosConv(3, 4, [1], []), GCNConv(3, 4)
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.weight[0].T)
    torch.testing.assert_close(ours(x, edges, weights), theirs(x, edges, weights))


def test_a_batch_gives_what_its_graphs_give_one_by_one() -> None:
    torch.manual_seed(0)
    conv = LanczosConv(3, 4, num_steps=5)
    graphs = [Data(x=features(n, seed=n), edge_index=random_edges(n, n)) for n in (6, 9, 1)]
    batch = Batch.from_data_list(graphs)
    together = conv(batch.x, batch.edge_index, batch=batch.batch)
    torch.testing.assert_close(together, torch.cat([conv(g.x, g.edge_index) for g in graphs]))


def test_given_ritz_pairs_are_used_and_save_the_lanczos_run(monkeypatch) -> None:
    torch.manual_seed(0)
    edges, x = random_edges(10), features(10)
    conv = LanczosConv(3, 4, num_steps=5)
    expected = conv(x, edges)
    pairs = component_ritz_pairs(normalized(adjacency(edges)), 5)
    monkeypatch.setattr("lanczosnet.layers.lanczos_conv.component_ritz_pairs", None)
    torch.testing.assert_close(conv(x, edges, pairs=pairs), expected)


def test_a_spectrum_made_once_serves_many_calls() -> None:
    torch.manual_seed(0)
    edges, x = random_edges(10), features(10)
    conv = LanczosConv(3, 4, num_steps=5)
    torch.testing.assert_close(conv.convolve(x, conv.spectrum(edges)), conv(x, edges))


def test_a_nonlinearity_before_the_concatenation_changes_the_result() -> None:
    torch.manual_seed(0)
    edges, x = random_edges(10), features(10)
    conv = LanczosConv(3, 4, [1, 2], [5], 6)
    plain = conv(x, edges)
    conv.inner_activation = torch.relu
    spectrum = conv.spectrum(edges)
    basis = spectrum.basis
    smooth = basis.lift(conv.filter(basis.values) * basis.project(x))
    one = spectrum.operator @ x
    blocks = torch.cat([one, spectrum.operator @ one, smooth], 1).relu()
    torch.testing.assert_close(conv(x, edges), blocks @ conv.weight.view(-1, 4) + conv.bias)
    assert not torch.allclose(conv(x, edges), plain)


@pytest.mark.parametrize("as_flags", [False, True], ids=["one type an edge", "flags"])
def test_edge_types_add_one_hop_each(as_flags: bool) -> None:
    torch.manual_seed(0)
    edges, x = random_edges(8), features(8)
    half = edges.shape[1] // 2
    kind = torch.randint(2, (half,), generator=generator(0)).repeat(2)
    edge_type = torch.nn.functional.one_hot(kind, 2).float() if as_flags else kind
    conv = LanczosConv(3, 4, [1], [], num_edge_types=2)
    expected = normalized(adjacency(edges)).dense() @ x @ conv.weight[0]
    for t in range(2):
        S = normalized(adjacency(edges[:, kind == t], num_nodes=8)).dense()
        expected = expected + S @ x @ conv.weight[1 + t]
    torch.testing.assert_close(conv(x, edges, edge_type=edge_type), expected)


def one_weight_per_pair(edges: torch.Tensor) -> torch.Tensor:
    """For an edge and its reverse together, so that they stay symmetric when they are changed."""
    return random_weights(edges)[: edges.shape[1] // 2].requires_grad_()


@pytest.mark.parametrize("tied_scales", [False, True])
def test_edge_weights_have_the_right_gradient_where_there_are_short_scales_only(tied_scales: bool) -> None:
    edges, x = random_edges(8), features(8).double()
    conv = LanczosConv(3, 4, [1, 2, 5], [], tied_scales=tied_scales).double()
    assert torch.autograd.gradcheck(lambda w: conv(x, edges, w.repeat(2)), one_weight_per_pair(edges))


@pytest.mark.parametrize("short_scales", [[1, 2], []], ids=["incomplete", "none"])
def test_with_long_scales_a_gradient_of_edge_weights_is_refused_and_not_incomplete(short_scales: list[int]) -> None:
    edges, x = random_edges(8), features(8)
    weights = random_weights(edges, dtype=torch.float32).requires_grad_()
    conv = LanczosConv(3, 4, short_scales, [10], num_steps=4)
    with pytest.raises(ValueError, match=r"constants.*edge_weight\.detach\(\).*long_scales=\(\).*AdaLanczosConv"):
        conv(x, edges, weights)
    with pytest.raises(ValueError, match="constants"):
        conv(x, edges, weights, pairs=component_ritz_pairs(normalized(adjacency(edges)), 4))
    expected = conv(x, edges, weights.detach())
    with torch.no_grad():
        torch.testing.assert_close(conv(x, edges, weights), expected)


def test_the_layer_that_the_refusal_names_has_the_whole_gradient_of_edge_weights() -> None:
    edges, x = random_edges(8), features(8).double()
    conv = LanczosConv(3, 4, [1, 2], [3, 5], num_steps=4).double()
    adaptive = AdaLanczosConv(3, 4, SpectralTridiagonalFilter(conv.filter), [1, 2], 2).double()
    adaptive.load_state_dict(conv.state_dict(), strict=False)

    def convolved(weights: torch.Tensor) -> torch.Tensor:
        S = normalized(adjacency(edges, weights.repeat(2)))
        return adaptive(x, adaptive_spectrum(S, 4))

    weights = one_weight_per_pair(edges)
    assert torch.autograd.gradcheck(convolved, weights)
    torch.testing.assert_close(convolved(weights), conv(x, edges, weights.detach().repeat(2)))


@pytest.mark.parametrize(
    "options", [{}, {"tied_scales": True}, {"inner_activation": torch.tanh}], ids=["plain", "tied", "activated"]
)
def test_gradients_in_double_precision_are_those_of_finite_differences(options: dict) -> None:
    torch.manual_seed(0)
    edges, x = random_edges(8), features(8).double().requires_grad_()
    types = edges.sum(0) % 2
    conv = LanczosConv(3, 2, [1, 2], [3, 5], 4, filter_channels=(6,), num_edge_types=2, **options).double()
    names, weights = zip(*conv.named_parameters(), strict=True)

    def convolved(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        changed = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(conv, changed, (x, edges), {"edge_type": types})

    assert torch.autograd.gradcheck(convolved, (x, *weights))


@pytest.mark.parametrize("channels", [(3, 8), (8, 3)], ids=["widening", "narrowing"])
def test_double_precision_in_is_double_precision_out_whatever_weights_and_pairs_are(channels: tuple[int, int]) -> None:
    torch.manual_seed(0)
    edges, x = random_edges(12), features(12, channels[0])
    weights = random_weights(edges, dtype=torch.float32)
    pairs = component_ritz_pairs(normalized(adjacency(edges, weights)), 5)
    conv = LanczosConv(*channels, num_steps=5)
    single, weighted = conv(x, edges), conv(x, edges, weights)
    conv, x = conv.double(), x.double()
    torch.testing.assert_close(conv(x, edges), single.double(), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(conv.convolve(x, conv.spectrum(edges)), conv(x, edges))
    for given in (weights, weights.double()):
        torch.testing.assert_close(conv(x, edges, given), weighted.double(), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(conv(x, edges, given, pairs=pairs), weighted.double(), atol=1e-4, rtol=1e-4)


def test_double_weights_do_not_make_a_single_layer_double() -> None:
    edges, x = random_edges(12), features(12)
    conv = LanczosConv(3, 4, num_steps=5)
    weights = random_weights(edges)
    torch.testing.assert_close(conv(x, edges, weights), conv(x, edges, weights.float()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_pairs_are_never_found_in_half_precision(dtype: torch.dtype) -> None:
    S = normalized(adjacency(random_edges(12))).to(dtype)
    pairs, expected = fixed_ritz_pairs(S, 5), component_ritz_pairs(S.to(torch.float32), 5)
    assert pairs.values.dtype == pairs.vectors.dtype == dtype
    torch.testing.assert_close(pairs.vectors, expected.vectors.to(dtype))
    torch.testing.assert_close(pairs.values, expected.values.to(dtype))


def test_under_autocast_a_spectrum_keeps_its_precision() -> None:
    conv = LanczosConv(3, 4, num_steps=5)
    with torch.autocast("cpu", torch.bfloat16):
        spectrum = conv.spectrum(random_edges(12))
        assert torch.isfinite(conv(features(12).bfloat16(), random_edges(12))).all()
    assert spectrum.operator.dtype == spectrum.basis.values.dtype == torch.float32


def test_reset_parameters_draws_new_ones_from_the_seed() -> None:
    conv = LanczosConv(3, 4)
    torch.manual_seed(1)
    conv.reset_parameters()
    first = copy.deepcopy(conv.state_dict())
    conv.reset_parameters()
    assert not torch.equal(conv.weight, first["weight"])
    torch.manual_seed(1)
    conv.reset_parameters()
    assert all(torch.equal(value, first[name]) for name, value in conv.state_dict().items())


def test_an_infinite_long_scale_is_admitted() -> None:
    edges = random_edges(8)
    assert torch.isfinite(LanczosConv(3, 4, [1], [10, math.inf], 8)(features(8), edges)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"short_scales": [-1]}, "one is -1"),
        ({"num_steps": 0}, "num_steps must be at least 1, but is 0"),
        ({"short_scales": [], "long_scales": []}, "at least one short scale, long scale or edge type"),
        ({"spectral_filter": "magic"}, "choose one of power, heat, mlp, unbiased, anchored"),
    ],
)
def test_bad_options_say_what_was_given_and_what_to_do(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LanczosConv(3, 4, **options)


def test_bad_inputs_say_what_was_given_and_what_to_do() -> None:
    edges, x = random_edges(8), features(8)
    conv = LanczosConv(3, 4, num_steps=5)
    with pytest.raises(ValueError, match="takes 3 channels, but got 2"):
        conv(features(8, 2), edges)
    with pytest.raises(ValueError, match=r"shape \(6, 5\), but the graph has 8 nodes"):
        conv(x, edges, pairs=component_ritz_pairs(normalized(adjacency(random_edges(6))), 5))
    with pytest.raises(ValueError, match="not symmetric"):
        conv(x, edges, torch.rand(edges.shape[1], generator=generator(0)))
    with pytest.raises(ValueError, match="2 edge types: pass edge_type"):
        LanczosConv(3, 4, num_edge_types=2)(x, edges)


@pytest.mark.parametrize(("short", "long"), [([0, 1, 4], [3, math.inf]), ([2], []), ([], [3, 6])])
@pytest.mark.parametrize("num_edge_types", [0, 2])
@pytest.mark.parametrize("activation", [None, torch.tanh])
def test_tied_scales_are_equal_weights(short, long, num_edge_types, activation) -> None:
    edges, x = random_edges(12), features(12)
    types = edges.sum(0) % 2 if num_edge_types else None
    options = {"num_steps": 5, "num_edge_types": num_edge_types, "inner_activation": activation}
    tied = LanczosConv(3, 4, short, long, tied_scales=True, **options)
    untied = LanczosConv(3, 4, short, long, **options)
    num_scales = len(short) + len(long)
    untied.filter = tied.filter
    with torch.no_grad():
        untied.weight[:num_scales] = tied.weight[0] / num_scales
        untied.weight[num_scales:] = tied.weight[1:]
    assert len(tied.weight) == 1 + num_edge_types
    torch.testing.assert_close(tied(x, edges, edge_type=types), untied(x, edges, edge_type=types))


def test_tied_scales_without_scales_leave_edge_types_alone() -> None:
    edges, x = random_edges(12), features(12)
    types = edges.sum(0) % 2
    torch.manual_seed(0)
    tied = LanczosConv(3, 4, [], [], num_edge_types=2, tied_scales=True)
    torch.manual_seed(0)
    untied = LanczosConv(3, 4, [], [], num_edge_types=2)
    torch.testing.assert_close(tied(x, edges, edge_type=types), untied(x, edges, edge_type=types))


def test_a_typed_edge_of_weight_zero_is_none() -> None:
    edges, x = random_edges(12), torch.randn(12, 3, generator=generator(0))
    kind, gone = edges.sum(0) % 2, edges.sum(0) % 5 == 0
    torch.manual_seed(0)
    layer = LanczosConv(3, 2, num_edge_types=2)
    weighted = layer(x, edges, (~gone).float(), edge_type=kind)
    torch.testing.assert_close(weighted, layer(x, edges[:, ~gone], edge_type=kind[~gone]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_computes_also_where_pytorch_has_no_sparse_product_for_it(dtype):
    edges = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    layer, x = LanczosConv(3, 4, num_steps=3), torch.randn(4, 3)
    exact = layer(x, edges).detach()
    half = x.to(dtype).requires_grad_()
    output = layer.to(dtype)(half, edges)
    assert output.dtype == dtype
    torch.testing.assert_close(output.float(), exact, rtol=0.05, atol=0.05)
    output.sum().backward()
    assert half.grad.isfinite().all()
    S = normalized(adjacency(edges, num_nodes=4)).to(dtype)
    assert S.sampled_product(half.detach(), half.detach()).dtype == dtype
