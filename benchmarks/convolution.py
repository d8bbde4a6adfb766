"""LanczosConv against the textbook form and PyG's convolutions: `python benchmarks/convolution.py`; one thread.

The textbook form builds one node x node filter per scale and multiplies it with the signal, as the paper's code does.
"""

import argparse
from collections.abc import Callable

import torch
from lanczos import random_graph
from measure import best_times, peak_memory, show, verdict
from torch import Tensor, nn
from torch_geometric.nn import ChebConv, GCNConv

from lanczosnet.affinity import DenseOperator, Operator, SparseOperator
from lanczosnet.baselines.cheby_net import ScaledChebConv
from lanczosnet.filters import fourier, spectral_basis
from lanczosnet.krylov import RitzPairs, component_ritz_pairs, lanczos, ritz, start
from lanczosnet.layers import GraphSpectrum, LanczosConv

STEPS = 20
SCALES = [1, 2, 3, 5, 7, 10, 20, 30]


class TextbookConv(nn.Module):
    """The long scales of the same convolution with the same parameters; filters and blocks are all formed."""

    def __init__(self, conv: LanczosConv) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, x: Tensor, pairs: RitzPairs) -> Tensor:
        V, response = pairs.vectors, self.conv.filter(pairs.values)
        blocks = [((V * part.unsqueeze(-2)) @ V.mT) @ x for part in response.unbind(-1)]
        return torch.cat(blocks, -1) @ self.conv.weight.flatten(0, 1) + self.conv.bias


def step(forward: object, x: Tensor, parameters: list[Tensor]) -> None:
    """Forward and backward, as training does it."""
    torch.autograd.grad(forward(x).square().mean(), [x, *parameters])


