"""Lanczos on all of QM8 and on a million nodes."""

import pytest
import torch

from graph_builders import both_ways, generator, orthogonality_error
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.filters import spectral_filter
from lanczosnet.krylov import lanczos, matrix_function, ritz, start, tridiagonal_matrix
from real_graphs import molecules


@pytest.fixture(scope="module")
def qm8(qm8_folder):
    """The padded adjacency, its mask, and the number of distinct eigenvalues of every molecule's S."""
    pytest.importorskip("rdkit")
    matrix, mask = molecules(qm8_folder)
    dense = normalized(adjacency(matrix.double(), mask=mask)).dense()
    padding = torch.diag_embed((~mask).double())
    eigenvalues = torch.linalg.eigvalsh(dense - 3 * padding).flip(-1)  # padding at -3, below the spectrum
    both_real = mask[:, 1:] & mask[:, :-1]
    distinct = 1 + (((eigenvalues[:, :-1] - eigenvalues[:, 1:]) > 1e-6) & both_real).sum(1)
    return matrix, mask, distinct


@pytest.mark.slow
@pytest.mark.data
class TestMolecules:
    def test_there_are_21786_molecules_most_with_repeated_eigenvalues(self, qm8):
        _, mask, distinct = qm8
        assert len(mask) == 21_786
        assert mask.shape[1] == 26
        assert float((distinct < mask.sum(1)).double().mean()) == pytest.approx(0.860, abs=1e-3)

    def test_steps_equal_the_number_of_distinct_eigenvalues(self, qm8, device):
        matrix, mask, distinct = qm8
        S = normalized(adjacency(matrix.to(device, torch.float64), mask=mask.to(device)))
        result = lanczos(S, start.random(S, generator(0)), 26)
        assert torch.isfinite(result.basis).all()
        assert torch.equal(result.steps.cpu(), distinct)
        residual = S.dense() @ result.basis - result.basis @ tridiagonal_matrix(result)
        assert float(residual.abs().max()) < 1e-7  # an exactly invariant subspace, up to the breakdown tolerance

    def test_rounding_s_to_float32_splits_few_repeated_eigenvalues(self, qm8, device):
        """S itself is then another matrix; nothing decides exactly, and extra steps are harmless to the values."""
        matrix, mask, distinct = qm8
        S = normalized(adjacency(matrix.to(device), mask=mask.to(device)))
        result = lanczos(S, start.random(S, generator(0)), 26)
        assert torch.isfinite(result.basis).all()
        assert orthogonality_error(result.basis, result.steps) < 1e-6
        steps = result.steps.cpu()
        assert (steps >= distinct).all()
        assert float((steps == distinct).double().mean()) > 0.98

    def test_functions_are_right_in_float32(self, qm8, device):
        """Values, and gradients with respect to S, of powers up to 30 and of a network on them."""
        matrix, mask, _ = qm8
        S = normalized(adjacency(matrix[::70].to(device, torch.float64), mask=mask[::70].to(device))).dense()
        torch.manual_seed(0)
        response = spectral_filter("mlp", (1, 3, 5, 10, 20, 30)).to(device)
        weight = torch.randn(6, 26, 26, generator=generator(1)).to(device)
        found = []
        for dtype in (torch.float32, torch.float64):
            operator = S.to(dtype).requires_grad_()
            value = matrix_function(operator, response.to(dtype), dtype=dtype)
            (grad,) = torch.autograd.grad((value * weight.to(dtype)).sum(), operator)
            found.append((value.detach().double(), grad.double()))
        for single, double in zip(*found, strict=True):
            error = torch.linalg.vector_norm(single - double, dim=tuple(range(1, single.dim())))
            assert float((error / torch.linalg.vector_norm(double, dim=tuple(range(1, double.dim())))).max()) < 1e-4

    def test_restarting_reconstructs_every_molecule_that_fits(self, qm8, device):
        matrix, mask, _ = qm8
        S = normalized(adjacency(matrix.to(device), mask=mask.to(device)))
        result = lanczos(S, start.random(S, generator(0)), 20, on_breakdown="restart")
        Q, T = result.basis, tridiagonal_matrix(result)
        error = torch.linalg.matrix_norm(Q @ T @ Q.mT - S.dense())
        fits = S.mask.sum(1) <= 20
        assert float(fits.double().mean()) == pytest.approx(0.949, abs=1e-3)
        assert torch.equal(result.steps[fits], S.mask.sum(1)[fits])
        assert float(error[fits].max()) < 1e-5
        assert torch.isfinite(Q).all()


@pytest.fixture(scope="module")
def million():
    """S of a random graph with a million nodes and ten million edges, float32, and its degrees with self-loops."""
    edges = both_ways(torch.randint(1_000_000, (2, 10_000_000), generator=generator(0)))
    graph = adjacency(edges, num_nodes=1_000_000, validate=False)
    return normalized(graph, validate=False), graph.degree() + 1


def noise(S):
    return torch.randn(S.num_nodes, generator=generator(1)).to(S.device)


STARTS = {
    "random": lambda S, degree: start.random(S, generator(0)),
    "degree": lambda S, degree: degree,
    "nearly an eigenvector": lambda S, degree: degree.sqrt() * (1 + 1e-3 * noise(S)),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", STARTS)
@pytest.mark.parametrize("in_segments", [False, True], ids=["whole", "segments"])
def test_a_million_nodes_stay_orthogonal_in_float32(kind, in_segments, million, device):
    S, degree = (part.to(device) for part in million)
    segment = torch.zeros(S.num_nodes, dtype=torch.long, device=device) if in_segments else None
    result = lanczos(S, STARTS[kind](S, degree), 6 if in_segments else 20, segment=segment)
    assert result.basis.dtype == torch.float32
    gram = sum(block.double().mT @ block.double() for block in result.basis.split(100_000))
    off_diagonal = gram - torch.diag(gram.diagonal())
    assert float(off_diagonal.abs().max()) < 1e-5
    assert float((gram.diagonal() - 1).abs().max()) < 1e-6
    assert float(ritz(result).values.max()) <= 1 + 1e-6
