"""Krylov spaces that grow in batches and restart."""

import pytest
import torch

from graph_builders import (
    complete_edges,
    expander_edges,
    matrix_with_spectrum,
    orthogonality_error,
    path_edges,
    random_vector,
    sparse_from_dense,
    tolerance,
)
from lanczosnet.affinity import adjacency, normalized
from lanczosnet.krylov import lanczos, leading, ritz, space, start
from lanczosnet.krylov.large_components import krylov_space, searched


def expander(num_nodes, dtype, device, degree=6):
    return normalized(adjacency(expander_edges(num_nodes, degree).to(device), dtype=dtype, num_nodes=num_nodes))


def road(num_nodes, dtype, device):
    """A ladder with missing rungs: its spectrum is dense at 1, and long scales need many pairs."""
    half = num_nodes // 2
    rail = path_edges(half)
    rung = torch.arange(0, half, 3)
    rungs = torch.cat([torch.stack([rung, rung + half]), torch.stack([rung + half, rung])], 1)
    edges = torch.cat([rail, rail + half, rungs], 1).to(device)
    return normalized(adjacency(edges, dtype=dtype, num_nodes=num_nodes))


def grown(operator, num_steps, vector=None, capacity=None):
    vector = random_vector(operator) if vector is None else vector
    # Many steps for the type: what is iterated is large, and float32 stays float32.
    found = krylov_space(operator, vector, 10**6, capacity or num_steps)
    found.extend(num_steps)
    return found


def relation_error(operator, found):
    """max ||S Q - Q H - beta q e^T|| over the columns."""
    Q, H = found.block[: found.size].double(), found.projected()
    left = operator.to(torch.float64).product(Q.mT.contiguous()).mT - H @ Q
    left[-1] -= found.off_diagonal[found.size - 1] * found.block[found.size].double()
    return left.norm(dim=1).max().item()


@pytest.mark.parametrize("graph", [expander, road])
def test_hundreds_of_steps_keep_the_basis_orthonormal(graph, dtype, device):
    S = graph(3000, dtype, device)
    found = grown(S, 300)
    assert found.size == 300
    assert orthogonality_error(found.block.mT.double(), 301) < (1e-5 if dtype == torch.float32 else 1e-13)
    assert relation_error(S, found) < tolerance(dtype)


def test_most_steps_are_orthogonalized_in_batches(device, monkeypatch):
    kept = []
    clean = space.KrylovSpace._orthogonalize
    monkeypatch.setattr(space.KrylovSpace, "_orthogonalize", lambda self, n: kept.append(clean(self, n)) or kept[-1])
    grown(expander(3000, torch.float32, device), 300)
    assert sum(kept) >= 290
    assert len(kept) < 50


@pytest.mark.parametrize("kind", ["random", "almost an eigenvector"])
@pytest.mark.parametrize("num_steps", [1, 2, 3, 20, 70])
def test_batches_find_what_the_plain_iteration_finds(num_steps, kind, dtype, device):
    S = expander(600, dtype, device)
    vector = random_vector(S)
    if kind == "almost an eigenvector":
        vector = S.degree().clamp(min=0.5).sqrt() + 1e-3 * random_vector(S)
        for _ in range(40):
            vector = S @ vector
        vector = vector / vector.norm() + 1e-4 * random_vector(S)
    found, plain = grown(S, num_steps, vector), lanczos(S, vector, num_steps)
    values = torch.linalg.eigvalsh(found.projected()).flip(0)
    torch.testing.assert_close(values.to(dtype), ritz(plain).values, atol=tolerance(dtype, 1024), rtol=0)
    assert orthogonality_error(found.block.mT.double(), num_steps + 1) < tolerance(dtype)
    assert relation_error(S, found) < tolerance(dtype, 1024)


