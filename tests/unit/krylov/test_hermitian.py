"""Complex Lanczos on the real form, against dense complex algebra in float64."""

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from lanczosnet.affinity import adjacency, connected_components, hermitian
from lanczosnet.graphs.edges import with_usable_edges
from lanczosnet.krylov import hermitian_ritz_pairs, lanczos, tridiagonal_matrix


def graph(num_nodes: int = 40, density: float = 0.1) -> Data:
    generator = torch.Generator().manual_seed(1)
    edges = (torch.rand(num_nodes, num_nodes, generator=generator) < density).fill_diagonal_(False).nonzero().T
    weight = torch.rand(edges.shape[1], generator=generator, dtype=torch.float64) + 0.5
    return with_usable_edges(Data(edge_index=edges, edge_weight=weight, num_nodes=num_nodes))


def as_complex(S) -> Tensor:
    matrix, n = S.dense(), S.num_nodes // 2
    return torch.complex(matrix[:n, :n], matrix[n:, :n])


def complex_lanczos(H: Tensor, steps: int) -> Tensor:
    """T of the textbook's iteration on complex vectors."""
    vectors = [torch.ones(len(H), dtype=H.dtype) / len(H) ** 0.5]
    T = torch.zeros(steps, steps, dtype=torch.float64)
    for j in range(steps):
        residual = H @ vectors[j]
        T[j, j] = (vectors[j].conj() @ residual).real
        for _ in range(2):
            Q = torch.stack(vectors, 1)
            residual = residual - Q @ (Q.conj().T @ residual)
        if j + 1 < steps:
            T[j, j + 1] = T[j + 1, j] = residual.norm()
        vectors.append(residual / residual.norm())
    return T


def start(S) -> Tensor:
    return torch.cat([torch.ones(S.num_nodes // 2), torch.zeros(S.num_nodes // 2)]).double()


def test_the_steps_are_those_of_complex_lanczos() -> None:
    S = hermitian(graph(), 0.2)
    found = lanczos(S, start(S), 25)
    torch.testing.assert_close(tridiagonal_matrix(found), complex_lanczos(as_complex(S), 25), atol=1e-12, rtol=0)
    Q = torch.complex(*found.basis.chunk(2))
    torch.testing.assert_close(Q.conj().T @ Q, torch.eye(25, dtype=Q.dtype), atol=1e-13, rtol=0)


def test_converged_pairs_do_not_come_again() -> None:
    """In real arithmetic alone rounding would find i times a converged vector."""
    data = graph(60, 0.2)
    S = hermitian(data, 0.25)
    pairs = hermitian_ritz_pairs(S, 60, connected_components(adjacency(data)), exact_up_to=0)
    wanted = torch.linalg.eigvalsh(as_complex(S)).flip(0)
    torch.testing.assert_close(pairs.values[0, ::2], wanted, atol=1e-12, rtol=0)
    assert pairs.rank.tolist() == [120]


@pytest.mark.parametrize("exact_up_to", [0, None])
def test_as_many_pairs_as_nodes_are_all_of_s(exact_up_to: int | None) -> None:
    data = graph(50, 0.03)  # several components
    S, components = hermitian(data, 0.25), connected_components(adjacency(data))
    assert components[1] >= 3
    pairs = hermitian_ritz_pairs(S, 50, components, exact_up_to=exact_up_to)
    low_rank = (pairs.vectors * pairs.values[pairs.segment]) @ pairs.vectors.T
    low_rank = low_rank * (pairs.segment.unsqueeze(0) == pairs.segment.unsqueeze(1))
    torch.testing.assert_close(low_rank, S.dense(), atol=1e-12, rtol=0)


def test_few_pairs_are_orthonormal_and_near_the_ends_of_the_spectrum() -> None:
    data = graph()
    S = hermitian(data, 0.25)
    pairs = hermitian_ritz_pairs(S, 12, connected_components(adjacency(data)), search_steps=30)
    torch.testing.assert_close(pairs.vectors.T @ pairs.vectors, torch.eye(24).double(), atol=1e-13, rtol=0)
    values = torch.linalg.eigvalsh(as_complex(S))
    torch.testing.assert_close(pairs.values[0, 0], values[-1], atol=1e-8, rtol=0)


def test_lanczos_on_the_real_form_has_a_gradient() -> None:
    S = hermitian(graph(6, 0.5), 0.2)

    def coefficients(entries: Tensor) -> Tensor:
        both = S.with_values((entries + entries[order]) / 2)  # symmetric
        found = lanczos(both, start(S), 4)
        return torch.cat([found.diagonal, found.off_diagonal])

    row, column = S.row.long(), S.column.long()
    order = (column * S.num_nodes + row).argsort()
    torch.autograd.gradcheck(coefficients, S.values.clone().requires_grad_(), fast_mode=True)
