import pytest
import torch

from graph_builders import generator, path_edges, ragged_operator, random_operator
from lanczosnet.affinity import adjacency, connected_components, normalized, padding_of
from lanczosnet.batching import adaptive_spectrum as compression
from lanczosnet.batching.adaptive_spectrum import ComponentGroup, component_plan
from lanczosnet.batching.graph_spectrum import AdaptiveSpectrum
from lanczosnet.filters import AnchoredFilter, SpectralTridiagonalFilter
from lanczosnet.layers import AdaLanczosConv, adaptive_spectrum

CPU = torch.device("cpu")


def convolution(seed: int = 0) -> AdaLanczosConv:
    torch.manual_seed(seed)
    return AdaLanczosConv(2, 3, SpectralTridiagonalFilter(AnchoredFilter([3, 6], (8,))), [1], 2).double()


def forms(spectrum: AdaptiveSpectrum) -> list[tuple[bool, bool]]:
    """Of every core, whether it is compressed, and whether its nodes are padded."""
    return [(core.basis.vectors is not None, core.basis.padding is not None) for core in spectrum.cores]


def test_small_components_are_kept_exactly_and_large_ones_compressed() -> None:
    S = ragged_operator(torch.float64, CPU, sizes=(3, 9, 1, 12))
    component, count = connected_components(S)
    exact, padded, whole = (False, True), (True, True), (True, False)
    options = {"component": component, "num_components": count}
    assert forms(adaptive_spectrum(S, 5, **options)) == [exact, padded]
    assert forms(adaptive_spectrum(S, 10, **options)) == [exact, whole]
    assert forms(adaptive_spectrum(S, 5, exact_up_to=0, **options)) == [padded] * 3
    assert forms(adaptive_spectrum(S.padded(), 12)) == [(False, False)]


DIFFERENT = (7, 3, 40, 6)


def test_components_of_one_power_of_two_are_padded_together() -> None:
    S = ragged_operator(torch.float64, CPU, sizes=(*DIFFERENT, 33, 1))
    component, count = connected_components(S)
    groups = component_plan(S, 0, component, count).groups
    assert [group.number.tolist() for group in groups] == [[5], [1], [0, 3], [2, 4]]
    assert [group.padding.width for group in groups] == [1, 3, 7, 40]


@pytest.mark.parametrize("exact_up_to", [0, 5])
def test_components_padded_together_or_apart_have_the_same_output_and_gradients(
    monkeypatch: pytest.MonkeyPatch, exact_up_to: int
) -> None:
    S, conv = ragged_operator(torch.float64, CPU, sizes=DIFFERENT), convolution()
    component, count = connected_components(S)
    x = torch.randn(S.num_nodes, 2, generator=generator(0), dtype=torch.float64).requires_grad_()
    shift = torch.zeros(S.num_nodes, dtype=torch.float64, requires_grad=True)
    options = {"component": component, "num_components": count, "exact_up_to": exact_up_to}
    outcomes = []
    for groups in (compression.component_groups, together):
        monkeypatch.setattr(compression, "component_groups", groups)
        y = conv(x, adaptive_spectrum(S.plus_diagonal(shift), 5, **options))
        outcomes.append((y, *torch.autograd.grad(y.square().sum(), [x, shift, *conv.parameters()])))
    torch.testing.assert_close(*outcomes)


def together(component: torch.Tensor, size: torch.Tensor, is_large: torch.Tensor) -> list[ComponentGroup]:
    """One group of all."""
    return [ComponentGroup(torch.arange(int(is_large.sum())), padding_of(component, len(size), keep=is_large))]


@pytest.mark.parametrize("sizes", [(3, 9, 1, 12), DIFFERENT])
def test_dense_ragged_and_single_graphs_give_the_same(sizes: tuple[int, ...]) -> None:
    conv = convolution()
    S = ragged_operator(torch.float64, CPU, sizes=sizes)
    component, count = connected_components(S)
    x = torch.randn(S.num_nodes, 2, generator=generator(0), dtype=torch.float64)
    ragged = conv(x, adaptive_spectrum(S, 5, component=component, num_components=count))
    padded = S.padded()
    x_padded = torch.zeros(*padded.shape[:-1], 2, dtype=x.dtype)
    x_padded[padded.mask] = x
    dense = conv(x_padded, adaptive_spectrum(padded, 5))[padded.mask]
    torch.testing.assert_close(ragged, dense)


