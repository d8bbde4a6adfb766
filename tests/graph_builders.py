"""Small graphs and matrices with known answers, shared by the tests."""

import math

import torch
from torch import Tensor

from lanczosnet.affinity import Operator, SparseOperator, adjacency, normalized

SIZES = (5, 1, 8, 3)


def tolerance(dtype: torch.dtype, factor: float = 64.0) -> float:
    """A multiple of the type's rounding error."""
    return factor * torch.finfo(dtype).eps


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def both_ways(edges: Tensor) -> Tensor:
    """`[2, edge]` with the reverse of every edge appended."""
    return torch.cat([edges, edges.flip(0)], dim=1)


def path_edges(num_nodes: int) -> Tensor:
    nodes = torch.arange(num_nodes)
    return both_ways(torch.stack([nodes[:-1], nodes[1:]]))


def complete_edges(num_nodes: int) -> Tensor:
    return (torch.ones(num_nodes, num_nodes) - torch.eye(num_nodes)).nonzero().T.contiguous()


def random_edges(num_nodes: int, seed: int = 0, *, mean_degree: float = 4.0) -> Tensor:
    """A connected symmetric graph without self-loops or duplicates: a random tree and some more edges."""
    source = generator(seed)
    child = torch.arange(1, max(num_nodes, 1))
    parent = (torch.rand(max(num_nodes - 1, 0), generator=source) * child).long()
    extra = max(int(num_nodes * (mean_degree - 2) / 2), 0)
    pairs = torch.randint(num_nodes, (2, extra), generator=source) if num_nodes else torch.zeros(2, 0, dtype=torch.long)
    pairs = torch.cat([torch.stack([child, parent]), pairs], dim=1)
    pairs = torch.stack([pairs.amin(0), pairs.amax(0)])[:, pairs[0] != pairs[1]]
    return both_ways(torch.unique(pairs, dim=1))


def random_weights(edge_index: Tensor, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Positive weights on the CPU, equal for an edge and its reverse."""
    lower, upper = edge_index.cpu().amin(0), edge_index.cpu().amax(0)
    _, pair = torch.unique(torch.stack([lower, upper]), dim=1, return_inverse=True)
    count = int(pair.max()) + 1 if pair.numel() else 0
    return (0.2 + torch.rand(count, generator=generator(seed), dtype=torch.float64))[pair].to(dtype)


def random_operator(num_nodes: int, dtype: torch.dtype, device: torch.device, seed: int = 0) -> SparseOperator:
    """S of a connected graph with random weights: all eigenvalues distinct."""
    edges = random_edges(num_nodes, seed)
    weights = random_weights(edges, seed, dtype)
    return normalized(adjacency(edges.to(device), weights.to(device), num_nodes=num_nodes))


def ragged_operator(
    dtype: torch.dtype, device: torch.device, sizes: tuple[int, ...] = SIZES, seed: int = 0
) -> SparseOperator:
    """S of several graphs side by side."""
    edges, weights, batch, first = [], [], [], 0
    for index, size in enumerate(sizes):
        own = random_edges(size, seed + index)
        edges.append(own + first)
        weights.append(random_weights(own, seed + index, dtype))
        batch.append(torch.full((size,), index))
        first += size
    return normalized(
        adjacency(
            torch.cat(edges, 1).to(device),
            torch.cat(weights).to(device),
            batch=torch.cat(batch).to(device),
            num_graphs=len(sizes),
        )
    )


def single_operators(operator: SparseOperator) -> list[SparseOperator]:
    """The graphs of a ragged operator, one by one."""
    dense = operator.dense()
    graphs = (torch.nonzero(operator.segment == index).squeeze(1) for index in range(operator.num_segments))
    blocks = (dense[nodes][:, nodes] for nodes in graphs)
    return [sparse_from_dense(block) for block in blocks]


def sparse_from_dense(matrix: Tensor) -> SparseOperator:
    edges = matrix.nonzero().T
    return adjacency(edges, matrix[edges[0], edges[1]], num_nodes=len(matrix))


def random_vector(operator: Operator, seed: int = 1) -> Tensor:
    vector = torch.randn(operator.shape[:-1], generator=generator(seed), dtype=torch.float64)
    return vector.to(operator.device, operator.dtype)


def matrix_with_spectrum(eigenvalues: Tensor, seed: int = 0) -> Tensor:
    """A symmetric float64 matrix with the given eigenvalues and random eigenvectors."""
    n = eigenvalues.shape[-1]
    Q = torch.linalg.qr(torch.randn(n, n, generator=generator(seed), dtype=torch.float64)).Q
    matrix = (Q * eigenvalues.double()) @ Q.mT
    return (matrix + matrix.mT) / 2


def expander_edges(num_nodes: int, degree: int, seed: int = 0) -> Tensor:
    """The union of degree / 2 random permutations: nearly regular, well connected, with a wide spectral gap."""
    source = generator(seed)
    nodes = torch.arange(num_nodes)
    images = [torch.randperm(num_nodes, generator=source) for _ in range(math.ceil(degree / 2))]
    return both_ways(torch.cat([torch.stack([nodes, image]) for image in images], dim=1))


def orthogonality_error(basis: Tensor, steps: Tensor | int | None = None) -> float:
    """The largest entry of Q^T Q - I, with zeros in place of ones past the steps taken."""
    basis = basis.double()
    gram = basis.mT @ basis
    places = torch.arange(basis.shape[-1], device=basis.device)
    alive = (
        torch.ones_like(places) if steps is None else places < torch.as_tensor(steps, device=basis.device)[..., None]
    )
    return float((gram - torch.diag_embed(alive.double().expand(gram.shape[:-1]))).abs().max())


def relative_error(value: Tensor, reference: Tensor) -> float:
    value, reference = value.detach().double(), reference.detach().double()
    return float((value - reference).norm() / reference.norm())


def assert_reproduced(result: Tensor, expected: Tensor) -> None:
    """The same numbers: to the bit on the CPU, up to the order of sums on a GPU (but never to half precision)."""
    if result.is_cuda:
        eps = torch.finfo(result.dtype).eps
        torch.testing.assert_close(result, expected, atol=64 * eps, rtol=64 * eps)
    else:
        assert torch.equal(result, expected)
