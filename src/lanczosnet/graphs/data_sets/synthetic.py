"""Graphs whose spectrum is known, for tests, examples and diffusion maps.

`adjacency_eigenvalues` are exact and descending; those of the block model belong to the expected adjacency matrix, and
`manifold_eigenvalues` of the Swiss roll to the Laplacian of the rectangle it is rolled from (Neumann boundary).
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from lanczosnet.graphs.errors import DataError
from lanczosnet.graphs.knn import knn_graph


def path(*, n: int = 100) -> Data:
    """Nodes in a row; adjacency eigenvalues 2 cos(pi j / (n + 1))."""
    _at_least(n, 1, "a path")
    steps = torch.arange(n - 1)
    eigenvalues = 2 * torch.cos(math.pi * torch.arange(1, n + 1, dtype=torch.float64) / (n + 1))
    return _known("path", torch.stack([steps, steps + 1]), n, eigenvalues)


def ring(*, n: int = 100) -> Data:
    """Nodes in a circle; adjacency eigenvalues 2 cos(2 pi j / n)."""
    _at_least(n, 3, "a ring")
    steps = torch.arange(n)
    eigenvalues = 2 * torch.cos(2 * math.pi * torch.arange(n, dtype=torch.float64) / n)
    return _known("ring", torch.stack([steps, (steps + 1) % n]), n, eigenvalues)


def clique(*, n: int = 20) -> Data:
    """Every node joined to every other; adjacency eigenvalues n - 1 once and -1 otherwise."""
    _at_least(n, 2, "a clique")
    eigenvalues = torch.full((n,), -1.0, dtype=torch.float64)
    eigenvalues[0] = n - 1
    return _known("clique", torch.triu_indices(n, n, offset=1), n, eigenvalues)


def block_model(
    *, sizes: Sequence[int] = (50, 50, 50), inside: float = 0.3, between: float = 0.02, seed: int = 0
) -> Data:
    """Stochastic block model: edges with one probability inside blocks and another between them; `y` is the block."""
    if not sizes or min(sizes) < 1 or not 0 <= between <= 1 or not 0 <= inside <= 1:
        raise DataError(f"a block model needs blocks and probabilities, got {sizes=}, {inside=}, {between=}")
    counts = torch.tensor(sizes)
    y = torch.arange(len(sizes)).repeat_interleave(counts)
    n = len(y)
    probability = torch.where(y[:, None] == y, inside, between)
    chance = torch.rand(n, n, generator=torch.Generator().manual_seed(seed))
    edge_index = to_undirected((chance < probability).triu(diagonal=1).nonzero().t(), num_nodes=n)
    # E[A] + inside * I has rank `blocks`; its eigenvalues are those of sqrt(C) P sqrt(C), the diagonal shifts them all.
    rates = torch.full((len(sizes),) * 2, between, dtype=torch.float64).fill_diagonal_(inside)
    root = counts.double().sqrt()
    expected = torch.zeros(n, dtype=torch.float64)
    expected[: len(sizes)] = torch.linalg.eigvalsh(root[:, None] * rates * root)
    eigenvalues = expected.sort(descending=True).values - inside
    return Data(
        x=torch.ones(n, 1), edge_index=edge_index, y=y, expected_adjacency_eigenvalues=eigenvalues, name="block-model"
    )


def swiss_roll(*, n: int = 1000, k: int = 10, seed: int = 0) -> Data:
    """Points drawn uniformly from a rolled-up rectangle, joined to their `k` nearest neighbours.

    `pos` holds the points, `coordinates` their place on the unrolled rectangle (arc length and width), `y` the arc
    length.
    """
    _at_least(n, k + 1, "a Swiss roll of k neighbours")
    low, high, width = 1.5 * math.pi, 4.5 * math.pi, 21.0
    chance = torch.rand(2, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    table = torch.linspace(low, high, 4097, dtype=torch.float64)
    arc = _arc_length(table) - _arc_length(table[:1])
    length = arc[-1] * chance[0]
    # Uniform on the sheet means uniform in arc length; the angle is found by interpolating its inverse.
    right = torch.searchsorted(arc, length).clamp(1, len(table) - 1)
    share = (length - arc[right - 1]) / (arc[right] - arc[right - 1])
    angle = table[right - 1] + share * (table[right] - table[right - 1])
    pos = torch.stack([angle * angle.cos(), width * chance[1], angle * angle.sin()], dim=1).float()
    modes = torch.cartesian_prod(torch.arange(20.0).double() / arc[-1], torch.arange(20.0).double() / width)
    return Data(
        x=pos,
        pos=pos,
        edge_index=knn_graph(pos, k),
        y=length.float(),
        coordinates=torch.stack([length, width * chance[1]], dim=1).float(),
        manifold_eigenvalues=(math.pi * modes).square().sum(dim=1).sort().values[:20],
        name="swiss-roll",
    )


def _arc_length(angle: Tensor) -> Tensor:
    """Of the spiral r = angle, from the origin."""
    return (angle * (1 + angle**2).sqrt() + angle.asinh()) / 2


def _known(name: str, edges: Tensor, n: int, eigenvalues: Tensor) -> Data:
    ordered = eigenvalues.sort(descending=True).values
    edge_index = to_undirected(edges, num_nodes=n)
    return Data(x=torch.ones(n, 1), edge_index=edge_index, adjacency_eigenvalues=ordered, name=name)


def _at_least(n: int, least: int, what: str) -> None:
    if n < least:
        raise DataError(f"{what} needs at least {least} nodes, got {n}")