@pytest.mark.parametrize("distinct", [1, 2, 5])
def test_an_exhausted_space_ends(distinct, dtype, device):
    """As many vectors as distinct eigenvalues, whatever the number of steps."""
    eigenvalues = torch.linspace(-1, 1, distinct, dtype=torch.float64).repeat(90 // distinct + 1)[:90]
    S = sparse_from_dense(matrix_with_spectrum(eigenvalues).to(device))
    found = grown(S, 80, random_vector(S))
    assert found.is_exhausted
    assert found.size == distinct
    values = torch.linalg.eigvalsh(found.projected())
    torch.testing.assert_close(values, eigenvalues.unique().to(device), atol=1e-10, rtol=0)


def test_an_eigenvector_ends_at_once(dtype, device):
    S = normalized(adjacency(complete_edges(50).to(device), dtype=dtype))
    found = grown(S, 10, start.ones(S))
    assert (found.size, found.is_exhausted) == (1, True)


def test_growing_in_stages_is_growing_at_once(dtype, device):
    S = expander(600, dtype, device)
    staged, whole = grown(S, 20), grown(S, 90)
    for size in (21, 50, 90):
        staged.reserve(size)
        staged.extend(size)
    torch.testing.assert_close(staged.diagonal, whole.diagonal, atol=tolerance(dtype, 1024), rtol=0)
    torch.testing.assert_close(
        torch.linalg.eigvalsh(staged.projected()),
        torch.linalg.eigvalsh(whole.projected()),
        atol=tolerance(dtype),
        rtol=0,
    )


@pytest.mark.parametrize("graph", [expander, road])
def test_a_search_with_restarts_is_as_good_as_one_without(graph, dtype, device):
    S = graph(2000, dtype, device)
    values, vectors = searched(grown(S, 0, capacity=40), 20, 200)
    full = leading(ritz(lanczos(S, random_vector(S), 200)), 20)
    assert values.square().sum() > 0.99 * full.values.double().square().sum()
    assert orthogonality_error(vectors.mT.double(), 20) < (1e-5 if dtype == torch.float32 else 1e-12)
    image = S.product(vectors.mT.contiguous())
    torch.testing.assert_close(
        (vectors.mT * image).sum(0), values.to(dtype), atol=tolerance(dtype), rtol=0
    )  # Rayleigh quotients
    assert (values.diff() <= 0).all()


def test_restarts_converge_to_the_leading_eigenpairs(device):
    S = expander(300, torch.float64, device)
    values, vectors = searched(grown(S, 0, capacity=24), 4, 600)
    exact = torch.linalg.eigvalsh(S.dense())
    exact = exact[exact.abs().argsort(descending=True)[:4]].sort(descending=True).values
    torch.testing.assert_close(values, exact, atol=1e-6, rtol=0)
    residual = S.product(vectors.mT.contiguous()) - vectors.mT * values
    assert residual.norm(dim=0).max() < 1e-3


def test_a_search_holds_no_more_vectors_than_it_was_given(device):
    found = grown(expander(600, torch.float32, device), 0, capacity=40)
    searched(found, 20, 240)
    assert len(found.block) == 41


def test_a_compressed_space_goes_on(dtype, device):
    S = expander(600, dtype, device)
    found = grown(S, 30, capacity=60)
    found.compress(10)
    assert found.size == 10
    found.extend(45)
    assert orthogonality_error(found.block[:46].mT.double(), 46) < tolerance(dtype)
    assert relation_error(S, found) < tolerance(dtype)


def test_lanczos_itself_takes_batches_for_hundreds_of_steps(dtype, device, monkeypatch):
    S = expander(600, dtype, device)
    vector = random_vector(S)
    plain = lanczos(S, vector, 80, working_dtype=dtype)
    monkeypatch.setattr(space, "SMALL_GRAPH", 0)
    monkeypatch.setenv("LANCZOSNET_BACKEND", "reference")
    batched = lanczos(S, vector, 80, working_dtype=dtype)
    assert int(batched.steps) == 80
    assert not batched.diagonal.equal(plain.diagonal)  # another order of additions
    torch.testing.assert_close(ritz(batched).values, ritz(plain).values, atol=tolerance(dtype, 1024), rtol=0)
    assert orthogonality_error(batched.basis.double(), 80) < tolerance(dtype)


def test_batches_end_with_zeros_after_a_breakdown(device, monkeypatch):
    monkeypatch.setattr(space, "SMALL_GRAPH", 0)
    monkeypatch.setenv("LANCZOSNET_BACKEND", "reference")
    S = sparse_from_dense(matrix_with_spectrum(torch.tensor([1.0, 0.5, -0.5] * 30)).to(device))
    result = lanczos(S, random_vector(S), 70)
    assert int(result.steps) == 3
    assert not result.basis[:, 3:].any()
    assert not result.diagonal[3:].any()
    assert not result.off_diagonal[2:].any()


def test_the_gradient_goes_through_batches(device, monkeypatch):
    S = expander(300, torch.float64, device)
    gradients = []
    for bound in (2**15, 0):
        monkeypatch.setattr(space, "SMALL_GRAPH", bound)
        values = S.values.clone().requires_grad_()
        result = lanczos(S.with_values(values), random_vector(S), 66)
        gradients.append(torch.autograd.grad(result.diagonal[:10].square().sum(), values)[0])
    torch.testing.assert_close(*gradients, atol=1e-9, rtol=1e-6)
