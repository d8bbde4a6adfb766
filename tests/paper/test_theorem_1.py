"""Theorem 1, its misprint, and the term that its proof drops.

The product in the theorem is printed with the index j throughout, where the lemma behind it has i: as printed, the
right-hand side is no bound. The proof starts from S Q = Q T, which holds only at breakdown: in truth
S Q = Q T + beta_K q e^T, and ||S - Q T Q^T||^2 = ||S (I - Q Q^T)||^2 + beta_K^2, of which the theorem bounds the first
part.
"""

import math

import pytest
import torch

from graph_builders import complete_edges, matrix_with_spectrum, random_operator, random_vector
from lanczosnet.affinity import DenseOperator, adjacency, normalized
from lanczosnet.krylov import error_bound, lanczos

SPECTRA = {
    "fast decay": 0.7 ** torch.arange(30.0, dtype=torch.float64),
    "few large": torch.cat([torch.tensor([1.0, 0.8, 0.6, -0.5]), torch.linspace(-0.01, 0.01, 26)]).double(),
    "uniform": torch.linspace(-1, 1, 30, dtype=torch.float64),
}


def report_for(spectrum, num_steps, dtype, device, seed=1):
    S = DenseOperator(matrix_with_spectrum(SPECTRA[spectrum]).to(device, dtype))
    result = lanczos(S, random_vector(S, seed), num_steps)
    return S, result, error_bound(S, result)


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("num_steps", [3, 6, 12])
def test_the_error_splits_into_projection_and_residual(spectrum, num_steps, dtype, device):
    S, result, report = report_for(spectrum, num_steps, dtype, device)
    Q = result.basis.double()
    T = Q.mT @ S.dense().double() @ Q
    assert report.error == pytest.approx(float(torch.linalg.matrix_norm(S.dense().double() - Q @ T @ Q.mT)), rel=1e-4)
    squares = report.projection_error**2 + report.residual**2
    assert report.error**2 == pytest.approx(squares, rel=1e3 * torch.finfo(dtype).eps, abs=1e-10)
    assert report.residual == pytest.approx(float(result.off_diagonal[-1]))


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("num_steps", [3, 6, 12, 20])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_bound_holds_for_the_projection_error(spectrum, num_steps, seed, dtype, device):
    *_, report = report_for(spectrum, num_steps, dtype, device, seed)
    assert report.projection_error <= report.bound * (1 + 1e-5)
    assert report.error <= math.hypot(report.bound, report.residual) * (1 + 1e-5)


def chebyshev(degree, x):
    before, now = 1.0, x
    for _ in range(degree - 1):
        before, now = now, 2 * x * now - before
    return now if degree else 1.0


def right_hand_side(S, v, K, as_printed):
    """Theorem 1 at its best j, written out; the product runs up to j as printed, or up to i as in the lemma."""
    eigenvalues, U = torch.linalg.eigh(S.dense().cpu())
    lam, overlap = eigenvalues.flip(0).tolist(), U.flip(1).T @ v.cpu()
    bounds = []
    for j in range(2, min(len(lam), K)):
        total = sum(value**2 for value in lam[j:])
        for i in range(1, j + 1):
            last = j if as_printed else i
            growth = math.prod((lam[k] - lam[-1]) / (lam[k] - lam[last - 1]) for k in range(last - 1))
            sine = math.sqrt(max(0.0, 1.0 - float(overlap[:i].square().sum())))
            gamma = (lam[i - 1] - lam[i]) / (lam[i] - lam[-1])
            total += (lam[i - 1] * sine * growth / (abs(overlap[i - 1]) * chebyshev(K - i, 1 + 2 * gamma))) ** 2
        bounds.append(math.sqrt(total))
    return min(bounds)


def test_the_bound_is_the_theorem_with_the_lemmas_product(device):
    S, result, report = report_for("fast decay", 6, torch.float64, device)
    assert report.bound == pytest.approx(right_hand_side(S, result.basis[:, 0], 6, as_printed=False), rel=1e-6)


def test_as_printed_the_theorem_is_false(device):
    """Two leading eigenvalues close together: the printed product misses what their closeness costs."""
    spectrum = torch.tensor([0.4789, 0.4323, 0.0173, 0.0026, -0.0078], dtype=torch.float64, device=device)
    S = DenseOperator(torch.diag(spectrum))
    v = torch.tensor([-8.7, 0.0085, -0.75, -0.19, -2.0], dtype=torch.float64, device=device)
    result = lanczos(S, v, 4)
    report = error_bound(S, result)
    assert report.projection_error > 1.1 * right_hand_side(S, result.basis[:, 0], 4, as_printed=True)
    assert report.projection_error <= report.bound


def test_without_the_dropped_term_the_bound_is_false(device):
    """The residual alone carries the error above the bound."""
    spectrum = torch.tensor([0.7911, 0.4433, -0.0578, -0.0662], dtype=torch.float64, device=device)
    S = DenseOperator(torch.diag(spectrum))
    v = torch.tensor([-179.5, -0.02187, -0.4535, 0.4962], dtype=torch.float64, device=device)
    report = error_bound(S, lanczos(S, v, 3))
    assert report.projection_error <= report.bound < report.error
    assert report.error <= math.hypot(report.bound, report.residual)


def test_the_bound_becomes_useful_when_the_spectrum_decays(dtype, device):
    *_, loose = report_for("fast decay", 5, dtype, device)
    S, _, tight = report_for("fast decay", 15, dtype, device)
    assert tight.bound < loose.bound
    assert tight.bound < 0.5 * float(torch.linalg.matrix_norm(S.dense()))


def test_at_breakdown_the_residual_vanishes_and_the_proof_is_exact(device):
    spectrum = torch.tensor([1.0, 0.5, 0.5, 0.25, 0.25, 0.25], dtype=torch.float64)
    S = DenseOperator(matrix_with_spectrum(spectrum).to(device))
    result = lanczos(S, random_vector(S), 6)
    report = error_bound(S, result)
    assert int(result.steps) == 3
    assert report.residual == 0
    assert report.error == pytest.approx(report.projection_error)
    assert report.error == pytest.approx(math.sqrt(0.25 + 2 * 0.0625))


def test_the_theorem_is_silent_before_three_steps_and_at_repeated_leading_eigenvalues(device):
    S = random_operator(10, torch.float64, device)
    assert error_bound(S, lanczos(S, random_vector(S), 2)).bound == math.inf
    twins = DenseOperator(torch.diag(torch.tensor([1.0, 1.0, 0.5, 0.2, 0.0], dtype=torch.float64, device=device)))
    report = error_bound(twins, lanczos(twins, random_vector(twins), 4))
    assert report.projection_error <= report.bound
    complete = normalized(adjacency(complete_edges(6).to(device), dtype=torch.float64))
    assert error_bound(complete, lanczos(complete, random_vector(complete), 5)).bound == math.inf


def test_full_rank_leaves_nothing(device):
    S = random_operator(9, torch.float64, device)
    report = error_bound(S, lanczos(S, random_vector(S), 9))
    assert report.error < 1e-12
    assert report.projection_error < 1e-12
    assert report.projection_error <= report.bound + 1e-12
