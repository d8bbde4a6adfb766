import pytest
import torch

from graph_builders import generator, random_edges
from lanczosnet.affinity import GraphKernel, adjacency, kernel_adjacency, normalized


def dense_kernel(x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    """exp(-|x_i - x_j|^2 / epsilon) on the edges, epsilon being the mean over them."""
    distance = (x[edges[0]] - x[edges[1]]).square().sum(-1)
    A = torch.zeros(len(x), len(x), dtype=x.dtype)
    A[edges[0], edges[1]] = torch.exp(-distance / distance.mean())
    return A


def test_equation_9_weighs_edges_by_the_distance_of_their_ends(dtype) -> None:
    edges = random_edges(9)
    x = torch.randn(9, 3, generator=generator(0), dtype=torch.float64).to(dtype)
    A = kernel_adjacency(adjacency(edges, dtype=dtype), x)
    torch.testing.assert_close(A.dense(), dense_kernel(x, edges))


def test_equation_9_each_graph_of_a_batch_has_its_own_bandwidth() -> None:
    first, second = random_edges(5, 0), random_edges(6, 1)
    x = torch.randn(11, 2, generator=generator(0)) * torch.tensor([1.0] * 5 + [100.0] * 6).unsqueeze(1)
    batch = torch.tensor([0] * 5 + [1] * 6)
    A = kernel_adjacency(adjacency(torch.cat([first, second + 5], 1), batch=batch), x).dense()
    torch.testing.assert_close(A[:5, :5], dense_kernel(x[:5], first))
    torch.testing.assert_close(A[5:, 5:], dense_kernel(x[5:], second))


def test_equation_9_is_one_everywhere_and_has_a_finite_gradient_when_all_points_coincide() -> None:
    edges = random_edges(6)
    x = torch.ones(6, 2, requires_grad=True)
    A = kernel_adjacency(adjacency(edges), x)
    assert A.dense()[edges[0], edges[1]].tolist() == [1.0] * edges.shape[1]
    normalized(A).dense().square().sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("num_edges", [0, 1])
def test_equation_9_admits_graphs_with_no_edge_or_a_single_one(num_edges: int) -> None:
    edges = torch.tensor([[0, 1], [1, 0]])[:, : 2 * num_edges]
    x = torch.randn(3, 2, requires_grad=True)
    S = normalized(kernel_adjacency(adjacency(edges, num_nodes=3), x))
    S.dense().sum().backward()
    assert torch.isfinite(x.grad).all()


def test_equation_9_passes_gradients_to_the_features_through_kernel_and_bandwidth() -> None:
    pattern = adjacency(random_edges(6), dtype=torch.float64)
    x = torch.randn(6, 2, generator=generator(0), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: kernel_adjacency(pattern, x).dense(), (x,))


def test_the_learned_kernel_compares_what_its_mlp_makes_of_the_features() -> None:
    torch.manual_seed(0)
    edges, x = random_edges(6), torch.randn(6, 4)
    kernel = GraphKernel(4, (8, 3))
    pattern = adjacency(edges)
    torch.testing.assert_close(kernel(pattern, x).dense(), dense_kernel(kernel.layers(x), edges))
    assert kernel.layers(x).shape == (6, 3)
    assert GraphKernel(4)(pattern, x).dense().equal(kernel_adjacency(pattern, x).dense())
