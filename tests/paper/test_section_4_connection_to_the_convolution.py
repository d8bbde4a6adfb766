import numpy as np
import torch

from graph_builders import generator, random_edges
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.diffusion_maps import diffusion_map, right_eigenvectors
from lanczosnet.layers import LanczosConv


def test_section_4_the_convolution_with_the_fixed_filter_projects_onto_the_diffusion_map() -> None:
    """V R^t V^T X = D^1/2 Phi_t (U^T X), with Phi_t the diffusion map of the same graph at time t."""
    edges, t = random_edges(9), 5
    X = torch.randn(9, 2, generator=generator(0), dtype=torch.float64)
    conv = LanczosConv(2, 2, [], [t], num_steps=9, spectral_filter="power", bias=False).double()
    torch.nn.init.eye_(conv.weight.data[0])
    convolved = conv(X, edges, torch.ones(edges.shape[1], dtype=torch.float64))

    A = adjacency(edges, dtype=torch.float64)
    degree = A.degree().numpy() + 1.0
    eigenvalues, U = np.linalg.eigh(normalized(A).dense().numpy())
    Phi = diffusion_map(eigenvalues, right_eigenvectors(U, degree), t)
    projected = np.sqrt(degree)[:, None] * (Phi @ (U.T @ X.numpy()))
    np.testing.assert_allclose(convolved.detach().numpy(), projected, atol=1e-12)