def molecules(count: int = 64, width: int = 26) -> tuple[DenseOperator, Tensor]:
    """A padded batch of random trees with a few rings, of 8 to 26 nodes as in QM8, and its mask."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.zeros(count, width, width)
    sizes = torch.randint(10, 23, (count,), generator=generator)
    sizes[0] = width
    for graph, size in enumerate(sizes.tolist()):
        for node in range(1, size):
            other = int(torch.randint(max(node - 3, 0), node, (1,), generator=generator))
            matrix[graph, node, other] = matrix[graph, other, node] = 1.0
    mask = torch.arange(width) < sizes.unsqueeze(1)
    matrix = matrix + torch.diag_embed(mask.float())
    scale = matrix.sum(-1).clamp(min=1.0).rsqrt()
    return DenseOperator(scale.unsqueeze(-1) * matrix * scale.unsqueeze(-2), mask=mask), mask


def pairs_of(S: Operator) -> RitzPairs:
    return ritz(lanczos(S, start.random(S, torch.Generator().manual_seed(0)), STEPS))


def on_molecules() -> None:
    S, mask = molecules()
    pairs = pairs_of(S)
    spectrum = GraphSpectrum(S, spectral_basis(pairs))
    torch.manual_seed(0)
    conv = LanczosConv(128, 128, [], SCALES, STEPS, spectral_filter="mlp")
    textbook = TextbookConv(conv)
    x = (torch.randn(*mask.shape, 128) * mask.unsqueeze(-1)).requires_grad_()
    torch.testing.assert_close(conv.convolve(x, spectrum), textbook(x, pairs), atol=1e-4, rtol=1e-3)
    parameters = list(conv.parameters())
    times = best_times(
        {
            "ours": lambda: step(lambda x: conv.convolve(x, spectrum), x, parameters),
            "textbook": lambda: step(lambda x: textbook(x, pairs), x, parameters),
        },
        repeats=15,
        calls=2,
    )
    ratio = verdict(times["textbook"] / times["ours"], 1.8)
    title = "64 molecules, width 128, eight long scales, forward + backward"
    show(title, ["", "textbook / ours"], [["time", ratio]])


def on_large_graph(num_nodes: int) -> None:
    S = random_graph(num_nodes, 5 * num_nodes)
    pairs = pairs_of(S)
    spectrum = GraphSpectrum(S, spectral_basis(pairs))
    torch.manual_seed(0)
    conv = LanczosConv(64, 64, [], SCALES, STEPS)
    x = torch.randn(num_nodes, 64, requires_grad=True)

    def ours() -> None:
        step(lambda x: conv.convolve(x, spectrum), x, list(conv.parameters()))

    # Eight scales of the textbook form would need more memory than most machines have: measure few, continue linearly.
    def textbook(num_scales: int) -> Callable[[], None]:
        few = TextbookConv(LanczosConv(64, 64, [], SCALES[:num_scales], STEPS))
        return lambda: step(lambda x: few(x, pairs), x, list(few.parameters()))

    one, two = peak_memory(textbook(1)), peak_memory(textbook(2))
    space = verdict((one + (len(SCALES) - 1) * (two - one)) / peak_memory(ours), 100)
    times = best_times({"ours": ours}, repeats=5) | best_times({"textbook": textbook(1)}, repeats=1)
    time = verdict(len(SCALES) * times["textbook"] / times["ours"], 1000)
    show(
        f"{num_nodes:,} nodes, {len(S.values):,} entries, width 64, eight long scales, forward + backward",
        ["", "textbook / ours"],
        [["time (measured on one scale)", time], ["peak memory (measured on one and two scales)", space]],
    )
    against_pyg(S, x)
    products_with_vectors(component_ritz_pairs(S, STEPS), x)


def against_pyg(S: SparseOperator, x: Tensor) -> None:
    """Seven sparse products each for ours and for ChebConv; one for GCNConv."""
    spectrum = GraphSpectrum(S, spectral_basis(pairs_of(S)))
    edges = torch.stack([S.row, S.column]).long()
    edges = edges[:, edges[0] != edges[1]]
    conv = LanczosConv(64, 64, [1, 2, 5, 7], [10, 20, 30], STEPS)
    cheb, gcn = ChebConv(64, 64, K=8), GCNConv(64, 64, cached=True)
    times = best_times(
        {
            "ours": lambda: step(lambda x: conv.convolve(x, spectrum), x, list(conv.parameters())),
            "ChebConv": lambda: step(lambda x: cheb(x, edges), x, list(cheb.parameters())),
            "GCNConv": lambda: step(lambda x: gcn(x, edges), x, list(gcn.parameters())),
        },
        repeats=5,
    )
    rows = [
        ["ChebConv, as many sparse products", verdict(times["ours"] / times["ChebConv"], 3, at_most=True)],
        ["GCNConv, cached, one sparse product", f"{times['ours'] / times['GCNConv']:.2f}"],
    ]
    show("The same graph, short scales 1 2 5 7 and long scales 10 20 30", ["", "ours / PyG's, time"], rows)


def products_with_vectors(pairs: RitzPairs, x: Tensor) -> None:
    """V R V^T X with V as the dense block that it is, and as one sparse matrix."""
    bases = {"dense": spectral_basis(pairs)}
    largest, fourier.LARGE = fourier.LARGE, len(x) + 1
    bases["sparse"] = spectral_basis(pairs)
    fourier.LARGE = largest

    def product(basis: fourier.SpectralBasis) -> Callable[[], None]:
        return lambda: step(lambda x: basis.lift(basis.values.unsqueeze(-1) * basis.project(x)), x, [])

    times = best_times({name: product(basis) for name, basis in bases.items()}, repeats=9)
    ratio = f"{times['sparse'] / times['dense']:.2f}"
    show("The same graph, products with its Ritz vectors alone", ["", "one sparse matrix / ours"], [["time", ratio]])


def on_many_words(num_nodes: int, num_words: int) -> None:
    """ChebyNet's first convolution, 64 outputs of many inputs that need no gradient, as on a citation network."""
    S = random_graph(num_nodes, 2 * num_nodes)
    edges, weight = torch.stack([S.row, S.column]).long(), S.values
    conv = ScaledChebConv(num_words, 64, K=6)
    x = torch.rand(num_nodes, num_words)

    def trained(forward: Callable[..., Tensor]) -> Callable[[], object]:
        return lambda: torch.autograd.grad(forward(conv, x, edges, weight).square().mean(), list(conv.parameters()))

    times = best_times(
        {"ours": trained(ScaledChebConv.forward), "PyG's": trained(ChebConv.forward)},
        repeats=3,
    )
    ratio = verdict(times["PyG's"] / times["ours"], 2)
    title = f"ChebConv of {num_words:,} inputs and 64 outputs on {num_nodes:,} nodes, forward + backward"
    show(title, ["", "PyG's / ours"], [["time", ratio]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small graph: a rehearsal, not a measurement")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    on_molecules()
    on_large_graph(2_000 if arguments.quick else 20_000)
    on_many_words(500 if arguments.quick else 3_327, 3_703)


if __name__ == "__main__":
    main()