def test_gradients_into_s_agree_with_finite_differences_where_a_component_is_symmetric() -> None:
    """Two equal paths and two isolated nodes: repeated eigenvalues everywhere, where (Q, T) has no derivative."""
    edges = torch.cat([path_edges(4), path_edges(4) + 4], 1)
    pattern = adjacency(edges, num_nodes=10, dtype=torch.float64)
    component, count = connected_components(pattern)
    conv = convolution()
    x = torch.randn(10, 2, generator=generator(0), dtype=torch.float64)
    pairs = torch.unique(torch.stack([edges.amin(0), edges.amax(0)]), dim=1, return_inverse=True)[1]

    def output(weights: torch.Tensor) -> torch.Tensor:
        S = normalized(adjacency(edges, weights[pairs], num_nodes=10))
        return conv(x, adaptive_spectrum(S, 5, component=component, num_components=count))

    weights = torch.ones(int(pairs.max()) + 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(output, (weights,))


def test_gradients_into_s_agree_with_finite_differences_through_lanczos() -> None:
    S = random_operator(9, torch.float64, CPU)
    conv = convolution()
    x = torch.randn(9, 2, generator=generator(0), dtype=torch.float64)
    start = torch.randn(9, generator=generator(1), dtype=torch.float64)
    shift = torch.zeros(9, dtype=torch.float64, requires_grad=True)

    def output(shift: torch.Tensor) -> torch.Tensor:
        return conv(x, adaptive_spectrum(S.plus_diagonal(shift), 4, start=start))

    assert torch.autograd.gradcheck(output, (shift,))


@pytest.mark.parametrize("exact_up_to", [0, 5, 100], ids=["all by Lanczos", "some exactly", "all exactly"])
def test_a_plan_made_once_gives_the_spectrum_of_every_operator_with_these_edges(exact_up_to: int) -> None:
    S = ragged_operator(torch.float64, CPU, sizes=(3, 9, 1, 12))
    component, count = connected_components(S)
    plan = component_plan(S, exact_up_to, component, count)
    options = {"exact_up_to": exact_up_to, "component": component, "num_components": count}
    x = torch.randn(S.num_nodes, 2, generator=generator(0), dtype=torch.float64)
    conv = convolution()
    for operator in (S, S.with_values(S.values * 0.5)):
        planned, fresh = (adaptive_spectrum(operator, 5, plan=which, **options) for which in (plan, None))
        assert forms(planned) == forms(fresh)
        assert all(torch.equal(a.matrix, b.matrix) for a, b in zip(planned.cores, fresh.cores, strict=True))
        assert torch.equal(conv(x, planned), conv(x, fresh))


def test_a_plan_without_components_takes_the_graph_as_one() -> None:
    S = random_operator(9, torch.float64, CPU)
    assert component_plan(S, 8).num_segments == 1
    assert component_plan(S, 9).inside is None


@pytest.mark.parametrize(("short", "num_long"), [([0, 1, 4], 2), ([2], 0), ([], 2)])
def test_tied_scales_are_equal_weights(short, num_long) -> None:
    S = ragged_operator(torch.float64, CPU, sizes=(3, 9, 1, 12))
    component, count = connected_components(S)
    spectrum = adaptive_spectrum(S, 5, component=component, num_components=count)
    kept = SpectralTridiagonalFilter(AnchoredFilter([3, 6], (8,))) if num_long else None
    tied = AdaLanczosConv(2, 3, kept, short, num_long, tied_scales=True).double()
    untied = AdaLanczosConv(2, 3, kept, short, num_long).double()
    num_scales = len(short) + num_long
    with torch.no_grad():
        untied.weight.copy_(tied.weight.expand(num_scales, -1, -1) / num_scales)
    x = torch.randn(S.num_nodes, 2, generator=generator(0), dtype=torch.float64)
    assert tied.weight.shape == (1, 2, 3)
    torch.testing.assert_close(tied(x, spectrum), untied(x, spectrum))


@pytest.mark.parametrize("exact_up_to", [0, 5])
def test_components_in_any_groups_and_dense_ones_have_the_same_leading_pairs(
    monkeypatch: pytest.MonkeyPatch, exact_up_to: int
) -> None:
    S, conv = ragged_operator(torch.float64, CPU, sizes=DIFFERENT), convolution()
    component, count = connected_components(S)
    x = torch.randn(S.num_nodes, 2, generator=generator(0), dtype=torch.float64)
    options = {"search_steps": 12, "exact_up_to": exact_up_to}
    by_component = {"component": component, "num_components": count}
    outcomes = []
    for groups in (compression.component_groups, together):
        monkeypatch.setattr(compression, "component_groups", groups)
        outcomes.append(conv(x, adaptive_spectrum(S, 5, **options, **by_component)))
    layout = padding_of(component, count)
    outcomes.append(layout.unpad(conv(layout.pad(x), adaptive_spectrum(S.padded(), 5, **options))))
    torch.testing.assert_close(outcomes[0], outcomes[1])
    torch.testing.assert_close(outcomes[0], outcomes[2])
    assert not torch.allclose(outcomes[0], conv(x, adaptive_spectrum(S, 5, exact_up_to=exact_up_to, **by_component)))


def test_a_search_is_refused_where_s_is_learned() -> None:
    S = random_operator(9, torch.float64, CPU)
    with pytest.raises(ValueError, match="search_steps needs an S of which nothing is learned"):
        adaptive_spectrum(S.with_values(S.values.clone().requires_grad_()), 4, search_steps=6)
